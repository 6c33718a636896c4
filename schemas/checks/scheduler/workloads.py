"""Workloads: whether what they request is there, and fits the machines they run on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ...catalog import Machine
from ...derived.graph import AccountTree
from ...diagnostics import PathTuple, listing
from ...spec import (
    KubernetesScheduler,
    Partition,
    Pool,
    SlurmScheduler,
    Workload,
    WorkloadGate,
)
from ...spec.units import strictest
from ..context import CheckContext
from ..registry import Finding, check

AT = "workloads"
POOLS: tuple[PathTuple, ...] = tuple(
    ("pools", "*", key) for key in ("machine", "hosts", "count", "role", "site")
)
NEEDS: tuple[PathTuple, ...] = (("scheduler",), *POOLS)


class WorkloadPlace(NamedTuple):
    """Where a workload runs: its partition and the pools of that, by name."""

    partition: str
    settings: Partition | None
    """None: the spec names no partition, so one holds every compute pool."""
    pools: dict[str, Pool]

    def machines(self, context: CheckContext) -> list[Machine | None]:
        """Return the machine type of each pool."""
        return [context.machine(pool) for pool in self.pools.values()]

    def gpus_of_a_node(self, context: CheckContext) -> int | None:
        """Return the GPUs of a node; None: not known, or not the same in all pools."""
        machines = self.machines(context)
        if not machines or None in machines:
            return None
        counts = {m.gpu.count if m is not None and m.gpu is not None else 0 for m in machines}
        return counts.pop() if len(counts) == 1 else None

    def nodes(self, context: CheckContext) -> int | None:
        """Return how many nodes a job may have; None: not known."""
        sizes = [context.size(pool) for pool in self.pools]
        if None in sizes:
            return None
        total = sum(size or 0 for size in sizes)
        most = None if self.settings is None else self.settings.max_nodes
        return total if most is None else min(total, most)


def scheduler_of(context: CheckContext) -> SlurmScheduler | KubernetesScheduler | None:
    """Return what runs workloads; None: nothing does, or none is declared."""
    return context.slurm or context.kubernetes


def _place(context: CheckContext, workload: Workload) -> WorkloadPlace | None:
    """Return where a workload runs; None where the spec does not say it."""
    scheduler = scheduler_of(context)
    if scheduler is None:
        return None
    written = scheduler.partitions
    if not written:
        if workload.partition not in {None, "main"}:
            return None
        pools = {name: pool for name, pool in context.pools.items() if pool.is_compute}
        return WorkloadPlace("main", None, pools)
    default = next((name for name, one in written.items() if one.default), None)
    name = workload.partition or default or (next(iter(written)) if len(written) == 1 else "")
    if name not in written or not set(written[name].pools) <= context.pools.keys():
        return None
    pools = {pool: context.pools[pool] for pool in written[name].pools}
    return WorkloadPlace(name, written[name], pools)


def placed(context: CheckContext) -> Iterator[tuple[str, Workload, WorkloadPlace]]:
    """Yield each workload whose place is known: its name, itself, where it runs."""
    for name, workload in context.workloads.items():
        place = _place(context, workload)
        if place is not None:
            yield name, workload, place


@check("GC1201", summary="A workload where no scheduler runs it.")
def workload_without_scheduler(context: CheckContext) -> Iterator[Finding]:
    """Workloads are compiled to scripts for Slurm's sbatch, or to Jobs of Kubernetes.

    Without a scheduler nothing would be made of them, so they are refused.
    """
    if context.scheduler is None or scheduler_of(context) is not None:
        return
    for name in context.workloads:
        yield Finding(
            summary=f'workload "{name}" needs a scheduler: scheduler.type is none',
            path=(AT, name),
            at_key=True,
            hint="leave it out, or write scheduler: {type: slurm}",
            relies_on=(("scheduler",), (AT, name)),
        )


@check("GC1202", summary="A workload requests nodes or GPUs that its partition can't give.")
def workload_size(context: CheckContext) -> Iterator[Finding]:
    """A workload says `nodes` or `gpus`, one of the two.

    GPUs are a part of one node or whole nodes, as jobs over several nodes get all GPUs of each. All
    of it, with its spares, is in one partition. An elastic one starts with its `min_nodes` or more.
    """
    for name, workload in context.workloads.items():
        path: PathTuple = (AT, name)
        if (workload.nodes is None) == (workload.gpus is None):
            both = workload.nodes is not None
            yield Finding(
                summary=f'workload "{name}" says ' + ("nodes and gpus" if both else "no size"),
                path=(*path, "gpus") if both else path,
                at_key=True,
                hint="keep one of the two" if both else "add nodes: 2, or gpus: 4",
                relies_on=((*path, "nodes"), (*path, "gpus")),
            )
            continue
        place = _place(context, workload)
        problem = (
            None
            if place is None
            else _too_much(context, workload, place) or _too_many_spares(context, workload, place)
        )
        if problem is not None:
            key, what, hint = problem
            yield Finding(
                summary=f'workload "{name}": {what}',
                path=(*path, key),
                hint=hint,
                relies_on=((*path, key), (*path, "partition"), *NEEDS),
            )


def _too_much(
    context: CheckContext, workload: Workload, place: WorkloadPlace
) -> tuple[str, str, str] | None:
    """Return key, problem and hint of a size that the partition can't give."""
    most, each = place.nodes(context), place.gpus_of_a_node(context)
    key = "nodes" if workload.gpus is None else "gpus"
    fewest = workload.fewest_nodes
    if fewest is not None and workload.gpus is None and fewest > (workload.nodes or 0):
        nodes = workload.nodes or 0
        return "min_nodes", f"min_nodes is above its {nodes} nodes", f"at most {nodes}"
    if workload.gpus is not None and each == 0:
        return key, f'nodes of partition "{place.partition}" have no GPUs', "write nodes instead"
    if workload.gpus is not None and each and workload.gpus > each and workload.gpus % each:
        return (
            key,
            f"{workload.gpus} GPUs are no whole nodes of {each}",
            f"write {workload.gpus // each * each} or {(workload.gpus // each + 1) * each}",
        )
    if most is None or (workload.gpus is not None and not each):
        return None
    nodes = workload.node_count(each or 0)
    if nodes <= most:
        return None
    return (
        key,
        f'{nodes:,} nodes; partition "{place.partition}" gives a job {most:,}',
        f"at most {most}" if key == "nodes" else f"at most {most * (each or 0)}",
    )


