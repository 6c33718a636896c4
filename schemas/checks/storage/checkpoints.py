"""Checkpoints of the largest job: where they go, how large they are, how often they are written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ...catalog.figures import reliability
from ...derived.storage import daly_interval_s, mtbf_s, waste
from ...diagnostics import PathTuple, Severity
from ...spec import LustreStorage, ObjectStorage, ScratchStorage
from ...spec.units import Duration
from ..context import CheckContext
from ..registry import Finding, check

_AT: PathTuple = ("checkpointing",)
_TIB = 2.0**40
_MUCH_MORE = 2.0
"""Waste beyond this many times the least possible is worth a word, ..."""
_WORTH_SAYING = 0.01
"""... if it is also this share of the job's time more."""
_POOLS: tuple[PathTuple, ...] = tuple(
    ("pools", "*", key) for key in ("machine", "hosts", "count", "role", "site")
)


@check("GC451", summary="The size of a checkpoint is not specified, or specified twice.")
def checkpoint_size_ambiguous(context: CheckContext) -> Iterator[Finding]:
    """Give `size`, or the model's `parameters` to have it estimated at 14 bytes each."""
    checkpointing = context.checkpointing
    if checkpointing is None or (checkpointing.size is None) != (checkpointing.parameters is None):
        return
    needs = ((*_AT, "size"), (*_AT, "parameters"))
    if checkpointing.size is None:
        yield Finding(
            summary="checkpointing does not say how large a checkpoint is",
            path=_AT,
            at_key=True,
            severity=Severity.WARNING,
            hint="add size: 500 GB, or parameters: 70000000000",
            relies_on=needs,
        )
    else:
        yield Finding(
            summary="checkpointing has both its size and its parameters",
            path=(*_AT, "parameters"),
            at_key=True,
            hint="keep one of the two",
            relies_on=needs,
        )


def _gpus(context: CheckContext, pools: Iterable[str]) -> int | None:
    """Return the GPUs of some pools; None when one isn't known."""
    total = 0
    for name in pools:
        pool = context.pools.get(name)
        machine = None if pool is None else context.machine(pool)
        size = None if pool is None else context.size(name)
        if machine is None or size is None:
            return None
        total += size * (machine.gpu.count if machine.gpu is not None else 0)
    return total


def _largest(context: CheckContext) -> int | None:
    """Return the GPUs of the largest partition; None when one isn't known."""
    if context.scheduler is None:
        return None
    compute = [name for name, pool in context.pools.items() if pool.is_compute]
    groups = [one.pools for one in context.scheduler.partitions.values()] or [compute]
    sizes = [_gpus(context, pools) for pools in groups]
    return None if None in sizes else max(size or 0 for size in sizes)


@check("GC452", summary="A job is to have more GPUs than its partition.")
def checkpoint_job_exceeds_partition(context: CheckContext) -> Iterator[Finding]:
    """`checkpointing.gpus` is at most what the largest partition has: a job stays in one."""
    requested = context.checkpointing.gpus if context.checkpointing is not None else None
    largest = None if requested is None else _largest(context)
    if requested is not None and largest is not None and requested > largest:
        yield Finding(
            summary=f"a job of {requested:,} GPUs fits in no partition: "
            f"the largest has {largest:,}",
            path=(*_AT, "gpus"),
            hint=f"at most {largest}",
            relies_on=((*_AT, "gpus"), ("scheduler", "partitions"), *_POOLS),
        )


@check("GC453", summary="Checkpoints are written to where they can't stay.")
def checkpoint_storage_ephemeral(context: CheckContext) -> Iterator[Finding]:
    """A checkpoint outlives the node that wrote it, and other nodes read it.

    So it goes to storage that compute nodes mount and may write: not to a bucket that is read only,
    and not to the node's own disks, which are gone with the node.
    """
    name = context.checkpointing.storage if context.checkpointing is not None else ""
    storage = context.storage.get(name)
    if storage is None:
        return
    path: PathTuple = (*_AT, "storage")
    needs = (path, ("storage", name), *_POOLS)
    mounting = context.mounts.mounted_by(name)
    if isinstance(storage, ObjectStorage) and storage.read_only:
        yield Finding(
            summary=f'checkpoints can\'t be written to "{name}", which is read only',
            path=path,
            hint="name a storage that nodes may write",
            relies_on=needs,
        )
    elif isinstance(storage, ScratchStorage):
        yield Finding(
            summary=f'checkpoints on "{name}" are gone with the node that wrote them',
            path=path,
            severity=Severity.WARNING,
            hint="write them to Lustre, NFS or a bucket, or copy them there",
            relies_on=needs,
        )
    elif context.mounts.is_certain(name) and not any(
        context.pools[pool].is_compute for pool in mounting
    ):
        yield Finding(
            summary=f'no compute pool mounts "{name}", where checkpoints are written',
            path=path,
            hint=f"add the pools that run the job to the pools of {name}",
            relies_on=needs,
        )


