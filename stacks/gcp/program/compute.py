"""The machines of a Google Cloud pool, as a component: templates, placement, instances."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pulumi
import pulumi_gcp as gcp

from ...pulumi.component import Args, Component
from ...pulumi.names import HOST, POOL, Names, label_key, label_value
from ..plan.names import OPTION, description
from ..plan.pools import OfferPlan, PoolPlan, uses_policy
from .templates import NicArgs, TemplateArgs, make_template


class PolicyArgs(Args, frozen=True, kw_only=True):
    """Placement policies to make, all alike."""

    count: int
    collocated: bool
    """Close together; else spread over `domains`."""
    topology: str | None
    """Shape of an NVLink domain that spans machines."""
    domains: int | None


class MachineArgs(Args, frozen=True, kw_only=True):
    """One machine that is always there."""

    host: str
    option: str
    """Key of the template that it is made from."""
    policy: int | None
    """Which of the policies, from 0; None: none of them."""


class PoolArgs(Args, frozen=True, kw_only=True):
    """One pool."""

    names: Names
    name: str
    project: str
    region: str
    mark: str
    """Description of what takes no labels."""
    labels: dict[str, str]
    templates: tuple[TemplateArgs, ...]
    """One an option, those that machines are on first."""
    policies: PolicyArgs | None
    existing_policy: str | None
    machines: tuple[MachineArgs, ...]
    gateway: str | None
    """Host that is the end of tunnels: it keeps its public address."""
    queued: bool
    """All machines are asked for at once and come together: flex-start."""


class Pool(Component[PoolArgs]):
    """Machines that are alike; what comes and goes is made from the same templates elsewhere."""

    kind = "gcp:Pool"
    template_ids: dict[str, pulumi.Output[str]]
    """Option -> template."""
    policy_ids: list[pulumi.Output[str]]
    machine_ids: dict[str, pulumi.Output[str]]
    """Host -> id; of a queued pool none: its machines get their names when they are read."""
    addresses: dict[str, pulumi.Output[str]]
    """Host -> private address."""
    group: pulumi.Output[str | None]
    """Instance group of a queued pool."""
    gateway_link: pulumi.Output[str]
    """The gateway, as routes name it; "": there is none, or it isn't made."""

    def build(self, args: PoolArgs) -> None:
        """Make templates, policies, and the machines that are always there."""
        made = [make_template(template, self.child()) for template in args.templates]
        self.template_ids = {
            plan.option: template.id for plan, template in zip(args.templates, made, strict=True)
        }
        policies = self._policies(args)
        self.policy_ids = [policy.id for policy in policies]
        self.machine_ids, self.addresses = {}, {}
        self.links: dict[str, pulumi.Output[str]] = {}
        """Host -> machine, as instance groups name it."""
        self.zones: dict[str, str] = {}
        self.group = pulumi.Output.from_input(None)
        self.gateway_link = pulumi.Output.from_input("")
        if args.queued and args.machines:
            self.group = self._queue(args, args.templates[0], made[0])
            return
        templates = {
            plan.option: (plan, template)
            for plan, template in zip(args.templates, made, strict=True)
        }
        for machine in args.machines:
            placed = args.existing_policy
            policy = placed if machine.policy is None else policies[machine.policy].id
            plan, template = templates[machine.option]
            instance = self._machine(args, machine.host, plan, template, policy)
            self.machine_ids[machine.host] = instance.instance_id
            self.links[machine.host], self.zones[machine.host] = instance.self_link, plan.zone
            if machine.host == args.gateway:
                self.gateway_link = instance.self_link
            self.addresses[machine.host] = instance.network_interfaces.apply(
                lambda nics: nics[0].network_ip or ""
            )

    def _policies(self, args: PoolArgs) -> list[gcp.compute.ResourcePolicy]:
        wanted = args.policies
        if wanted is None:
            return []
        return [
            gcp.compute.ResourcePolicy(
                args.names(f"{args.name}-placement", number),
                project=args.project,
                region=args.region,
                description=args.mark,
                group_placement_policy=gcp.compute.ResourcePolicyGroupPlacementPolicyArgs(
                    collocation="COLLOCATED" if wanted.collocated else None,
                    gpu_topology=wanted.topology,
                    availability_domain_count=wanted.domains,
                ),
                opts=self.child(),
            )
            for number in range(1, wanted.count + 1)
        ]

    def _machine(
        self,
        args: PoolArgs,
        host: str,
        plan: TemplateArgs,
        template: gcp.compute.InstanceTemplate,
        policy: pulumi.Input[str] | None,
    ) -> gcp.compute.InstanceFromTemplate:
        return gcp.compute.InstanceFromTemplate(
            args.names(host),
            # Its own name and not the engine's: one that is replaced keeps it.
            name=args.names(host),
            project=args.project,
            zone=plan.zone,
            source_instance_template=template.self_link_unique,
            resource_policies=policy,
            labels=labels_of(args, plan.option, host),
            allow_stopping_for_update=True,
            network_interfaces=self._doors(args, host, plan),
            # Disks that outlive it are attached by resources of their own.
            opts=self.child(
                pulumi.ResourceOptions(delete_before_replace=True, ignore_changes=["attachedDisks"])
            ),
        )

    def _doors(
        self, args: PoolArgs, host: str, plan: TemplateArgs
    ) -> list[gcp.compute.InstanceFromTemplateNetworkInterfaceArgs] | None:
        """Return the interfaces of a gateway, with an address that stays; None: the template's."""
        if host != args.gateway:
            return None
        address = gcp.compute.Address(
            args.names(f"address-{host}"),
            project=args.project,
            region=args.region,
            description=args.mark,
            opts=self.child(),
        )
        access_config = gcp.compute.InstanceFromTemplateNetworkInterfaceAccessConfigArgs(
            nat_ip=address.address, network_tier="PREMIUM"
        )
        return [
            gcp.compute.InstanceFromTemplateNetworkInterfaceArgs(
                subnetwork=nic.subnet_id,
                nic_type=nic.nic_type,
                access_configs=[access_config] if number == 0 else None,
            )
            for number, nic in enumerate(plan.nics)
        ]

    def _queue(
        self, args: PoolArgs, plan: TemplateArgs, template: gcp.compute.InstanceTemplate
    ) -> pulumi.Output[str | None]:
        """Ask for all machines at once; they come together, or none does."""
        zone = plan.zone
        group = gcp.compute.InstanceGroupManager(
            args.names(args.name),
            project=args.project,
            zone=zone,
            description=args.mark,
            base_instance_name=args.names(args.name),
            versions=[
                gcp.compute.InstanceGroupManagerVersionArgs(
                    instance_template=template.self_link_unique
                )
            ],
            target_size=0,
            instance_lifecycle_policy=gcp.compute.InstanceGroupManagerInstanceLifecyclePolicyArgs(
                default_action_on_failure="DO_NOTHING"
            ),
            all_instances_config=gcp.compute.InstanceGroupManagerAllInstancesConfigArgs(
                labels=labels_of(args, plan.option)
            ),
            # The request grows the group; without this the next update would shrink it to 0.
            opts=self.child(pulumi.ResourceOptions(ignore_changes=["target_size"])),
        )
        gcp.compute.ResizeRequest(
            args.names(f"{args.name}-request"),
            project=args.project,
            zone=zone,
            instance_group_manager=group.name,
            resize_by=len(args.machines),
            opts=self.child(),
        )
        return group.name.apply(lambda name: name)


