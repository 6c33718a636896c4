"""The compiler: a checked spec and its hosts in, groups of hosts and their steps out.

The rule it keeps: no node's variables hold the host list. Nodes get the names and addresses of
controllers and logins only; all other information is fetched from the controller. So a node more or
less changes that node and the controllers' slurm.configure, and nothing else; where a cluster is
monitored, its monitoring host's targets too (prometheus.join).

Install phases take no variables of the cluster or the pool and are the same on every node of a
machine type, those of MUNGE, Slurm and MPI on every node at all: baked images then fit, and a
daemon runs only where configure has given it its file.
"""

from __future__ import annotations

from ...schemas.catalog import Catalog
from ...schemas.derived.control_planes import managed_pools
from ...schemas.spec import ClusterSpec
from ...schemas.stack.bundle import BundleManifest
from ..hosts import ClusterInventory
from .kubernetes import KubernetesAt, taking
from .network.proxy import proxy_environment
from .node import node_facts, with_cluster
from .roles import node_steps
from .steps import CompiledCluster, Group
from .system.packages import use_bundle


def compile_cluster(
    spec: ClusterSpec,
    inventory: ClusterInventory,
    catalog: Catalog,
    bundle: BundleManifest | None = None,
    kubernetes: KubernetesAt | None = None,
) -> CompiledCluster:
    """Return the steps of each pool's hosts: same spec and hosts, same result.

    The order of keys in the spec doesn't matter: pools are ordered by role, then by name.

    Args:
        spec: a spec that passed its checks.
        inventory: its hosts; an address may be unknown ("") while they are only planned.
        catalog: describes the machines of the compute pools.
        bundle: the source of all software of the nodes; None: the sources of the spec.
        kubernetes: bundle of Kubernetes' own programs and images; None: packages and a registry.
    """
    nodes = node_facts(spec, catalog, inventory)
    if bundle is not None:
        nodes = use_bundle(bundle, nodes, _first_controller(spec, inventory))
    nodes = with_cluster(spec, catalog, inventory, taking(kubernetes, nodes))
    unmanaged = nodes.keys() - managed_pools(spec)  # the others are set up by their cloud
    return CompiledCluster(
        cluster=spec.name,
        groups=tuple(
            Group(
                name=name,
                hosts=tuple(host.name for host in node.cluster.by_pool[name]),
                steps=node_steps(node) if name in unmanaged else (),
                environment=proxy_environment(node),
            )
            for name, node in nodes.items()
        ),
    )


def _first_controller(spec: ClusterSpec, inventory: ClusterInventory) -> str:
    """Return the address of the first controller; "" while it is only planned."""
    pools = sorted(name for name, pool in spec.pools.items() if pool.role == "controller")
    return next((h.address for name in pools for h in inventory.hosts if h.pool == name), "")
