"""Pools that jobs spill to: the same kind of node, elsewhere, that comes when it is needed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..cycles import cycles
from ..diagnostics import PathTuple, Severity
from ..parity import differing_versions
from ..spec import Partition, Pool, Spill
from .context import CheckContext
from .registry import Finding, check

if TYPE_CHECKING:
    from ..catalog.machine import Gpu


def spill_path(partition: str, *steps: str | int) -> PathTuple:
    """Return the place of a partition's spill, or of something in it."""
    return ("scheduler", "partitions", partition, "spill", *steps)


def spills(context: CheckContext) -> Iterator[tuple[str, Partition, Spill, Pool]]:
    """Yield (partition, itself, its spill, the target) where the target is a compute pool."""
    partitions = context.scheduler.partitions if context.scheduler is not None else {}
    for name, spill in context.spills.items():
        pool = context.pools.get(spill.to)
        if pool is not None and pool.role == "compute" and spill.to not in partitions[name].pools:
            yield name, partitions[name], spill, pool


@check("GC704", summary="A spill goes to a pool that can't take its jobs.")
def spill_to_nowhere(context: CheckContext) -> Iterator[Finding]:
    """`spill.to` is a compute pool beside those of the partition."""
    partitions = context.scheduler.partitions if context.scheduler is not None else {}
    for name, spill in context.spills.items():
        path = spill_path(name, "to")
        pool = context.pools.get(spill.to)
        if pool is not None and pool.role != "compute":
            yield Finding(
                summary=f'partition "{name}" spills to pool "{spill.to}", which is a {pool.role}',
                path=path,
                hint="name a compute pool",
                relies_on=(path, ("pools", spill.to, "role")),
            )
        elif spill.to in partitions[name].pools:
            yield Finding(
                summary=f'partition "{name}" spills to its own pool "{spill.to}"',
                path=path,
                hint=f"take {spill.to} out of the partition's pools, or spill to another",
                relies_on=(path, ("scheduler", "partitions", name, "pools")),
            )


@check("GC705", summary="A spill goes to nodes with other GPUs.")
def spill_to_other_gpus(context: CheckContext) -> Iterator[Finding]:
    """A job that moves finds the GPUs that it asked for: model, number in a node, and memory.

    A job built for eight H100 a node fails or crawls on others. The target is like one of the
    partition's pools, or has more memory a GPU.
    """
    for name, partition, spill, target in spills(context):
        machines = [
            context.machine(context.pools[pool])
            for pool in partition.pools
            if pool in context.pools
        ]
        there = context.machine(target)
        known = [machine.gpu for machine in machines if machine is not None]
        if there is None or not known or len(known) < len(partition.pools):
            continue
        if any(_takes(there.gpu, gpu) for gpu in known):
            continue
        here = " or ".join(dict.fromkeys(_gpus(gpu) for gpu in known))
        yield Finding(
            summary=f'partition "{name}" has {here} a node, pool "{spill.to}" has '
            f"{_gpus(there.gpu)}",
            path=spill_path(name, "to"),
            hint="spill to nodes with the same GPUs",
            relies_on=(
                spill_path(name, "to"),
                ("scheduler", "partitions", name, "pools"),
                *(("pools", pool, "machine") for pool in (*partition.pools, spill.to)),
            ),
        )


def _takes(there: Gpu | None, here: Gpu | None) -> bool:
    if there is None or here is None:
        return there is here
    same = (there.vendor, there.model, there.count) == (here.vendor, here.model, here.count)
    return same and there.memory_gib >= here.memory_gib


def _gpus(gpu: Gpu | None) -> str:
    return "no GPU" if gpu is None else f"{gpu.count} {gpu.model} of {gpu.memory_gib:g} GiB"


@check("GC706", summary="A spill goes to nodes with other software.")
def spill_to_other_software(context: CheckContext) -> Iterator[Finding]:
    """A job that moves finds the versions that it was built with.

    Only versions that the spec names are compared; `auto` takes what fits. Jobs in containers bring
    their own CUDA and NCCL, but not the driver.
    """
    for name, partition, spill, target in spills(context):
        for word in partition.pools:
            if word not in context.pools:
                continue
            own = context.pools[word].software
            other = differing_versions(own, target.software, context.software)
            if other:
                yield Finding(
                    summary=f'pool "{word}" of partition "{name}" and pool "{spill.to}", which it '
                    f"spills to, differ: {', '.join(other)}",
                    path=spill_path(name, "to"),
                    severity=Severity.WARNING,
                    hint="give both the same software",
                    relies_on=(
                        spill_path(name, "to"),
                        ("software",),
                        ("pools", word, "software"),
                        ("pools", spill.to, "software"),
                    ),
                )
                break


@check("GC707", summary="A spill goes to a pool that does not grow.")
def spill_to_fixed_pool(context: CheckContext) -> Iterator[Finding]:
    """Nodes to spill to come with the jobs and go after them.

    A pool with a fixed `count` runs, and is paid for, whether something spills or not. Write
    `count: {min: 0, max: 16}`. Nothing is said of machines that are there anyway (bare metal).
    """
    for name, _partition, spill, target in spills(context):
        if target.count is not None and not target.is_elastic and context.makes_machines(target):
            yield Finding(
                summary=f'partition "{name}" spills to pool "{spill.to}", whose machines run '
                "all the time",
                path=spill_path(name, "to"),
                severity=Severity.WARNING,
                hint=f"write count: {{min: 0, max: {target.most}}} in pool {spill.to}",
                relies_on=(spill_path(name, "to"), ("pools", spill.to, "count")),
            )


@check("GC717", summary="Jobs spill in a circle.")
def spill_in_a_circle(context: CheckContext) -> Iterator[Finding]:
    """A spill leads away: the target's partition must not spill back.

    Jobs would wait on both sides for nodes that the other side's jobs are waiting for too.
    """
    partitions = context.scheduler.partitions if context.scheduler is not None else {}
    of_pool: dict[str, list[str]] = {}
    for name in context.spills:
        for pool in partitions[name].pools:
            of_pool.setdefault(pool, []).append(name)
    edges = {
        name: [other for other in of_pool.get(spill.to, ()) if other != name]
        for name, spill in context.spills.items()
    }
    for circle in cycles(edges):
        yield Finding(
            summary=f"partitions spill in a circle: {' > '.join([*circle, circle[0]])}",
            path=spill_path(circle[0], "to"),
            hint="let only one of them spill",
            relies_on=tuple(("scheduler", "partitions", name) for name in circle),
        )


@check("GC718", summary="A spill goes to nodes of the default partition.")
def spill_to_the_default(context: CheckContext) -> Iterator[Finding]:
    """Nodes that every job is sent to are taken when others spill there.

    Jobs of the default partition then start the burst nodes themselves, without waiting and without
    the spill's ceiling.
    """
    partitions = context.scheduler.partitions if context.scheduler is not None else {}
    defaults = {pool: name for name, one in partitions.items() if one.default for pool in one.pools}
    for name, _partition, spill, _target in spills(context):
        other = defaults.get(spill.to)
        if other is not None and other != name:
            yield Finding(
                summary=f'partition "{name}" spills to pool "{spill.to}", which the default '
                f'partition "{other}" fills',
                path=spill_path(name, "to"),
                severity=Severity.WARNING,
                hint=f"take {spill.to} out of {other}",
                relies_on=(spill_path(name, "to"), ("scheduler", "partitions", other)),
            )
