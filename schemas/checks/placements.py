"""What keeps nodes close to each other: how many it holds, and whether every host says where."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from ..diagnostics import Severity
from ..hostlist import fold
from .context import CheckContext, HostGroup
from .hosts import name_path
from .registry import Finding, check

if TYPE_CHECKING:
    from ..catalog import Machine

_ENDS_THE_FABRIC = ("single-placement-group", "cluster-network")
"""Placements outside of which the fabric doesn't go: Azure's InfiniBand, OCI's RDMA."""

_WORDS = {
    "cluster-placement-group": "cluster placement group",
    "compact-placement": "compact placement",
    "single-placement-group": "single placement group",
    "cluster-network": "cluster network",
}


def is_fabric_domain(machine: Machine) -> bool:
    """Say whether the machines' fabric ends where their placement ends."""
    return machine.placement is not None and machine.placement.kind in _ENDS_THE_FABRIC


@check("GC117", summary="A pool has more nodes than one placement holds.")
def placement_too_small(context: CheckContext) -> Iterator[Finding]:
    """All nodes of a pool stand in one placement, and that holds so many.

    InfiniBand of Azure ends at the single placement group (100 machines): the nodes beyond would
    not reach the others. Two pools are two fabric domains: give each a partition of its own.
    """
    for name, pool in context.pools.items():
        machine = context.machine(pool)
        if machine is None or machine.placement is None or context.cloud(pool) is None:
            continue
        most, size = machine.placement.max_nodes, context.size(name)
        if most is None or size is None or size <= most:
            continue
        if is_fabric_domain(machine) or pool.placement not in (None, "none", "spread"):
            kind = _WORDS[machine.placement.kind]
            yield Finding(
                summary=f'pool "{name}": {size:,} nodes, but one {kind} holds {most:,}',
                path=("pools", name, "count"),
                hint=f"make pools of at most {most:,}, each in a partition of its own",
                relies_on=tuple(
                    ("pools", name, key) for key in ("count", "machine", "site", "placement")
                ),
            )


@check("GC134", summary="A pool's placement keeps its fabric from working.")
def placement_without_fabric(context: CheckContext) -> Iterator[Finding]:
    """Machines whose fabric ends at their placement can't do without it.

    Azure's InfiniBand works between the machines of one single placement group. With
    `placement: none` or `spread` no two nodes are sure to be in one.
    """
    for name, pool in context.pools.items():
        machine = context.machine(pool)
        if machine is None or machine.placement is None or pool.placement not in ("none", "spread"):
            continue
        if is_fabric_domain(machine) and pool.fabric != "ethernet" and context.cloud(pool):
            yield Finding(
                summary=f'pool "{name}": the fabric of {machine.name} ends at its '
                f"{_WORDS[machine.placement.kind]}, so placement can't be {pool.placement}",
                path=("pools", name, "placement"),
                hint="write placement: cluster, or fabric: ethernet if no job spans nodes",
                meant="cluster",
                relies_on=tuple(
                    ("pools", name, key) for key in ("placement", "machine", "site", "fabric")
                ),
            )


@check("GC133", summary="Only some hosts of a pool say where they stand.")
def partly_placed(context: CheckContext) -> Iterator[Finding]:
    """`block` and `leaf` are said of all hosts of a pool or of none.

    The scheduler packs jobs by them. Hosts that don't say theirs are packed as if they stood
    nowhere: jobs land on them last, or across the whole fabric.
    """
    groups: dict[str, list[HostGroup]] = {}
    for group in context.host_groups:
        groups.setdefault(group.pool, []).append(group)
    keys: tuple[Literal["block", "leaf"], ...] = ("block", "leaf")
    for name, of_pool in groups.items():
        for key in keys:
            without = [g for g in of_pool if g.entry is None or getattr(g.entry, key) is None]
            if not without or len(without) == len(of_pool):
                continue
            hosts = [host for group in without for host in group.names or ()]
            yield Finding(
                summary=f'pool "{name}": {fold(hosts) or without[0].written} '
                f"{'says' if len(hosts) == 1 else 'say'} no {key}, but other hosts do",
                path=name_path(without[0]),
                severity=Severity.WARNING,
                hint=f"give every host of the pool its {key}, or none",
                relies_on=(("pools", name, "hosts"),),
            )