def _too_many_spares(
    context: CheckContext, workload: Workload, place: WorkloadPlace
) -> tuple[str, str, str] | None:
    """Return the same of spares, of a workload whose own nodes are there."""
    most, each = place.nodes(context), place.gpus_of_a_node(context)
    if not workload.spares or most is None or each is None:
        return None
    if workload.gpus is not None and workload.gpus < each:
        return "spares", "part of a node has no spare nodes", "leave it out, or request whole nodes"
    nodes = workload.node_count(each)
    if nodes + workload.spares <= most:
        return None
    what = f"{nodes:,} nodes and {workload.spares:,} spare{'s' * (workload.spares > 1)}; "
    what += f'partition "{place.partition}" gives a job {most:,}'
    return "spares", what, f"at most {most - nodes}" if nodes < most else "leave it out"


@check("GC1203", summary="A workload names a partition that is not there.")
def unknown_workload_partition(context: CheckContext) -> Iterator[Finding]:
    """`partition` of a workload is a name under `scheduler.partitions`.

    Without partitions there is one, `main`, with all compute pools. With several and no default a
    job that names none is refused by Slurm.
    """
    if scheduler_of(context) is None:
        return
    declared = context.declared("scheduler.partitions")
    names = set(declared or ()) or {"main"}
    for name, workload in context.workloads.items():
        word = workload.partition
        if word is None and len(names) > 1 and _no_default(context):
            yield Finding(
                summary=f'workload "{name}" names no partition, and none is the default',
                path=(AT, name),
                at_key=True,
                hint=f"add partition: one of {listing(names)}",
                relies_on=((AT, name, "partition"), ("scheduler",)),
            )
        if word is None or word in names:
            continue
        path: PathTuple = (AT, name, "partition")
        suggestion = context.suggest(word, names)
        question = f': did you mean "{suggestion}"?' if suggestion else ""
        yield Finding(
            summary=f'workload "{name}" names an unknown partition "{word}"{question}',
            path=path,
            hint=f"declared: {listing(names)}",
            relies_on=(path, ("scheduler", "partitions")),
            suggestion=suggestion,
        )


def _no_default(context: CheckContext) -> bool:
    scheduler = scheduler_of(context)
    return scheduler is not None and not any(one.default for one in scheduler.partitions.values())


@check("GC1204", summary="A workload's nodes may be of several kinds.")
def workload_machines_differ(context: CheckContext) -> Iterator[Finding]:
    """One launch line is for one kind of node: so many GPUs, one fabric class and its settings.

    Slurm may take nodes of any pool of the partition, so all of them have the same machine type.
    """
    for name, _, place in placed(context):
        kinds = {(pool.machine, pool.fabric or "") for pool in place.pools.values() if pool.machine}
        if len(kinds) > 1:
            yield Finding(
                summary=f'workload "{name}" may run on nodes of several kinds: '
                f'partition "{place.partition}" has {listing(str(m) for m, _ in kinds)}',
                path=(AT, name),
                at_key=True,
                hint="name a partition whose pools are alike: partition: ...",
                relies_on=((AT, name, "partition"), ("scheduler", "partitions"), *POOLS),
            )