def labels_of(args: PoolArgs, option: str, host: str | None = None) -> dict[str, str]:
    """Return a machine's own labels, by which it is found and called."""
    own = {POOL: args.name, OPTION: option}
    own |= {} if host is None else {HOST: host}
    return {key: label_value(value) for key, value in (args.labels | own).items()}


NO_IMAGE = "image-is-not-known"
"""Stands where no image is known; preflight stops before it is asked for."""


class SiteParts(msgspec.Struct, frozen=True, kw_only=True):
    """What all pools of a site share."""

    names: Names
    project: str
    region: str
    kms_key: str | None
    subnets: dict[str, pulumi.Input[str]]
    """Key -> id."""
    account: pulumi.Input[str]
    """E-mail of the nodes' identity."""
    metadata: dict[str, str]
    labels: dict[str, str]
    balanced: bool
    """A load balancer stands before the controllers."""


def pool_args(pool: PoolPlan, site: SiteParts, *, purchased: Mapping[str, str]) -> PoolArgs:
    """Return the arguments of a pool whose machines are bought as `purchased` says.

    An elastic pool has a template for every option; another those of the options that it is on.
    """
    on = pool.purchased(purchased)
    keys = {option.key for option in on.values()} or {pool.offers[0].key}
    purchase_options = [option for option in pool.offers if option.key in keys]
    purchase_options += [
        option for option in pool.offers if option.key not in keys and pool.elastic
    ]
    placement = pool.placement
    used = any(uses_policy(pool, each) for each in purchase_options)
    numbers = {host: number for number, host in enumerate(pool.nodes, start=1)}
    return PoolArgs(
        names=site.names,
        name=pool.name,
        project=site.project,
        region=site.region,
        mark=description(site.names.cluster, site.names.site),
        labels=_labels(pool.tags),
        templates=tuple(_template(pool, each, site) for each in purchase_options),
        policies=PolicyArgs(
            count=pool.policies(),
            collocated=placement.collocated,
            topology=placement.topology,
            domains=placement.spread_over,
        )
        if used
        else None,
        existing_policy=placement.existing,
        machines=tuple(
            MachineArgs(
                host=host,
                option=option.key,
                policy=pool.policy_of(numbers[host]) if uses_policy(pool, option) else None,
            )
            for host, option in on.items()
        ),
        gateway=pool.nodes[0] if pool.gateway and pool.nodes else None,
        queued=any(option.market == "flex-start" for option in on.values()),
    )


