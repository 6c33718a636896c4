"""Which pending steps make a rolling change: on nodes in service, and of a kind that jobs feel."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...inventory.hosts import ClusterInventory
from ...schemas.spec import ClusterSpec
from .window import Window

if TYPE_CHECKING:
    from ..converge.pending import Pending

_JOINS = frozenset({"slurm.join", "kubernetes.join"})
"""The steps whose stamp says that a node serves jobs, whether it is worn or not."""


def has_joined(stamps: Mapping[str, str]) -> bool:
    """Say of a node's stamps whether it has joined a scheduler."""
    return not _JOINS.isdisjoint(stamps)


def in_service(
    inventory: ClusterInventory, stamps: Mapping[str, Mapping[str, str]]
) -> frozenset[str]:
    """Return the compute nodes that have joined a scheduler and so may have jobs."""
    return frozenset(
        host.name
        for host in inventory.with_role("compute")
        if host.connection == "ssh" and has_joined(stamps.get(host.name, {}))
    )


def must_roll(pending: Pending, serving: frozenset[str]) -> frozenset[str]:
    """Return the nodes in service on which a step would run that jobs feel.

    All their steps wait for the drain: a later step may rely on the one that needs it.
    """
    felt = {host for item in pending.steps if item.step.needs_drain for host in item.hosts}
    return frozenset(felt) & serving


def windows(
    nodes: frozenset[str], inventory: ClusterInventory, spec: ClusterSpec
) -> tuple[Window, ...]:
    """Return one window for each pool that has nodes to be changed."""
    sizes = Counter(host.pool for host in inventory.hosts)
    mine: dict[str, list[str]] = defaultdict(list)
    for host in inventory.hosts:
        if host.name in nodes:
            mine[host.pool].append(host.name)
    return tuple(
        Window(mine[name], pool.update, pool_size=sizes[name])
        for name, pool in spec.pools.items()
        if name in mine
    )