class _Plan(NamedTuple):
    """A job's checkpoints; times in seconds."""

    write: float
    every: float
    between_failures: float
    gpus: int
    explained: str


def _plan(context: CheckContext) -> _Plan | None:
    """Work out write time and failures; None when something isn't known."""
    checkpointing = context.checkpointing
    storage = None if checkpointing is None else context.storage.get(checkpointing.storage)
    if checkpointing is None or not isinstance(storage, LustreStorage):
        return None
    gpus = checkpointing.gpus or _largest(context)
    if not gpus or storage.capacity is None or storage.throughput is None:
        return None

    known = reliability()
    per_parameter = known.checkpoints.bytes_per_parameter
    size = checkpointing.size.value if checkpointing.size is not None else None
    if size is None and checkpointing.parameters is not None:
        size = checkpointing.parameters * per_parameter
    speed = storage.capacity.value / _TIB * storage.throughput.value
    if size is None or speed == 0:
        return None
    observed = known.failures[0]
    mtbf = mtbf_s(gpus, observed.per_gpu_hour)
    guess = ", not verified" if known.checkpoints.unverified else ""
    of = "" if checkpointing.size is not None else f" ({per_parameter:g} B a parameter{guess})"
    explained = (
        f"{size / 1e9:,.0f} GB{of} at {speed / 1e9:,.1f} GB/s take {_time(size / speed)}; "
        f"{gpus:,} GPUs fail every {_time(mtbf)} at {observed.per_gpu_hour:.3g} failures per GPU "
        f"and hour ({observed.name}, {observed.date})"
    )
    return _Plan(size / speed, checkpointing.every.value, mtbf, gpus, explained)


def _time(seconds: float) -> str:
    """Write a time in about two digits with the unit that fits: 3h, 8.2d, 85s."""
    for unit, length in (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)):
        if seconds >= 2 * length:
            number = f"{seconds / length:.1f}".removesuffix(".0")
            return f"{number if len(number) <= 3 else round(seconds / length)}{unit}"  # noqa: PLR2004  # 9.9
    return f"{seconds:.2g}s"


def _needs(context: CheckContext) -> tuple[PathTuple, ...]:
    name = "" if context.checkpointing is None else context.checkpointing.storage
    return (_AT, ("storage", name), ("scheduler", "partitions"), *_POOLS)


@check("GC454", summary="Checkpoints are written much more or much less often than pays.")
def checkpoint_interval(context: CheckContext) -> Iterator[Finding]:
    """Writing often costs the time to write; writing seldom loses work at each failure.

    With the write time d and the mean time between failures M a job loses about d/t + t/2M of its
    time, and least near t = sqrt(2 d M) (Young; with Daly's higher terms). d is the checkpoint's
    size over the throughput of a managed Lustre; M follows from the job's GPUs and the failures
    that others counted in training (catalog/reliability.yaml says who and when). Said when the loss
    is twice the least one, and a hundredth of the job's time more.
    """
    plan = _plan(context)
    if plan is None or plan.write >= plan.every:
        return

    best = daly_interval_s(plan.write, plan.between_failures)
    least = waste(best, plan.write, plan.between_failures)
    lost = waste(plan.every, plan.write, plan.between_failures)
    if lost < _MUCH_MORE * least or lost - least < _WORTH_SAYING:
        return
    yield Finding(
        summary=f"a checkpoint every {Duration(plan.every)} loses about {lost:.1%} of the job's "
        f"time, one every {_time(best)} {least:.1%}",
        path=(*_AT, "every"),
        severity=Severity.WARNING,
        detail=plan.explained,
        hint=f"write every: {_time(best)}",
        relies_on=_needs(context),
    )


@check("GC455", summary="A checkpoint takes longer than the time to the next one.")
def checkpoint_longer_than_interval(context: CheckContext) -> Iterator[Finding]:
    """A job that writes all the time does nothing else.

    Write less often, or give the storage more throughput. The size over the throughput of a managed
    Lustre says how long a checkpoint takes.
    """
    if context.checkpointing is not None and context.checkpointing.every.value == 0:
        yield Finding(
            summary="a job that saves its state all the time does nothing else",
            path=(*_AT, "every"),
            hint="write a time such as 1h",
        )
        return
    plan = _plan(context)
    if plan is not None and plan.write >= plan.every:
        yield Finding(
            summary=f"a checkpoint takes {_time(plan.write)}, but is written every "
            f"{Duration(plan.every)}",
            path=(*_AT, "every"),
            severity=Severity.WARNING,
            detail=plan.explained,
            hint="write less often, or give the storage more throughput",
            relies_on=_needs(context),
        )
