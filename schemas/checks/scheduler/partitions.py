"""Partitions, their limits, and the roles of the pools behind them."""

from __future__ import annotations

from collections.abc import Iterator

from ...diagnostics import PathTuple, Severity, listing
from ...spec import NoScheduler, Partition
from ...spec.units import Duration
from ...structure.fix.edits import Remove
from ..context import CheckContext
from ..registry import Finding, check


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
        suggestion = context.suggest(pool, declared)
        question = f': did you mean "{suggestion}"?' if suggestion else ""
        yield Finding(
            summary=f'partition "{partition}" names an unknown pool "{pool}"{question}',
            path=path,
            hint=hint,
            suggestion=suggestion,
        )


_DEFAULT_MEMORY = ("memory_per_cpu", "memory_per_gpu", "memory_per_node")


@check("GC558", summary="A partition sets the default memory of jobs twice.")
def default_memory_ambiguous(context: CheckContext) -> Iterator[Finding]:
    """Slurm takes one of DefMemPerCPU, DefMemPerGPU and DefMemPerNode (slurm.conf(5)).

    They are a partition's `memory_per_cpu`, `memory_per_gpu` and `memory_per_node`, or one of them
    under `scheduler.settings.slurm` for all partitions that say none.
    """
    for name, partition in _partitions(context).items():
        said = [key for key in _DEFAULT_MEMORY if getattr(partition, key) is not None]
        for key in said[1:]:
            yield Finding(
                summary=f'partition "{name}" says {listing(said)}: Slurm takes one of them',
                path=("scheduler", "partitions", name, key),
                at_key=True,
                hint=f"keep {said[0]} or {key}",
            )
    settings = () if context.slurm is None else context.slurm.settings.slurm
    named = [name for name in settings if name.startswith("DefMemPer")]
    for each in named[1:]:
        yield Finding(
            summary=f"{listing(named)}: Slurm takes one of them",
            path=("scheduler", "settings", "slurm", each),
            at_key=True,
            hint=f"keep {named[0]} or {each}",
        )


@check("GC553", summary="A partition has a name that Slurm takes for something else.")
def partition_name_reserved(context: CheckContext) -> Iterator[Finding]:
    """No partition is called `default`, in any case.

    In slurm.conf that line has the settings of all partitions after it (slurm.conf(5),
    "PartitionName").
    """
    for name in _partitions(context) if context.slurm is not None else ():
        if name.casefold() == "default":
            yield Finding(
                summary=f'Slurm takes "PartitionName={name}" for settings of other partitions',
                path=("scheduler", "partitions", name),
                at_key=True,
                hint="call the partition main, and write `default: true` in it",
            )


def _has_compute(context: CheckContext, partition: str) -> bool:
    """Say whether a partition names a pool that computes."""
    pools = (context.pools.get(name) for name in _partitions(context)[partition].pools)
    return any(pool is not None and pool.is_compute for pool in pools)


@check("GC505", summary="A partition names a pool that does not compute.")
def pool_without_slurmd(context: CheckContext) -> Iterator[Finding]:
    """Only compute pools take part in partitions.

    Controllers and logins run no jobs, but a controller that says `compute: true`.
    """
    for partition, name, path in _references(context):
        pool = context.pools.get(name)
        if pool is not None and not pool.is_compute:
            yield Finding(
                summary=f'partition "{partition}" names pool "{name}", which is a {pool.role}',
                path=path,
                hint="name compute pools only, or write compute: true in the controller's pool"
                if pool.role == "controller" and context.slurm is not None
                else "name compute pools only",
                fix=Remove(path) if _has_compute(context, partition) else None,
                relies_on=(path, ("pools", name, "role"), ("pools", name, "compute")),
            )


@check("GC506", summary="Two partitions are the default.")
def several_default_partitions(context: CheckContext) -> Iterator[Finding]:
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
def pool_without_partition(context: CheckContext) -> Iterator[Finding]:
    """No job can reach a compute pool that is in no partition and is no target of a spill.

    Without any partitions in the spec there is one, "main", with every compute pool. Pools that
    serve a file system run no jobs and belong in none, as those for Kubernetes' own pods do.
    """
    reached = {pool for _, pool, _ in _references(context)}
    reached |= {spill.to for spill in context.spills.values()} | set(context.mounts.servers)
    if not _partitions(context) or not reached <= (context.declared_pools or frozenset()):
        return  # no partitions at all, or a misspelt pool, which is an error already
    for name, pool in context.pools.items():
        if pool.runs_jobs and name not in reached:
            yield Finding(
                summary=f'compute pool "{name}" is in no partition: no job can reach it',
                path=("pools", name),
                at_key=True,
                severity=Severity.WARNING,
                hint=f"add {name} to the pools of a partition",
                relies_on=(("scheduler",), ("storage",), ("pools", name, "role")),
            )


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
def time_limit_zero(context: CheckContext) -> Iterator[Finding]:
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
        yield (*_PARTITIONS, name, "default_time"), partition.default_time
        if partition.spill is not None:
            path = (*_PARTITIONS, name, "spill", "only", "max_time")
            yield path, partition.spill.only.max_time
    for name, qos in context.scheduler.qos.items():
        yield ("scheduler", "qos", name, "max_time"), qos.max_time


