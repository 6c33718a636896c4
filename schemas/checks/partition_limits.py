"""What partitions let jobs ask for: which is the default, how long and large jobs may be."""

from __future__ import annotations

from collections.abc import Iterator

from ..diagnostics import PathTuple, Severity
from ..mend.fix import Remove
from ..spec.units import Duration
from .context import CheckContext
from .registry import Finding, check

_PARTITIONS: PathTuple = ("scheduler", "partitions")


@check("GC526", summary="No partition is the default.")
def no_default_partition(context: CheckContext) -> Iterator[Finding]:
    """A job that names no partition is refused unless one is the default.

    Of several partitions write `default: true` in one. A single partition is the default anyway.
    """
    partitions = context.scheduler.partitions if context.scheduler is not None else {}
    if len(partitions) > 1 and not any(one.default for one in partitions.values()):
        yield Finding(
            summary=f"none of the {len(partitions):,} partitions is the default: jobs have to name "
            "one",
            path=_PARTITIONS,
            at_key=True,
            severity=Severity.WARNING,
            hint="write default: true in one of them",
            relies_on=((*_PARTITIONS, "*", "default"),),
        )


@check("GC527", summary="A time limit is zero.")
def no_time_at_all(context: CheckContext) -> Iterator[Finding]:
    """A limit of no time lets no job run; leave `max_time` out for no limit."""
    for path, limit in _time_limits(context):
        if limit is not None and limit.value == 0:
            who = "QOS" if path[1] == "qos" else "partition"
            yield Finding(
                summary=f'{who} "{path[2]}": no job can run within {limit}',
                path=path,
                hint="remove it for no limit, or write one such as 7d",
                fix=Remove(path),
            )


def _time_limits(context: CheckContext) -> Iterator[tuple[PathTuple, Duration | None]]:
    if context.scheduler is None:
        return
    for name, partition in context.scheduler.partitions.items():
        yield (*_PARTITIONS, name, "max_time"), partition.max_time
        if partition.spill is not None:
            path = (*_PARTITIONS, name, "spill", "only", "max_time")
            yield path, partition.spill.only.max_time
    for name, qos in context.scheduler.qos.items():
        yield ("scheduler", "qos", name, "max_time"), qos.max_time


@check("GC528", summary="A partition lets jobs ask for more nodes than it has.")
def more_nodes_than_there_are(context: CheckContext) -> Iterator[Finding]:
    """`max_nodes` above the nodes of the partition's pools limits nothing."""
    if context.scheduler is None:
        return
    for name, partition in context.scheduler.partitions.items():
        pools = set(partition.pools)
        if partition.max_nodes is None or not pools <= context.pools.keys():
            continue
        sizes = [context.size(pool) for pool in pools]
        known = [size for size in sizes if size is not None]
        if len(known) < len(sizes) or partition.max_nodes <= sum(known):
            continue
        path: PathTuple = (*_PARTITIONS, name, "max_nodes")
        yield Finding(
            summary=f'partition "{name}" lets a job have {partition.max_nodes:,} nodes, '
            f"but has {sum(known):,}",
            path=path,
            severity=Severity.WARNING,
            hint=f"at most {sum(known)}",
            relies_on=(
                path,
                (*_PARTITIONS, name, "pools"),
                *(("pools", pool, key) for pool in pools for key in ("hosts", "count")),
            ),
        )
