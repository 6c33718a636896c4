"""The spec compiled for its hosts."""

from __future__ import annotations

import msgspec

from ...inventory.compile import CompiledCluster, compile_cluster
from ...inventory.compile.kubernetes import KubernetesAt
from ...inventory.hosts import ClusterInventory
from ...schemas.stack.bundle import BundleManifest
from ..cluster.cluster import Cluster
from ..status.observe import Observation


class Compiled(msgspec.Struct, frozen=True):
    """What each node is to run, and what that follows from besides the spec and its catalog."""

    cluster: CompiledCluster
    hosts: ClusterInventory
    bundle: BundleManifest | None
    kubernetes: KubernetesAt | None


def compile_for(
    cluster: Cluster, observation: Observation, last: Compiled | None = None
) -> Compiled:
    """Compile the spec of a cluster for its hosts.

    Args:
        cluster: its spec, catalog and bundle.
        observation: its `desired` hosts.
        last: compiled before in this run; returned where it is still valid.
    """
    hosts, bundle, kubernetes = observation.desired, cluster.bundle, cluster.kubernetes
    if last is not None and (last.hosts, last.bundle, last.kubernetes) == (
        hosts,
        bundle,
        kubernetes,
    ):
        return last
    made = compile_cluster(cluster.spec, hosts, cluster.catalog, bundle, kubernetes)
    return Compiled(made, hosts, bundle, kubernetes)
