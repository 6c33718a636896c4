"""Nodes that a smaller spec takes from a cloud's control plane, as far as somebody can name them.

EKS' nodes are instances of ours: the stack says which go, and by their ids nodes are known. Node
pools of GKE and AKS are given another size; which machine goes is for the cloud to choose, and it
drains that one itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ....inventory.hosts import Host
from ....schemas.derived.control_planes import managed_by, managed_pools
from ....schemas.spec import ClusterSpec

if TYPE_CHECKING:
    from ...planning.changes import SitePlan
    from ...sites import OpenSite
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