@check("GC538", summary="Jobs that say no time get more than their partition allows.")
def default_time_exceeds_limit(context: CheckContext) -> Iterator[Finding]:
    """Slurm would let no job begin that says no `--time`, and none shows why."""
    if context.slurm is None:
        return
    for name, partition in context.slurm.partitions.items():
        most, usual = partition.max_time, partition.default_time
        if most is None or usual is None or usual.value <= most.value:
            continue
        path: PathTuple = (*_PARTITIONS, name, "default_time")
        yield Finding(
            summary=f'partition "{name}" gives jobs that say no time {usual}, and allows {most}',
            path=path,
            hint=f"write {most} or less, or leave it out: then the longest time is the usual one",
            relies_on=(path, (*_PARTITIONS, name, "max_time")),
        )


@check("GC528", summary="A partition lets jobs request more nodes than it has.")
def max_nodes_exceeds_partition(context: CheckContext) -> Iterator[Finding]:
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


_ROLES = ("pools", "*", "role")


@check("GC501", summary="No pool is the controller.")
def no_controller(context: CheckContext) -> Iterator[Finding]:
    """The scheduler needs a controller host.

    Give one pool `role: controller`; it needs no GPU and no machine type. Only where a cloud runs
    the control plane of Kubernetes, and with `scheduler: {type: none}`, there is none.
    """
    if not context.pools or any(pool.role == "controller" for pool in context.pools.values()):
        return
    kubernetes = context.kubernetes
    if kubernetes is not None and kubernetes.control_plane != "self":
        return
    if isinstance(context.scheduler, NoScheduler):
        return
    site = next(iter(context.sites), "SITE")
    who = "Slurm" if kubernetes is None else "Kubernetes"
    yield Finding(
        summary=f"no pool has the role controller: {who} needs one",
        path=("pools",),
        at_key=True,
        hint=f"add a pool such as head: {{site: {site}, role: controller}}",
        relies_on=(_ROLES, ("scheduler", "type"), ("scheduler", "control_plane")),
    )


@check("GC502", summary="More or less than one controller host.")
def controller_count(context: CheckContext) -> Iterator[Finding]:
    """One host is the controller; Slurm's backup controllers need `state_save`.

    Of several controllers one works, and another takes over with the state that it reads from a
    file system they share: name that storage as `scheduler.state_save`. Under Kubernetes their
    number is odd.
    """
    controllers = [name for name, pool in context.pools.items() if pool.role == "controller"]
    alone = context.slurm is not None and context.slurm.state_save is None
    saved = ("scheduler", "state_save")
    for name in controllers[1:] if alone else ():
        path = ("pools", name, "role")
        yield Finding(
            summary=f'pool "{name}" is a second controller: first is "{controllers[0]}", and the '
            "spec names no state_save for them to share",
            path=path,
            hint="give one pool the role controller, or add state_save: the storage they share",
            relies_on=(path, saved),
        )
    for name in controllers:
        pool = context.pools[name]
        size = context.size(name)
        if size is None or size == 1 or (not size and pool.hosts is not None):
            continue
        if size and not alone:
            continue
        key = "count" if pool.hosts is None else "hosts"
        why = ", as there is no state_save for them to share" if size else ""
        yield Finding(
            summary=f'controller pool "{name}" has {size:,} hosts, it must be one{why}',
            path=("pools", name, key),
            hint="write count: 1" if key == "count" else "name one host",
            relies_on=(("pools", name, key), saved),
        )


@check("GC559", summary="A pool can't be controller and compute at once.")
def computing_controller_impossible(context: CheckContext) -> Iterator[Finding]:
    """A server that is the whole cluster is a controller with `compute: true`.

    That is for Slurm on hosts that exist and on local nodes, which gcluster sets up over SSH. A
    cloud's controller has rights of its own there, buys no GPUs by `market` or placement and is
    never stopped: write a compute pool next to it. Kubernetes runs no jobs next to etcd, whose
    writes a full disk or a busy processor delays.
    """
    for name, pool in context.pools.items():
        path = ("pools", name, "compute")
        site = context.sites.get(pool.site)
        if not pool.compute:
            continue
        if pool.role != "controller":
            why = f"its role is {pool.role}", "leave compute out: it is for controllers"
        elif context.kubernetes is not None:
            why = "Kubernetes runs no jobs on control planes", "add a compute pool for the jobs"
        elif site is not None and site.is_cloud:
            why = "a cloud's controller runs no jobs", "add a compute pool for the jobs"
        elif site is not None and not site.runs_jobs:
            why = "nothing runs on simulated nodes", "leave compute out"
        elif context.converge == "pull":
            why = "nodes that set themselves up leave the controller out", "write converge: push"
        else:
            continue
        yield Finding(
            summary=f'pool "{name}" can\'t compute: {why[0]}',
            path=path,
            hint=why[1],
            relies_on=(
                path,
                ("pools", name, "role"),
                ("pools", name, "site"),
                ("scheduler", "type"),
                ("converge",),
            ),
        )


@check("GC503", summary="No pool computes.")
def no_compute(context: CheckContext) -> Iterator[Finding]:
    """A cluster needs at least one pool that runs jobs.

    A pool without `role` is a compute pool.
    """
    if context.pools and all(not pool.is_compute for pool in context.pools.values()):
        yield Finding(
            summary="no compute pool: nothing would run jobs",
            path=("pools",),
            at_key=True,
            hint="add a pool with a machine type; its role is compute unless it says otherwise",
            relies_on=(_ROLES,),
        )
