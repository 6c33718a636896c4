"""How large and how long jobs may be that spill, against what the pool takes."""

from __future__ import annotations

from collections.abc import Iterator

from ..diagnostics import Severity
from ..limits import most_generous, strictest
from .context import CheckContext
from .registry import Finding, check
from .spill_targets import spill_path, spills

_PARTITIONS = ("scheduler", "partitions")
_LIMITS = ("pools", "max_time")


@check("GC719", summary="A spill lets larger or longer jobs go than its pool takes.")
def more_than_the_target_takes(context: CheckContext) -> Iterator[Finding]:
    """`only.max_nodes` and `only.max_time` are within what the pool and its partitions take.

    Above that they limit nothing: such jobs stay, whatever they wait. `max_nodes` is held against
    the pool's most machines, `max_time` against the partition itself and those the pool is in.
    """
    partitions = {} if context.scheduler is None else context.scheduler.partitions
    for name, partition, spill, _target in spills(context):
        most, asked = context.size(spill.to), spill.only.max_nodes
        if most is not None and asked is not None and asked > most:
            path = spill_path(name, "only", "max_nodes")
            yield Finding(
                summary=f'jobs of up to {asked:,} nodes may spill from "{name}", pool '
                f'"{spill.to}" has {most:,} at most',
                path=path,
                severity=Severity.WARNING,
                hint=f"at most {most}",
                relies_on=(path, spill_path(name, "to"), ("pools", spill.to)),
            )
        there = (each.max_time for each in partitions.values() if spill.to in each.pools)
        limit = strictest((partition.max_time, most_generous(there)))
        longest = spill.only.max_time
        if limit is not None and longest is not None and longest.value > limit.value:
            path = spill_path(name, "only", "max_time")
            yield Finding(
                summary=f'jobs of up to {longest} may spill from "{name}", no job there runs for '
                f"more than {limit}",
                path=path,
                severity=Severity.WARNING,
                hint=f"at most {limit}",
                relies_on=(
                    path,
                    spill_path(name, "to"),
                    *((*_PARTITIONS, word, key) for word in partitions for key in _LIMITS),
                ),
            )
