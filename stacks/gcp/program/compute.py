"""The machines of a Google Cloud pool, as a component: templates, placement, instances."""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
import pulumi_gcp as gcp

from ...pulumi.component import Args, Component
from ..plan.pools import OfferPlan, PoolPlan, uses_policy
from .templates import SiteParts, labels_of, make_template


class PoolArgs(Args, frozen=True, kw_only=True):
    """What a pool is made from."""

    site: SiteParts
    plan: PoolPlan
    on: dict[str, OfferPlan]
    """Host -> the option that it is bought on, of those that are made."""


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
        pool, on = args.plan, args.on
        options = _options(args)
        templates = {
            option.key: make_template(args.site, pool, option, self.child()) for option in options
        }
        self.template_ids = {key: template.id for key, template in templates.items()}
        policies = self._policies(args, options)
        self.policy_ids = [policy.id for policy in policies]
        self.machine_ids, self.addresses = {}, {}
        self.links: dict[str, pulumi.Output[str]] = {}
        """Host -> machine, as instance groups name it."""
        self.zones: dict[str, str] = {}
        self.group = pulumi.Output.from_input(None)
        self.gateway_link = pulumi.Output.from_input("")
        if any(option.market == "flex-start" for option in on.values()):
            self.group = self._queue(args, options[0], templates[options[0].key])
            return
        numbers = {host: number for number, host in enumerate(pool.nodes, start=1)}
        for host, option in on.items():
            policy: pulumi.Input[str] | None = pool.placement.existing
            if uses_policy(pool, option):
                policy = policies[pool.policy_of(numbers[host])].id
            instance = self._machine(args, host, option, templates[option.key], policy)
            self.machine_ids[host] = instance.instance_id
            self.links[host], self.zones[host] = instance.self_link, option.zone
            if _is_gateway(pool, host):
                self.gateway_link = instance.self_link
            self.addresses[host] = instance.network_interfaces.apply(
                lambda nics: nics[0].network_ip or ""
            )

    def _policies(
        self, args: PoolArgs, options: Sequence[OfferPlan]
    ) -> list[gcp.compute.ResourcePolicy]:
        """Make the placement policies, all alike, where an option's machines carry one."""
        site, wanted = args.site, args.plan.placement
        if not any(uses_policy(args.plan, option) for option in options):
            return []
        return [
            gcp.compute.ResourcePolicy(
                site.names(f"{args.plan.name}-placement", number),
                project=site.project,
                region=site.region,
                description=site.names.description,
                group_placement_policy=gcp.compute.ResourcePolicyGroupPlacementPolicyArgs(
                    collocation="COLLOCATED" if wanted.collocated else None,
                    gpu_topology=wanted.topology,
                    availability_domain_count=wanted.spread_over,
                ),
                opts=self.child(),
            )
            for number in range(1, args.plan.policies() + 1)
        ]

    def _machine(
        self,
        args: PoolArgs,
        host: str,
        option: OfferPlan,
        template: gcp.compute.InstanceTemplate,
        policy: pulumi.Input[str] | None,
    ) -> gcp.compute.InstanceFromTemplate:
        return gcp.compute.InstanceFromTemplate(
            args.site.names(host),
            # Its own name and not the engine's: one that is replaced keeps it.
            name=args.site.names(host),
            project=args.site.project,
            zone=option.zone,
            source_instance_template=template.self_link_unique,
            resource_policies=policy,
            labels=labels_of(args.plan, option, host),
            allow_stopping_for_update=True,
            network_interfaces=self._network_interfaces(args, host, option),
            # Disks that outlive it are attached by resources of their own.
            opts=self.child(
                pulumi.ResourceOptions(delete_before_replace=True, ignore_changes=["attachedDisks"])
            ),
        )

    def _network_interfaces(
        self, args: PoolArgs, host: str, option: OfferPlan
    ) -> list[gcp.compute.InstanceFromTemplateNetworkInterfaceArgs] | None:
        """Return the interfaces of a gateway, with an address that stays; None: the template's."""
        site = args.site
        if not _is_gateway(args.plan, host):
            return None
        address = gcp.compute.Address(
            site.names(f"address-{host}"),
            project=site.project,
            region=site.region,
            description=site.names.description,
            opts=self.child(),
        )
        access_config = gcp.compute.InstanceFromTemplateNetworkInterfaceAccessConfigArgs(
            nat_ip=address.address, network_tier="PREMIUM"
        )
        return [
            gcp.compute.InstanceFromTemplateNetworkInterfaceArgs(
                subnetwork=site.subnets[nic.subnet],
                nic_type=nic.nic_type,
                stack_type="IPV6_ONLY" if nic.ipv6_only else None,
                access_configs=[access_config] if number == 0 else None,
            )
            for number, nic in enumerate(option.interfaces)
        ]

    def _queue(
        self, args: PoolArgs, option: OfferPlan, template: gcp.compute.InstanceTemplate
    ) -> pulumi.Output[str | None]:
        """Request all machines at once; all of them are created, or none."""
        site, name, zone = args.site, args.plan.name, option.zone
        group = gcp.compute.InstanceGroupManager(
            site.names(name),
            project=site.project,
            zone=zone,
            description=site.names.description,
            base_instance_name=site.names(name),
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
                labels=labels_of(args.plan, option)
            ),
            # The request grows the group; without this the next update would shrink it to 0.
            opts=self.child(pulumi.ResourceOptions(ignore_changes=["target_size"])),
        )
        gcp.compute.ResizeRequest(
            site.names(f"{name}-request"),
            project=site.project,
            zone=zone,
            instance_group_manager=group.name,
            resize_by=len(args.on),
            opts=self.child(),
        )
        return group.name.apply(lambda name: name)


def _options(args: PoolArgs) -> list[OfferPlan]:
    """Return the options that get a template, those that machines are on first.

    An elastic pool has one for every option, another for the options that it is on.
    """
    offers = args.plan.offers
    keys = {option.key for option in args.on.values()} or {offers[0].key}
    used = [option for option in offers if option.key in keys]
    return [*used, *(o for o in offers if o.key not in keys and args.plan.elastic)]


def _is_gateway(pool: PoolPlan, host: str) -> bool:
    """Return whether a host terminates tunnels: it keeps its public address."""
    return pool.gateway and host == pool.nodes[0]
