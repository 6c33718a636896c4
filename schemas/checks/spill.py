"""Jobs that go to another site when they wait too long: targets, data, limits and ceilings."""

from __future__ import annotations

from collections.abc import Iterator

from ..catalog.model.machine import Gpu
from ..cost.pools import pool_cost
from ..derived.graph import cycles
from ..derived.storage import mount_point
from ..diagnostics import PathTuple, Severity
from ..spec import CloudSite, Partition, Pool, Spill
from ..spec.units import most_generous, strictest
from ..stack.parity import differing_versions
from .context import CheckContext
from .registry import Finding, check


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
def spill_target_not_compute(context: CheckContext) -> Iterator[Finding]:
    """`spill.to` is a compute pool other than those of the partition."""
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
    """A job that moves finds the GPUs that it requested: model, number in a node, and memory.

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
def spill_cycle(context: CheckContext) -> Iterator[Finding]:
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
def spill_to_default_partition(context: CheckContext) -> Iterator[Finding]:
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


_PARTITIONS = ("scheduler", "partitions")
_LIMITS = ("pools", "max_time")


@check("GC719", summary="A spill lets larger or longer jobs go than its pool takes.")
def spill_exceeds_target_limits(context: CheckContext) -> Iterator[Finding]:
    """`only.max_nodes` and `only.max_time` are within what the pool and its partitions take.

    Above that they limit nothing: such jobs stay, whatever they wait. `max_nodes` is held against
    the pool's most machines, `max_time` against the partition itself and those the pool is in.
    """
    partitions = {} if context.scheduler is None else context.scheduler.partitions
    for name, partition, spill, _target in spills(context):
        most, requested = context.size(spill.to), spill.only.max_nodes
        if most is not None and requested is not None and requested > most:
            path = spill_path(name, "only", "max_nodes")
            yield Finding(
                summary=f'jobs of up to {requested:,} nodes may spill from "{name}", pool '
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


_WHERE: tuple[PathTuple, ...] = (("storage",), ("pools", "*", "site"))


@check("GC708", summary="Data that a spilled job needs is not where it goes.")
def data_not_at_target(context: CheckContext) -> Iterator[Finding]:
    """Storage named in `only.data` is mounted by the target, or a copy of it is.

    Keep a copy at the target's site: a storage there with `copy_of`, and `stage_within` where data
    may be fetched before the job.
    """
    for name, _partition, spill, target in spills(context):
        if not spill.only.data or not context.mounts.are_certain:
            continue
        there = {context.mounts.origin(word) for word in context.mounts.of(spill.to)}
        for index, word in enumerate(spill.only.data):
            if word not in context.storage or context.mounts.origin(word) in there:
                continue
            path = spill_path(name, "only", "data", index)
            yield Finding(
                summary=f'jobs that spill from "{name}" need "{word}", which pool "{spill.to}" at '
                f'site "{target.site}" does not have',
                path=path,
                hint=f'add a storage at site "{target.site}" with copy_of: {word}',
                relies_on=(path, spill_path(name, "to"), *_WHERE),
            )


@check("GC709", summary="Folders of a partition's nodes are missing where its jobs spill to.")
def mounts_not_at_target(context: CheckContext) -> Iterator[Finding]:
    """A job finds the folders it knows on the nodes it moves to: above all its /home.

    Something is mounted at the same place there, this storage over a link or a copy. Where
    `only.data` says which data jobs need, only /home is looked at.
    """
    for name, partition, spill, _target in spills(context):
        there = {mount_point(context.storage[word]) for word in context.mounts.of(spill.to)}
        missing: dict[str, str] = {}
        for pool in partition.pools:
            for word in context.mounts.of(pool) if pool in context.pools else ():
                mount = mount_point(context.storage[word])
                if mount not in there and (not spill.only.data or _is_home(mount)):
                    missing.setdefault(mount, word)
        if missing and context.mounts.are_certain:
            folders = ", ".join(missing)
            yield Finding(
                summary=f'jobs that spill from "{name}" to pool "{spill.to}" find no {folders}',
                path=spill_path(name, "to"),
                severity=Severity.WARNING,
                hint=f"mount a storage at {folders} there too, or say which data jobs need with "
                "only: {data: [...]}",
                relies_on=(
                    spill_path(name, "to"),
                    spill_path(name, "only"),
                    ("scheduler", "partitions", name, "pools"),
                    *_WHERE,
                ),
            )


def _is_home(mount: str) -> bool:
    return mount == "/home" or mount.startswith("/home/")


@check("GC714", summary="The budget of a spill is not specified.")
def spill_without_ceiling(context: CheckContext) -> Iterator[Finding]:
    """Rented nodes that come by themselves need a ceiling.

    Give the spill `max_usd_per_hour` or `max_usd_per_day`, or the cluster a `budget`. Otherwise the
    most machines of the pool are the only limit.
    """
    budget = context.budget
    if budget is not None and (budget.max_usd_per_hour or budget.max_usd_per_month):
        return
    for name, _partition, spill, target in spills(context):
        ceiling = spill.max_usd_per_hour or spill.max_usd_per_day
        if ceiling is None and isinstance(context.sites.get(target.site), CloudSite):
            yield Finding(
                summary=f'the spill of partition "{name}" has no ceiling in USD, and the cluster '
                "no budget",
                path=spill_path(name),
                at_key=True,
                severity=Severity.WARNING,
                hint="add max_usd_per_hour",
                relies_on=(spill_path(name), ("budget",), ("sites", target.site, "provider")),
            )


@check("GC715", summary="A spill's ceiling is below the price of one node.")
def spill_ceiling_below_node_price(context: CheckContext) -> Iterator[Finding]:
    """With a ceiling below one node's price nothing could ever spill.

    Compared is the cheapest way to buy that the pool's `market` names, where the catalog knows the
    price of each. A ceiling for a day is compared with one node for one hour.
    """
    for name, _partition, spill, target in spills(context):
        price = _cheapest(context, target)
        ceilings = (
            ("max_usd_per_hour", spill.max_usd_per_hour, "an hour"),
            ("max_usd_per_day", spill.max_usd_per_day, "a day"),
        )
        for key, ceiling, during in ceilings:
            if price is None or ceiling is None or ceiling >= price:
                continue
            path = spill_path(name, key)
            yield Finding(
                summary=f'the spill of partition "{name}" may cost ${ceiling:,.2f} {during}, '
                f'one node of pool "{spill.to}" costs ${price:,.2f} an hour',
                path=path,
                hint=f"at least {price:.2f}, times the nodes that may run at once",
                relies_on=(path, spill_path(name, "to"), *_prices(spill.to, target)),
            )


def _prices(name: str, pool: Pool) -> tuple[PathTuple, ...]:
    """Return what a pool's price is drawn from."""
    keys: tuple[PathTuple, ...] = tuple(("pools", name, k) for k in ("machine", "market", "site"))
    return (*keys, ("sites", pool.site))


def _cheapest(context: CheckContext, pool: Pool) -> float | None:
    """Return the lowest price of one node in USD per hour; None unless each way has its own."""
    site = context.sites.get(pool.site)
    if not isinstance(site, CloudSite) or pool.hosts is not None:
        return None
    purchase_options = pool_cost(pool, site, context.catalog).purchase_options
    prices = [None if option.is_bound else option.usd_per_hour for option in purchase_options]
    return None if None in prices else min(price for price in prices if price is not None)


@check("GC716", summary="Jobs spill without waiting at all.")
def spill_without_delay(context: CheckContext) -> Iterator[Finding]:
    """`after` is how long a job waits for the partition's own nodes first.

    With no time at all every job that can't start in the same moment is sent to the other pool,
    even when nodes come free a minute later.
    """
    for name, spill in context.spills.items():
        if spill.after.value == 0:
            path = spill_path(name, "after")
            yield Finding(
                summary=f'jobs of partition "{name}" spill without waiting',
                path=path,
                severity=Severity.WARNING,
                hint="write a time such as 30m",
            )