@check("GC1208", summary="A workload requests more time than it can get.")
def workload_time(context: CheckContext) -> Iterator[Finding]:
    """`time` is at most what its partition and its QOS allow; a longer job would wait for ever.

    The notice before the end, in which it saves, is a part of that time.
    """
    for name, workload, place in placed(context):
        scheduler = scheduler_of(context)
        qos = None if scheduler is None else scheduler.qos.get(workload.qos or "")
        limits = [
            place.settings.max_time if place.settings else None,
            qos.max_time if qos else None,
        ]
        most = strictest(limits)
        path: PathTuple = (AT, name, "time")
        needs = (path, (AT, name, "qos"), (AT, name, "partition"), ("scheduler",))
        if workload.time is not None and most is not None and workload.time.value > most.value:
            yield Finding(
                summary=f'workload "{name}" requests {workload.time}, and gets {most} at most',
                path=path,
                hint=f"write {most} or less; with a checkpoint it is queued again at its end",
                relies_on=needs,
            )
        saved, limit = workload.checkpoint, workload.time or most
        if saved is not None and limit is not None and saved.notice.value >= limit.value:
            yield Finding(
                summary=f'workload "{name}" is notified {saved.notice} before its end, '
                f"and runs {limit}",
                path=(AT, name, "checkpoint", "notice")
                if saved.notice.written
                else (AT, name, "checkpoint"),
                hint="a shorter notice, or more time",
                relies_on=((AT, name, "checkpoint"), *needs),
            )


@check("GC1210", summary="A workload may not use its partition, account or QOS.")
def workload_not_allowed(context: CheckContext) -> Iterator[Finding]:
    """A partition may be for some accounts and QOS alone, and an account for some QOS."""
    for name, workload, place in placed(context):
        path: PathTuple = (AT, name)
        part = place.settings
        scheduler = scheduler_of(context)
        tree = AccountTree({} if scheduler is None else scheduler.accounts)
        for key, word, allowed in (
            ("account", workload.account, sorted(tree.with_parts(part.accounts)) if part else []),
            ("qos", workload.qos, part.qos if part else []),
        ):
            if word is not None and allowed and word not in allowed:
                yield Finding(
                    summary=f'workload "{name}": partition "{place.partition}" takes no {key} '
                    f'"{word}"',
                    path=(*path, key),
                    hint=f"one of: {listing(allowed)}; or another partition",
                    relies_on=((*path, key), (*path, "partition"), ("scheduler",)),
                )
        account = None if scheduler is None else scheduler.accounts.get(workload.account or "")
        if account and account.qos and workload.qos and workload.qos not in account.qos:
            yield Finding(
                summary=f'workload "{name}": account "{workload.account}" has no QOS '
                f'"{workload.qos}"',
                path=(*path, "qos"),
                hint=f"one of: {listing(account.qos)}",
                relies_on=((*path, "qos"), (*path, "account"), ("scheduler",)),
            )


@check("GC1217", summary="A workload would be taken for one that hangs, or never.")
def workload_hang(context: CheckContext) -> Iterator[Finding]:
    """`hang` is how long a workload may print nothing.

    It is longer than any pause of a healthy one, its start included, and shorter than its time:
    else its end comes first. With 0 each would be ended at its start.
    """
    for name, workload, place in placed(context):
        hang = workload.hang
        if hang is None:
            continue
        path: PathTuple = (AT, name, "hang")
        limit = strictest([workload.time, place.settings.max_time if place.settings else None])
        if hang.value <= 0:
            what, hint = "may print nothing for no time at all", "write 10m, or leave it out"
        elif limit is not None and hang.value >= limit.value:
            what = f"may print nothing for {hang}, and runs {limit}"
            hint = "a shorter hang, or more time"
        else:
            continue
        yield Finding(
            summary=f'workload "{name}" {what}',
            path=path,
            hint=hint,
            relies_on=(path, (AT, name, "time"), (AT, name, "partition"), ("scheduler",)),
        )


@check("GC1218", summary="A workload's gate needs nodes that can exchange messages.")
def workload_gate(context: CheckContext) -> Iterator[Finding]:
    """The gate compares nodes two by two, so it names a slow one among three or more.

    `gate: allreduce` measures before the job; `gate: {before: allreduce, after: allreduce}` says
    when.
    """
    for name, workload, place in placed(context):
        each = place.gpus_of_a_node(context)
        if workload.gate is None or (workload.gpus is not None and not each):
            continue
        if workload.gates == WorkloadGate():
            yield Finding(
                summary=f'workload "{name}" has a gate that never measures',
                path=(AT, name, "gate"),
                hint="write gate: {before: allreduce, after: allreduce}, or one of the two",
                relies_on=((AT, name, "gate"),),
            )
            continue
        nodes = workload.node_count(each or 0) + workload.spares
        fewest = 3
        if nodes < fewest:
            path: PathTuple = (AT, name, "gate")
            yield Finding(
                summary=f'workload "{name}" has a gate and {nodes} node{"s" * (nodes != 1)}: '
                f"of fewer than {fewest} the slow one can't be named",
                path=path,
                hint="leave it out, or add spares",
                relies_on=(path, (AT, name), *NEEDS),
            )
