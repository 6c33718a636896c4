"""Machines: compute clusters, an instance configuration for each offer, and fixed pools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pulumi
import pulumi_oci as oci

from ...pulumi.component import Args, Component
from ...pulumi.names import HOST, OFFER, POOL, Names
from ..plan.types import ClusterPlan, OfferPlan
from .templates import PLUGINS, LaunchArgs, instance_configuration


class ClustersArgs(Args, frozen=True):
    """What the compute clusters are made from."""

    names: Names
    compartment: str
    plans: tuple[ClusterPlan, ...]
    domains: dict[int, pulumi.Output[str]]
    """Number of an availability domain -> its name."""


class Clusters(Component[ClustersArgs]):
    """Compute clusters: RDMA networks that nodes join one by one; those that exist are used."""

    kind = "oci:Clusters"
    ids: dict[str, pulumi.Output[str]]
    """Key of the plan -> compute cluster."""

    def build(self, args: ClustersArgs) -> None:
        """Make the clusters."""
        self.ids = {plan.key: self._cluster(args, plan) for plan in args.plans}

    def _cluster(self, args: ClustersArgs, plan: ClusterPlan) -> pulumi.Output[str]:
        if plan.existing is not None:
            return pulumi.Output.from_input(plan.existing)
        return oci.core.ComputeCluster(
            args.names(plan.key),
            availability_domain=args.domains[plan.domain],
            compartment_id=args.compartment,
            display_name=args.names(plan.key),
            opts=self.child(),
        ).id


class NodePoolArgs(Args, frozen=True):
    """What a pool is made from."""

    names: Names
    launch: LaunchArgs
    offers: Mapping[str, OfferPlan]
    """Fixed node -> what it is bought by, of the nodes that are made."""
    clusters: dict[str, pulumi.Output[str]]
    domains: dict[int, pulumi.Output[str]]
    tags: dict[str, str]
    """Free-form tags of what OCI makes from a configuration: nodes and their interfaces."""

    def cluster(self, offer: OfferPlan) -> pulumi.Output[str] | None:
        """Return the compute cluster of an offer."""
        return None if offer.cluster is None else self.clusters[offer.cluster]


class NodePool(Component[NodePoolArgs]):
    """A pool: instance configurations, and its fixed nodes: together, or one by one.

    OCI numbers the nodes of a cluster network or GPU memory cluster; `naming.py` gives them their
    names. An elastic pool has a configuration for each offer, for `elastic.py` to choose from.
    """

    kind = "oci:NodePool"
    templates: dict[str, pulumi.Output[str]]
    """Key of an offer -> instance configuration."""
    groups: dict[str, pulumi.Output[str]]
    """Key of an offer -> cluster network or GPU memory cluster."""
    instance_ids: dict[str, pulumi.Output[str]]
    """Node -> instance, of those made one by one."""
    addresses: dict[str, pulumi.Output[str]]
    """Node -> private address, as above."""

    def build(self, args: NodePoolArgs) -> None:
        """Make configurations and nodes."""
        plan = args.launch.plan
        used = {offer.key: offer for offer in args.offers.values()}
        together = {} if plan.is_one_by_one else used
        wanted = {o.key: o for o in plan.offers} if plan.elastic else together
        self.templates = {key: self._template(args, offer) for key, offer in wanted.items()}
        self.groups = {key: self._together(args, offer) for key, offer in together.items()}
        nodes = dict(self._one_by_one(args)) if plan.is_one_by_one else {}
        self.instance_ids = {name: node.id for name, node in nodes.items()}
        self.addresses = {name: node.private_ip for name, node in nodes.items()}

    def _template(self, args: NodePoolArgs, offer: OfferPlan) -> pulumi.Output[str]:
        plan = args.launch.plan
        return instance_configuration(
            args.names(f"{plan.name}-{offer.key}"),
            args.launch,
            offer,
            domain=args.domains[offer.domain],
            cluster=args.cluster(offer) if plan.group == "compute-cluster" else None,
            tags={**args.tags, POOL: plan.name, OFFER: offer.key},
            opts=self.child(),
        ).id

    def _together(self, args: NodePoolArgs, offer: OfferPlan) -> pulumi.Output[str]:
        """Make the nodes of an offer: its name is of the group, so another offer is another one."""
        size = sum(bought == offer for bought in args.offers.values())
        if args.launch.plan.group == "memory-cluster":
            return self._memory_cluster(args, offer, size)
        return self._cluster_network(args, offer, size)

    def _cluster_network(
        self, args: NodePoolArgs, offer: OfferPlan, size: int
    ) -> pulumi.Output[str]:
        """Make all nodes at once, on one RDMA network: OCI gives all or none."""
        name = args.names(f"{args.launch.plan.name}-{offer.key}")
        subnet = oci.core.ClusterNetworkPlacementConfigurationPrimaryVnicSubnetsArgs(
            subnet_id=args.launch.subnet_id
        )
        return oci.core.ClusterNetwork(
            name,
            compartment_id=args.launch.compartment,
            display_name=name,
            placement_configuration=oci.core.ClusterNetworkPlacementConfigurationArgs(
                availability_domain=args.domains[offer.domain], primary_vnic_subnets=subnet
            ),
            instance_pools=[
                oci.core.ClusterNetworkInstancePoolArgs(
                    instance_configuration_id=self.templates[offer.key],
                    size=size,
                    display_name=name,
                    freeform_tags=_marks(args, offer),
                )
            ],
            freeform_tags=_marks(args, offer),
            opts=self.child(),
        ).id

    def _memory_cluster(
        self, args: NodePoolArgs, offer: OfferPlan, size: int
    ) -> pulumi.Output[str]:
        """Make the nodes of one NVLink domain, in a compute cluster: RDMA reaches beyond it."""
        name = args.names(f"{args.launch.plan.name}-{offer.key}")
        return oci.core.ComputeGpuMemoryCluster(
            name,
            availability_domain=args.domains[offer.domain],
            compartment_id=args.launch.compartment,
            compute_cluster_id=args.clusters[offer.cluster or ""],
            instance_configuration_id=self.templates[offer.key],
            size=str(size),
            display_name=name,
            freeform_tags=_marks(args, offer),
            opts=self.child(),
        ).id

    def _one_by_one(self, args: NodePoolArgs) -> Iterator[tuple[str, oci.core.Instance]]:
        plan = args.launch.plan
        for host, offer in args.offers.items():
            yield (
                host,
                instance(
                    args.names(host),
                    args.launch,
                    offer,
                    host=host,
                    number=plan.nodes.index(host),
                    domain=args.domains[offer.domain],
                    cluster=args.cluster(offer),
                    tags={**_marks(args, offer), HOST: host},
                    opts=self.child(),
                ),
            )


def _marks(args: NodePoolArgs, offer: OfferPlan) -> dict[str, str]:
    plan = args.launch.plan
    return {**plan.tags, POOL: plan.name, OFFER: offer.key}


_FAULT_DOMAINS = 3
"""In every availability domain (docs.oracle.com, Regions and Availability Domains)."""
_KEEP = pulumi.ResourceOptions(
    # What is for the first start is over for nodes that run. One that was bought by another offer
    # is replaced: a fabric domain doesn't mix options.
    ignore_changes=["metadata"],
    replace_on_changes=[f'freeformTags["{OFFER}"]'],
)


def instance(
    name: str,
    args: LaunchArgs,
    offer: OfferPlan,
    *,
    host: str,
    number: int,
    domain: pulumi.Input[str],
    cluster: pulumi.Input[str] | None,
    tags: dict[str, str],
    opts: pulumi.ResourceOptions,
) -> oci.core.Instance:
    """Make a node.

    Args:
        name: of the resource.
        args: what is alike for the pool.
        offer: how it is bought.
        host: its name in the cluster.
        number: its place in the pool, from 0.
        domain: name of the availability domain.
        cluster: compute cluster that it joins.
        tags: free-form tags.
        opts: of the resource.
    """
    plan = args.plan
    return oci.core.Instance(
        name,
        availability_domain=domain,
        compartment_id=args.compartment,
        compute_cluster_id=cluster,
        display_name=name,
        shape=plan.shape.name,
        shape_config=None
        if plan.shape.ocpus is None
        else oci.core.InstanceShapeConfigArgs(
            ocpus=plan.shape.ocpus, memory_in_gbs=plan.shape.memory_gib
        ),
        fault_domain=f"FAULT-DOMAIN-{number % _FAULT_DOMAINS + 1}" if plan.spread else None,
        source_details=_source(args),
        create_vnic_details=oci.core.InstanceCreateVnicDetailsArgs(
            subnet_id=args.subnet_id,
            assign_public_ip=str(plan.public).lower(),
            nsg_ids=list(args.security_groups),
            hostname_label=host,
        ),
        instance_options=oci.core.InstanceInstanceOptionsArgs(
            are_legacy_imds_endpoints_disabled=True
        ),
        agent_config=_agent() if plan.rdma else None,
        capacity_reservation_id=offer.option.reservation,
        preemptible_instance_config=_preemptible(offer),
        preserve_boot_volume=False,
        metadata=args.metadata,
        freeform_tags=tags,
        defined_tags=args.role,
        opts=pulumi.ResourceOptions.merge(opts, _KEEP),
    )


def _source(args: LaunchArgs) -> oci.core.InstanceSourceDetailsArgs:
    image = args.plan.image
    newest = oci.core.InstanceSourceDetailsInstanceSourceImageFilterDetailsArgs(
        compartment_id=args.compartment,
        operating_system=image.operating_system,
        operating_system_version=image.version,
    )
    return oci.core.InstanceSourceDetailsArgs(
        source_type="image",
        source_id=image.image or None,
        instance_source_image_filter_details=None if image.image else newest,
        boot_volume_size_in_gbs=str(args.plan.disk_gib),
        kms_key_id=args.kms_key,
    )


def _agent() -> oci.core.InstanceAgentConfigArgs:
    return oci.core.InstanceAgentConfigArgs(
        plugins_configs=[
            oci.core.InstanceAgentConfigPluginsConfigArgs(name=plugin, desired_state="ENABLED")
            for plugin in PLUGINS
        ]
    )


def _preemptible(offer: OfferPlan) -> oci.core.InstancePreemptibleInstanceConfigArgs | None:
    if offer.option.market != "spot":
        return None
    return oci.core.InstancePreemptibleInstanceConfigArgs(
        preemption_action=oci.core.InstancePreemptibleInstanceConfigPreemptionActionArgs(
            type="TERMINATE", preserve_boot_volume=False
        )
    )
