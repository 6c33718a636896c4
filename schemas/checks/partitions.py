"""Slurm partitions and the pools they send jobs to."""

from __future__ import annotations

from collections.abc import Iterator

from ..diagnostics import PathTuple, Severity
from ..mend.fix import Remove
from ..spec import Partition
from ..suggest import listing
from .context import CheckContext
from .registry import Finding, check


def _partitions(context: CheckContext) -> dict[str, Partition]:
    return context.scheduler.partitions if context.scheduler is not None else {}


def _references(context: CheckContext) -> Iterator[tuple[str, str, PathTuple]]:
    """Yield (partition, pool, place) for every pool that a partition names."""
    for name, partition in _partitions(context).items():
        for index, pool in enumerate(partition.pools):
            yield name, pool, ("scheduler", "partitions", name, "pools", index)


@check("GC504", summary="A partition names a pool that is not declared.")
def unknown_pool(context: CheckContext) -> Iterator[Finding]:
    """A partition's `pools` must be names under `pools`."""
    declared = context.declared_pools
    if declared is None:
        return
    hint = f"declared pools: {listing(declared)}" if declared else ""
    for partition, pool, path in _references(context):
        if pool in declared:
            continue
        meant = context.suggest(pool, declared)
        question = f': did you mean "{meant}"?' if meant else ""
        yield Finding(
            summary=f'partition "{partition}" names an unknown pool "{pool}"{question}',
            path=path,
            hint=hint,
            meant=meant,
        )


def _has_compute(context: CheckContext, partition: str) -> bool:
    """Say whether a partition names a pool that computes."""
    pools = (context.pools.get(name) for name in _partitions(context)[partition].pools)
    return any(pool is not None and pool.role == "compute" for pool in pools)


@check("GC505", summary="A partition names a pool that does not compute.")
def pool_without_slurmd(context: CheckContext) -> Iterator[Finding]:
    """Only compute pools take part in partitions.

    Controllers and logins run no jobs.
    """
    for partition, name, path in _references(context):
        pool = context.pools.get(name)
        if pool is not None and pool.role != "compute":
            yield Finding(
                summary=f'partition "{partition}" names pool "{name}", which is a {pool.role}',
                path=path,
                hint="name compute pools only",
                fix=Remove(path) if _has_compute(context, partition) else None,
                relies_on=(path, ("pools", name, "role")),
            )


@check("GC506", summary="Two partitions are the default.")
def two_defaults(context: CheckContext) -> Iterator[Finding]:
    """One partition at most is the default.

    Slurm sends jobs that name no partition there; of two defaults it would take the last.
    """
    defaults = [name for name, partition in _partitions(context).items() if partition.default]
    for name in defaults[1:]:
        path = ("scheduler", "partitions", name, "default")
        first = ("scheduler", "partitions", defaults[0], "default")
        yield Finding(
            summary=f'partition "{name}" is a second default: first is "{defaults[0]}", '
            f"line {context.line_of(first)}",
            path=path,
            hint="keep default: true on one partition",
            relies_on=(path, first),
        )


@check("GC507", summary="A compute pool is in no partition.")
def idle_pool(context: CheckContext) -> Iterator[Finding]:
    """No job can reach a compute pool that is in no partition and is no target of a spill.

    Without any partitions in the spec there is one, "main", with every compute pool. Pools that
    serve a file system run no jobs and belong in none.
    """
    reached = {pool for _, pool, _ in _references(context)}
    reached |= {spill.to for spill in context.spills.values()} | set(context.mounts.servers)
    if not _partitions(context) or not reached <= (context.declared_pools or frozenset()):
        return  # no partitions at all, or a misspelt pool, which is an error already
    for name, pool in context.pools.items():
        if pool.role == "compute" and name not in reached:
            yield Finding(
                summary=f'compute pool "{name}" is in no partition: no job can reach it',
                path=("pools", name),
                at_key=True,
                severity=Severity.WARNING,
                hint=f"add {name} to the pools of a partition",
                relies_on=(("scheduler",), ("storage",), ("pools", name, "role")),
            )
