"""From a spec and the catalog to the rule of a partition's spill."""

from __future__ import annotations

from collections.abc import Iterator

from .....schemas.catalog import Catalog
from .....schemas.cost.pools import PoolCost, pool_cost
from .....schemas.derived.graph import AccountTree
from .....schemas.derived.storage import data_locations
from .....schemas.spec import ClusterSpec, Partition, Pool, SlurmScheduler, Spill
from .....schemas.spec.scheduler.slurm import RESUME_TIMEOUT_S
from .....schemas.spec.scheduler.work import SUSPEND_AFTER_S
from .....schemas.spec.sites.purchase import Option as BoughtSo
from .....schemas.spec.units import Duration, most_generous, strictest
from .....schemas.stack.parity import differing_versions
from .rule import Ceiling, PurchaseOption, Rule, Target


def spilling_partitions(spec: ClusterSpec) -> tuple[str, ...]:
    """Return the partitions whose jobs may spill, in file order."""
    return tuple(name for name, each in spec.scheduler.partitions.items() if each.spill is not None)


def rule_of(spec: ClusterSpec, catalog: Catalog, partition: str) -> Rule | None:
    """Return the rule of a partition; None where its jobs don't spill.

    Args:
        spec: a spec that passed its checks.
        catalog: has the machine types and their prices.
        partition: one of the scheduler's.
    """
    partition_spec = spec.scheduler.partitions[partition]
    spill = partition_spec.spill
    if spill is None:
        return None
    home = [spec.pools[name].machine or "" for name in partition_spec.pools]
    gpus = [catalog.machines[name].gpu for name in home if name in catalog.machines]
    qos_times = {name: qos.max_time for name, qos in spec.scheduler.qos.items()}
    return Rule(
        partition=partition,
        after=spill.after.value,
        target=_target(spec, catalog, partition_spec, spill),
        ceilings=tuple(_ceilings(spec, catalog, partition, spill)),
        gpu_models=frozenset(gpu.model for gpu in gpus if gpu is not None),
        max_time=_seconds(strictest((partition_spec.max_time, spill.only.max_time))),
        qos_max_time={name: each.value for name, each in qos_times.items() if each is not None},
        max_nodes=spill.only.max_nodes,
        accounts=AccountTree(spec.scheduler.accounts).with_parts(spill.only.accounts) or None,
        qos=frozenset(spill.only.qos) or None,
        needs=tuple(spill.only.data),
    )


def _target(spec: ClusterSpec, catalog: Catalog, partition_spec: Partition, spill: Spill) -> Target:
    pool = spec.pools[spill.to]
    machine = catalog.machines.get(pool.machine or "")
    gpu = None if machine is None else machine.gpu
    scheduler = spec.scheduler
    timed = scheduler if isinstance(scheduler, SlurmScheduler) else None
    cost = pool_cost(pool, spec.sites[pool.site], catalog)
    words = (spill.to, pool.site, pool.machine, None if gpu is None else gpu.model)
    differs = (
        word
        for name in partition_spec.pools
        for word in differing_versions(spec.pools[name].software, pool.software, spec.software)
    )
    return Target(
        pool=spill.to,
        site=pool.site,
        machine=pool.machine,
        gpu_model=None if gpu is None else gpu.model,
        gpus_per_node=0 if gpu is None else gpu.count * pool.slices_per_gpu,
        features=frozenset(word for word in words if word),
        most=cost.count,
        always=cost.least,
        max_time=_seconds(
            most_generous(
                each.max_time for each in scheduler.partitions.values() if spill.to in each.pools
            )
        ),
        purchase_options=tuple(_purchase_options(pool, cost)),
        software_differs=tuple(dict.fromkeys(differs)),
        data=data_locations(spec, spill.to),
        start_up=RESUME_TIMEOUT_S if timed is None else timed.resume_s,
        idle=SUSPEND_AFTER_S if timed is None else timed.suspend_s,
    )


def purchase_options(spec: ClusterSpec, catalog: Catalog, pool: Pool) -> tuple[PurchaseOption, ...]:
    """Return the ways to buy nodes of a pool in the order of its `market`; () where all is free."""
    return tuple(_purchase_options(pool, pool_cost(pool, spec.sites[pool.site], catalog)))


def _purchase_options(pool: Pool, cost: PoolCost) -> Iterator[PurchaseOption]:
    written = pool.market or ["on-demand"]
    for number, (option, price) in enumerate(zip(cost.purchase_options, written, strict=False)):
        key = option.market if written.count(price) == 1 else f"{option.market}#{number}"
        lasts = None
        if isinstance(price, BoughtSo):
            lasts = price.flex_start or price.buy_capacity_block
        yield PurchaseOption(
            key=key,
            usd_per_hour=option.usd_per_hour,
            runs_for=_seconds(lasts),
        )


def _ceilings(
    spec: ClusterSpec, catalog: Catalog, partition: str, spill: Spill
) -> Iterator[Ceiling]:
    """Yield the spill's own ceilings, and what the other pools leave of the budget.

    A budget is left out where the price of another pool is unknown.
    """
    where = f"scheduler.partitions.{partition}.spill"
    if spill.max_usd_per_hour is not None:
        yield Ceiling(where=f"{where}.max_usd_per_hour", usd=spill.max_usd_per_hour, per="hour")
    if spill.max_usd_per_day is not None:
        yield Ceiling(where=f"{where}.max_usd_per_day", usd=spill.max_usd_per_day, per="day")
    budget = None if spec.budget is None else spec.budget.max_usd_per_hour
    if budget is None:
        return
    costs = {
        name: pool_cost(pool, spec.sites[pool.site], catalog) for name, pool in spec.pools.items()
    }
    others: list[float | None] = [
        cost.usd_per_hour_now if name == spill.to else cost.usd_per_hour
        for name, cost in costs.items()
        if cost.purchase_options
    ]
    known = [usd for usd in others if usd is not None]
    if len(known) == len(others):
        left = max(0.0, budget - sum(known))
        yield Ceiling(where="budget.max_usd_per_hour", usd=left, per="hour")


def _seconds(limit: Duration | None) -> float | None:
    return None if limit is None else limit.value
