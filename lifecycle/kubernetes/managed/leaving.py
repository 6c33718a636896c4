"""Nodes that a smaller spec takes from a cloud's control plane, as far as somebody can name them.

EKS' nodes are instances of ours: the stack says which go, and by their ids nodes are known. Node
pools of GKE and AKS are given another size; which machine goes is for the cloud to choose, and it
drains that one itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from ....inventory.hosts import Host
from ....schemas.derived.control_planes import managed_by, managed_pools
from ....schemas.derived.hostlist import HostlistError, expand
from ....schemas.spec import ClusterSpec
from ...cluster.outcome import Exit, LifecycleError, failure

if TYPE_CHECKING:
    from ...cluster.sites import OpenSite
    from ...planning.changes import SitePlan
    from .nodes import ApiNode

_GONE = frozenset({"delete", "replace"})
_CHOOSE = frozenset({"gke", "aks"})
"""Clouds that choose themselves which node of a pool goes."""


def leaving_nodes(
    sites: Iterable[OpenSite], plans: Mapping[str, SitePlan], nodes: Iterable[ApiNode]
) -> dict[str, str]:
    """Return node -> pool of those whose machines the stacks are about to end.

    Args:
        sites: the open sites.
        plans: site -> what apply would do.
        nodes: those that joined.

    Raises:
        ProviderError: a stack can't be asked.
    """
    ids: set[str] = set()
    for site in sites:
        gone = {c.resource.name for c in plans[site.name].changes if c.effect in _GONE}
        if gone:
            known = site.provider.machine_ids(site.context)
            ids |= {known[name] for name in gone & known.keys()}
    return {node.name: node.pool for node in nodes if node.machine_id and node.machine_id in ids}


def surplus(spec: ClusterSpec, planned: Iterable[Host], nodes: Iterable[ApiNode]) -> dict[str, int]:
    """Return pool -> how many of its ready nodes go, where the cloud chooses which (pure)."""
    if managed_by(spec) not in _CHOOSE:
        return {}
    run = managed_pools(spec)
    wanted = Counter(host.pool for host in planned)
    ready = Counter(node.pool for node in nodes if node.ready and node.pool in run)
    return {pool: more for pool, count in ready.items() if (more := count - wanted[pool]) > 0}


_INSTEAD = {
    "gke": "GKE recreates what is not ready for ten minutes. Sooner: gcluster drain it, then "
    "gcloud compute instances delete INSTANCE --zone ZONE (the node's name and zone): its node "
    "pool makes another",
    "aks": "AKS restarts and reimages what is not ready by itself. Sooner: gcluster drain it, then "
    "az aks nodepool delete-machines --resource-group GROUP --cluster-name CLUSTER --name POOL "
    "--machine-names MACHINE, and gcluster up: the pool gets its size again",
}
"""Their node pools fix nodes themselves (cloud.google.com/kubernetes-engine/docs/how-to/
node-auto-repair; learn.microsoft.com/azure/aks/node-auto-repair; November 2026)."""


def is_of_eks(spec: ClusterSpec, words: Collection[str]) -> bool:
    """Say whether nodes were named whose instances EKS' stack makes again.

    Raises:
        LifecycleError: GC1046: others were named with them, or all are of GKE or AKS.
    """
    managed, pools = managed_by(spec), managed_pools(spec)
    own = [name for name in spec.pools if name not in pools]
    others = [word for word in words if managed is not None and not _is_ours(word, own)]
    if managed in _INSTEAD and others:
        raise _refusal(others, f"nodes that {managed} runs are not repaired from here", managed)
    if others and len(others) < len(words):
        raise _refusal(others, "nodes of EKS are repaired apart from machines of ours", "")
    return bool(others)


def _refusal(words: Collection[str], why: str, managed: str) -> LifecycleError:
    return failure(
        "GC1046",
        f"{', '.join(words)}: {why}",
        hint=_INSTEAD.get(managed, "name them in a gcluster repair of their own"),
        exit_code=Exit.REFUSED,
    )


def _is_ours(word: str, pools: list[str]) -> bool:
    """Whether a host range names machines of pools that we run ourselves."""
    try:
        names = expand(word)
    except HostlistError:
        return True  # whoever reads it next says so
    return all(any(name.startswith(pool) for pool in pools) for name in names)
