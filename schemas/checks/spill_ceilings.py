"""When jobs spill and what that may cost."""

from __future__ import annotations

from collections.abc import Iterator

from ..cost import pool_cost
from ..diagnostics import PathTuple, Severity
from ..spec import CloudSite, Pool
from .context import CheckContext
from .registry import Finding, check
from .spill_targets import spill_path, spills


@check("GC714", summary="Nothing says how much a spill may cost.")
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
def ceiling_below_one_node(context: CheckContext) -> Iterator[Finding]:
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
    rungs = pool_cost(pool, site, context.catalog).rungs
    prices = [None if rung.is_bound else rung.usd_per_hour for rung in rungs]
    return None if None in prices else min(price for price in prices if price is not None)


@check("GC716", summary="Jobs spill without waiting at all.")
def spill_at_once(context: CheckContext) -> Iterator[Finding]:
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
