"""Nodes that a smaller spec removes from a cloud's control plane, as far as they can be named.

EKS' nodes are instances of our stack: it shows which are removed, and nodes are matched by instance
id; those of a removed group are the pool's, created by its autoscaler. Node pools of GKE and AKS
are resized; the cloud chooses and drains the machine that is removed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from ....inventory.hosts import Host
from ....schemas.derived.control_planes import managed_by, managed_pools
from ....schemas.derived.hostlist import HostlistError, expand
from ....schemas.spec import ClusterSpec
from ....stacks.registry import managed_kubernetes
from ...cluster.open_site import OpenSite
from ...cluster.outcome import Exit, LifecycleError, failure
from ...planning.changes import SitePlan
from .nodes import ApiNode

_GONE = frozenset({"delete", "replace"})


def leaving_nodes(
    sites: Iterable[OpenSite], plans: Mapping[str, SitePlan], nodes: Iterable[ApiNode]
) -> dict[str, str]:
    """Return node -> pool of those whose machines the stacks will remove.

    Args:
        sites: the open sites.
        plans: site -> what apply would do.
        nodes: those that joined.

    Raises:
        ProviderError: a stack can't be read.
    """
    ids: set[str] = set()
    kept: set[str] = set()
    ended: set[str] = set()
    joined = tuple(nodes)
    pools = {node.pool for node in joined}
    for site in sites:
        gone = {c.resource.name for c in plans[site.name].changes if c.effect in _GONE}
        if not gone:
            continue
        known = site.provider.machine_ids(site.context)
        ids |= {known[name] for name in gone & known.keys()}
        kept |= set(known.values())
        ended |= {pool for pool in pools if _group_of(site, pool) in gone}
    return {
        node.name: node.pool
        for node in joined
        if node.machine_id
        and (node.machine_id in ids or (node.pool in ended and node.machine_id not in kept))
    }


def _group_of(site: OpenSite, pool: str) -> str:
    spec = site.context.spec
    managed = managed_by(spec)
    named = None if managed is None else managed_kubernetes(managed).elastic_group
    return "" if named is None else named(spec, site.name, pool)


def surplus(spec: ClusterSpec, planned: Iterable[Host], nodes: Iterable[ApiNode]) -> dict[str, int]:
    """Return pool -> how many of its ready nodes go, where the cloud chooses which (pure).

    Of an elastic pool the autoscaler gives them back when no pod needs them.
    """
    if not _repair_hint(spec):
        return {}
    run = managed_pools(spec)
    wanted = Counter(host.pool for host in planned)
    ready = Counter(node.pool for node in nodes if node.ready and node.pool in run)
    fixed = [pool for pool in ready if not spec.pools[pool].is_elastic]
    return {pool: more for pool in fixed if (more := ready[pool] - wanted[pool]) > 0}


def _repair_hint(spec: ClusterSpec) -> str:
    """Return what to do about nodes that the cloud repairs itself; "": the stack does."""
    managed = managed_by(spec)
    return "" if managed is None else managed_kubernetes(managed).repair_hint


def is_of_stack(spec: ClusterSpec, words: Collection[str]) -> bool:
    """Return whether the named nodes are the cloud's and the stack recreates their instances (EKS).

    Raises:
        LifecycleError: GC1046: others were named with them, or the cloud repairs its nodes itself.
    """
    managed, pools = managed_by(spec), managed_pools(spec)
    own = [name for name in spec.pools if name not in pools]
    others = [word for word in words if managed is not None and not _is_ours(word, own)]
    if others and (hint := _repair_hint(spec)):
        raise _refusal(others, f"nodes that {managed} runs are not repaired from here", hint)
    if others and len(others) < len(words):
        why = f"nodes of {str(managed).upper()} are repaired apart from machines of ours"
        raise _refusal(others, why, "name them in a gcluster repair of their own")
    return bool(others)


def _refusal(words: Collection[str], why: str, hint: str) -> LifecycleError:
    return failure("GC1046", f"{', '.join(words)}: {why}", hint=hint, exit_code=Exit.REFUSED)


def _is_ours(word: str, pools: list[str]) -> bool:
    """Whether a host range names machines of pools that we run ourselves."""
    try:
        names = expand(word)
    except HostlistError:
        return True  # the next reader reports it
    return all(any(name.startswith(pool) for pool in pools) for name in names)
