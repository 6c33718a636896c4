"""Machines: compute clusters, an instance configuration for each offer, and fixed pools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pulumi
import pulumi_oci as oci

from ..pulumi.component import Args, Component
from ..pulumi.labels import HOST, POOL
from ..pulumi.names import Names
from .instances import instance
from .launch import LaunchArgs, instance_configuration
from .plan import ClusterPlan, OfferPlan
from .tags import OFFER


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
