"""Slurm's topology plugin and maintenance windows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise

from ...diagnostics import PathTuple, Severity
from ..context import CheckContext, HostGroup
from ..registry import Finding, check

_PATH: PathTuple = ("scheduler", "topology")
_RELAXED = (25, 5)
"""Slurm from which on a block may be smaller than the base size."""


def _compute_groups(context: CheckContext) -> Iterator[HostGroup]:
    """Yield the hosts that run jobs, as far as the spec names them."""
    for group in context.host_groups:
        if context.pools[group.pool].is_compute:
            yield group


def _only_bare_metal(context: CheckContext) -> bool:
    """Say whether the spec alone can know the topology of nodes: clouds report it themselves."""
    sites = {pool.site for pool in context.pools.values() if pool.is_compute}
    return bool(sites) and all(context.exists(site) for site in sites)


@check("GC541", summary="Block sizes that Slurm refuses.")
def block_sizes_not_doubling(context: CheckContext) -> Iterator[Finding]:
    """Each of `block_sizes` is the one before it times a power of two.

    Slurm joins blocks in pairs, then pairs of these, so 18 may be followed by 36, 72 or 144
    (topology.conf, BlockSizes).
    """
    sizes = context.slurm.topology.block_sizes if context.slurm is not None else []
    for index, (before, size) in enumerate(pairwise(sizes), start=1):
        factor, rest = divmod(size, before)
        if rest or factor < 2 or factor & (factor - 1):  # noqa: PLR2004  # the first power of two
            path: PathTuple = (*_PATH, "block_sizes", index)
            yield Finding(
                summary=f"block size {size:,} is not {before:,} times a power of two",
                path=path,
                hint=f"such as {before * 2}, {before * 4} or {before * 8}",
                relies_on=(path, (*_PATH, "block_sizes", index - 1)),
            )


@check("GC542", summary="A block has fewer hosts than the base block size.")
def block_too_small(context: CheckContext) -> Iterator[Finding]:
    """Every block has at least the first of `block_sizes` hosts.

    A smaller one stops slurmctld and every slurmd when they start (up to Slurm 24.11; later ones
    take it). A block is all hosts of one `block` name.
    """
    topology = context.slurm.topology if context.slurm is not None else None
    if topology is None or not topology.block_sizes or _is_relaxed(context.software.slurm):
        return
    found = _blocks(context)
    if found is None:
        return
    sizes = {block: size for block, (size, _) in found.items()}
    base = topology.block_sizes[0]
    for block, size in sizes.items():
        if size < base:
            path = found[block][1]
            yield Finding(
                summary=f'block "{block}" has {size:,} hosts, the base block size is {base:,}',
                path=path,
                hint=f"write block_sizes: [{min(sizes.values())}, ...], or join blocks",
                relies_on=(
                    ("pools", "*", "hosts"),
                    ("pools", "*", "nodes_per_block"),
                    (*_PATH, "block_sizes", 0),
                    ("software", "slurm"),
                ),
            )


def _blocks(context: CheckContext) -> dict[str, tuple[int, PathTuple]] | None:
    """Return block -> its hosts and where it is said; None: a range can't be read.

    Hosts without a `block` are in one of their pool's `nodes_per_block`.
    """
    found: dict[str, tuple[int, PathTuple]] = {}
    before: dict[str, int] = {}
    for group in _compute_groups(context):
        if group.names is None:
            return None
        written = group.entry.block if group.entry is not None else None
        pool = context.pools[group.pool]
        for _ in group.names:
            index = before[group.pool] = before.get(group.pool, -1) + 1
            block = written or pool.block_of(group.pool, index)
            if block is not None:
                path = (
                    (*group.path, "block") if written else ("pools", group.pool, "nodes_per_block")
                )
                size, first = found.get(block, (0, path))
                found[block] = (size + 1, first)
    return found


def _is_relaxed(version: str) -> bool:
    """Say whether a version is known to take small blocks; "auto" is not."""
    match = re.match(r"([0-9]+)\.([0-9]+)", version)
    return match is not None and (int(match[1]), int(match[2])) >= _RELAXED


@check("GC543", summary="Jobs are to be kept in blocks or below switches that are unknown.")
def topology_unknown(context: CheckContext) -> Iterator[Finding]:
    """topology/block needs hosts with a `block`, topology/tree hosts with a `leaf` or a `block`.

    Clouds report where their nodes are. On bare metal only the spec can: write
    `hosts: [{name: "gpu[001-032]", block: su1, leaf: su1}]`.
    """
    plugin = context.slurm.topology.plugin if context.slurm is not None else "auto"
    if plugin not in {"block", "tree"} or not _only_bare_metal(context):
        return
    key = "block" if plugin == "block" else "leaf"
    entries = [group.entry for group in _compute_groups(context)]
    known = any(e is not None and (e.block or (e.leaf and key == "leaf")) for e in entries)
    known = known or any(pool.nodes_per_block for pool in context.pools.values())
    if entries and not known:
        path: PathTuple = (*_PATH, "plugin")
        yield Finding(
            summary=f"topology/{plugin}, but no host has a {key}",
            path=path,
            hint=f'write hosts: [{{name: "gpu[01-16]", {key}: ...}}], or plugin: none',
            relies_on=(path, ("pools", "*", "hosts"), ("pools", "*", "role")),
        )


@check("GC545", summary="Block sizes are given, but jobs are not kept in blocks.")
def block_sizes_unused(context: CheckContext) -> Iterator[Finding]:
    """`block_sizes` belongs to topology/block: with `plugin: tree` or `none` it does nothing."""
    topology = context.slurm.topology if context.slurm is not None else None
    if topology is not None and topology.block_sizes and topology.plugin in {"tree", "none"}:
        yield Finding(
            summary=f"topology/{topology.plugin} has no block sizes",
            path=(*_PATH, "block_sizes"),
            at_key=True,
            severity=Severity.WARNING,
            hint="remove block_sizes, or write plugin: block",
            relies_on=((*_PATH, "block_sizes"), (*_PATH, "plugin")),
        )


_PERIOD_S = {"day": 86_400, "week": 7 * 86_400}


@check("GC546", summary="A maintenance window starts at a time that does not exist.")
def maintenance_start_invalid(context: CheckContext) -> Iterator[Finding]:
    """`start` is a day of the calendar and a time of the day, in UTC."""
    for name, window in context.maintenance.items():
        try:
            datetime.fromisoformat(window.start)
        except ValueError:
            yield Finding(
                summary=f'maintenance "{name}": {window.start} is no time of the calendar',
                path=("scheduler", "maintenance", name, "start"),
                hint="write a time such as 2027-01-15T06:00Z",
            )


@check("GC547", summary="A maintenance window has no length, or never ends.")
def maintenance_duration_invalid(context: CheckContext) -> Iterator[Finding]:
    """A window that repeats is shorter than the time to the next one."""
    for name, window in context.maintenance.items():
        period = _PERIOD_S.get(window.every or "", float("inf"))
        if 0 < window.duration.value < period:
            continue
        path: PathTuple = ("scheduler", "maintenance", name, "duration")
        what = f"lasts {window.duration}, and starts again every {window.every}"
        if not window.duration.value:
            what = "has no length"
        yield Finding(
            summary=f'maintenance "{name}" {what}',
            path=path,
            hint="write a duration such as 4h",
            relies_on=(path, ("scheduler", "maintenance", name, "every")),
        )