def _template(pool: PoolPlan, option: OfferPlan, site: SiteParts) -> TemplateArgs:
    nics = tuple(
        NicArgs(
            subnet_id=site.subnets[nic.subnet],
            nic_type=nic.nic_type,
            public=pool.public and number == 0,
        )
        for number, nic in enumerate(option.interfaces)
    )
    return TemplateArgs(
        name=site.names(f"{pool.name}-{option.key}"),
        option=option.key,
        project=site.project,
        region=site.region,
        zone=option.zone,
        machine=pool.machine,
        has_gpus=pool.has_gpus,
        nics=nics,
        image=pool.image or NO_IMAGE,
        disk_type=pool.disk_type,
        disk_gib=pool.disk_gib,
        kms_key=site.kms_key,
        provisioning_model=option.provisioning_model,
        affinity=option.affinity,
        reservation=option.reservation,
        run_seconds=option.run_seconds,
        taken_back=option.comes_and_goes,
        account=site.account,
        metadata=site.metadata,
        network_tags=_network_tags(pool, site),
        forwards=pool.gateway,
        labels=_labels(pool.tags) | {POOL: label_value(pool.name), OPTION: label_value(option.key)},
    )


def _network_tags(pool: PoolPlan, site: SiteParts) -> tuple[str, ...]:
    """Return the tags by which firewall rules know a pool's machines."""
    ssh = (site.names("ssh"),) if pool.role != "compute" else ()
    api = (site.names("api"),) if pool.role == "controller" and site.balanced else ()
    return (*ssh, *api, *((site.names("gateway"),) if pool.gateway else ()))


def _labels(tags: dict[str, str]) -> dict[str, str]:
    return {label_key(key): label_value(value) for key, value in tags.items()}
