"""What a cluster may cost, and when it ends by itself."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import NamedTuple

from ..cost.pools import PoolCost, pool_cost
from ..diagnostics import PathTuple, Severity
from ..spec import CloudSite
from .context import CheckContext
from .registry import Finding, check

_FEEDS: tuple[PathTuple, ...] = (
    *(("pools", "*", key) for key in ("machine", "count", "market", "site")),
    ("sites", "*", "provider"),
    ("sites", "*", "region"),
)
"""What the worst case is drawn from."""
_CERTAIN = frozenset({"reservation"})
"""Markets whose substitute price is their own: reserved capacity is billed at the on-demand
rate."""


class _Rented(NamedTuple):
    """A pool that costs money, in the worst case."""

    name: str
    machine: str
    cost: PoolCost


def _rented(context: CheckContext) -> list[_Rented]:
    """Price the pools at clouds. Machines that are one's own cost no rent."""
    share = 1.0 if context.budget is None else context.budget.utilisation
    rented = []
    for name, pool in context.pools.items():
        site = context.sites.get(pool.site)
        if isinstance(site, CloudSite) and pool.hosts is None and pool.most != 0:
            cost = pool_cost(pool, site, context.catalog, utilisation=share)
            rented.append(_Rented(name, pool.machine or "no machine type", cost))
    return rented


def _above(
    rented: list[_Rented], ceiling: float, figures: list[float | None]
) -> tuple[float, Severity] | None:
    """Return the sum where it is above the ceiling: an error where that is certain."""
    total = sum(figure for figure in figures if figure is not None)
    if total <= ceiling:
        return None
    sure = sum(
        figure
        for pool, figure in zip(rented, figures, strict=True)
        if figure is not None and _is_certain(pool.cost)
    )
    return total, Severity.ERROR if sure > ceiling else Severity.WARNING


def _is_certain(cost: PoolCost) -> bool:
    """Say whether the dearest way to buy has a price of its own."""
    prices = [
        option.usd_per_hour or 0
        for option in cost.purchase_options
        if not option.is_bound or option.market in _CERTAIN
    ]
    return max(prices, default=0) >= max(
        (r.usd_per_hour or 0 for r in cost.purchase_options), default=0
    )


def _table(rented: list[_Rented], figures: list[float | None]) -> str:
    """Write the sum by pool, the dearest first."""
    known = [(f, pool) for f, pool in zip(figures, rented, strict=True) if f is not None]
    known.sort(key=lambda item: -item[0])
    lines = [
        f"{pool.name}: {pool.cost.count:,} x {pool.machine} = ${figure:,.2f}"
        + ("" if _is_certain(pool.cost) else " at most")
        for figure, pool in known[:10]
    ]
    if len(known) > len(lines):
        lines.append(f"and {len(known) - len(lines):,} more pools")
    unknown = [pool.name for pool, figure in zip(rented, figures, strict=True) if figure is None]
    if unknown:
        lines.append(f"not in the sum, as the price is unknown: {', '.join(unknown[:10])}")
    return "\n".join(lines)


@check("GC820", summary="The worst case costs more an hour than the budget allows.")
def hourly_budget_exceeded(context: CheckContext) -> Iterator[Finding]:
    """Every machine running, each bought the dearest way its pool allows, stays in the budget.

    Prices are the catalog's, of machines alone: disks, file systems and traffic come on top. Where
    the dearest way has no price of its own the on-demand price is used; if only that makes the
    sum too large it is a warning, and `spot_max_usd_per_hour` gives certainty.
    """
    ceiling = context.budget.max_usd_per_hour if context.budget is not None else None
    if ceiling is None:
        return
    rented = _rented(context)
    figures = [pool.cost.usd_per_hour for pool in rented]
    above = _above(rented, ceiling, figures)
    if above is not None:
        path: PathTuple = ("budget", "max_usd_per_hour")
        yield Finding(
            summary=f"the cluster may cost ${above[0]:,.2f} an hour, the budget is ${ceiling:,.2f}",
            path=path,
            severity=above[1],
            detail=_table(rented, figures),
            hint=_advice(rented, ceiling, above[1]),
            relies_on=(path, *_FEEDS),
        )


def _advice(rented: list[_Rented], ceiling: float, severity: Severity) -> str:
    """Say what would make it fit."""
    if severity is Severity.WARNING:
        return "write spot_max_usd_per_hour in the market of its pools, or raise the budget"
    single = [
        (pool.cost.usd_per_hour / pool.cost.count, pool)
        for pool in rented
        if pool.cost.usd_per_hour and pool.cost.count
    ]
    price, dearest = max(single, key=lambda item: item[0])
    if price > ceiling:
        return f"one {dearest.machine} alone costs ${price:,.2f} an hour"
    return "lower count or market of the dearest pool, or raise the budget"


@check("GC821", summary="The worst case costs more a month than the budget allows.")
def monthly_budget_exceeded(context: CheckContext) -> Iterator[Finding]:
    """A month has 730 hours; elastic machines run for the share of it that `utilisation` says."""
    ceiling = context.budget.max_usd_per_month if context.budget is not None else None
    if ceiling is None:
        return
    rented = _rented(context)
    figures = [pool.cost.usd_per_month for pool in rented]
    above = _above(rented, ceiling, figures)
    if above is not None:
        path: PathTuple = ("budget", "max_usd_per_month")
        yield Finding(
            summary=f"the cluster may cost ${above[0]:,.0f} a month, the budget is ${ceiling:,.0f}",
            path=path,
            severity=above[1],
            detail=_table(rented, figures),
            hint="lower count, market or utilisation, or raise the budget",
            relies_on=(path, ("budget", "utilisation"), *_FEEDS),
        )


@check("GC822", summary="A budget can't be judged, because a price is unknown.")
def budget_price_unknown(context: CheckContext) -> Iterator[Finding]:
    """An unknown price is never taken as 0.

    The catalog knows no price for a machine type in this market and region, or the pool names none.
    Add one in a catalog file of your own (`catalog: [machines.yaml]`).
    """
    budget = context.budget
    if budget is None or (budget.max_usd_per_hour is None and budget.max_usd_per_month is None):
        return
    rented = _rented(context)
    unknown = [
        pool
        for pool in rented
        if pool.cost.usd_per_hour is None and not _is_misspelt(context, pool.name)
    ]
    hourly = sum(pool.cost.usd_per_hour or 0 for pool in rented)
    monthly = sum(pool.cost.usd_per_month or 0 for pool in rented)
    above = hourly > (budget.max_usd_per_hour or hourly) or monthly > (
        budget.max_usd_per_month or monthly
    )
    if unknown and not above:  # else GC820 and GC821 name them
        key = "max_usd_per_month" if budget.max_usd_per_hour is None else "max_usd_per_hour"
        names = ", ".join(f"{pool.name} ({pool.machine})" for pool in unknown[:5])
        yield Finding(
            summary=f"the price of {len(unknown):,} {'pool' if len(unknown) == 1 else 'pools'} is "
            f"unknown: {names}",
            path=("budget", key),
            severity=Severity.WARNING,
            hint="add the price in a catalog file of your own",
            relies_on=(("budget", key), *_FEEDS),
        )


def _is_misspelt(context: CheckContext, name: str) -> bool:
    """Say whether a pool names a machine type that there is none of, which is said elsewhere."""
    pool = context.pools[name]
    return pool.machine is not None and context.machine(pool) is None


@check("GC824", summary="A cluster expires in two ways.")
def expiry_ambiguous(context: CheckContext) -> Iterator[Finding]:
    """Give `expires` (so long after its first `up`) or `expires_on` (a day)."""
    budget = context.budget
    if budget is not None and budget.expires is not None and budget.expires_on is not None:
        path: PathTuple = ("budget", "expires_on")
        yield Finding(
            summary=f"it expires after {budget.expires}, and on {budget.expires_on}",
            path=path,
            at_key=True,
            hint="keep one of the two",
            relies_on=(path, ("budget", "expires")),
        )


@check("GC825", summary="A cluster expires on a day that does not exist, or at once.")
def expiry_invalid(context: CheckContext) -> Iterator[Finding]:
    """`expires_on` is a day of the calendar, and `expires` some time."""
    budget = context.budget
    if budget is None:
        return
    if budget.expires is not None and budget.expires.value == 0:
        yield Finding(
            summary="a cluster that expires at once is never used",
            path=("budget", "expires"),
            hint="write a time such as 30d, or remove it",
        )
    if budget.expires_on is not None:
        try:
            date.fromisoformat(budget.expires_on)
        except ValueError:
            yield Finding(
                summary=f"{budget.expires_on} is no day of the calendar",
                path=("budget", "expires_on"),
                hint="write a day as 2027-03-31",
            )


@check("GC860", summary="A cluster is shut down when it is idle for no time at all.")
def idle_shutdown_zero(context: CheckContext) -> Iterator[Finding]:
    """`idle_shutdown` is how long no job has run or waited: between two jobs there is always some.

    Give it the time in which the people of the cluster send their next job.
    """
    budget = context.budget
    if budget is not None and budget.idle_shutdown is not None and budget.idle_shutdown.value == 0:
        yield Finding(
            summary="a cluster that is shut down at its first idle moment is never used",
            path=("budget", "idle_shutdown"),
            hint="write a time such as 8h, or remove it",
        )


@check("GC861", summary="A cluster's end is announced before the time that leads to it begins.")
def expiry_notice_too_long(context: CheckContext) -> Iterator[Finding]:
    """`notice` is shorter than `expires` and `idle_shutdown`.

    Users are warned for the whole notice before anything is removed. A notice as long as the time
    itself begins with the cluster, or with its first idle moment, and warns of nothing.
    """
    budget = context.budget
    if budget is None or budget.notice is None:
        return
    for key in ("expires", "idle_shutdown"):
        time = getattr(budget, key)
        if time is not None and 0 < time.value <= budget.notice.value:
            yield Finding(
                summary=f"people are warned {budget.notice} before, and {key} is {time}",
                path=("budget", "notice"),
                hint=f"write a notice that is shorter than {time}",
                relies_on=(("budget", "notice"), ("budget", key)),
            )


@check("GC862", summary="A cluster that makes no machines ends by itself.")
def expiry_without_machines(context: CheckContext) -> Iterator[Finding]:
    """Removing a cluster removes the machines that gcluster made. Of bare metal there are none.

    Its hosts stay as they are, with Slurm on them; only the cluster's keys and secrets would go.
    """
    budget = context.budget
    if budget is None or not context.sites:
        return
    if any(site.makes_machines for site in context.sites.values()):
        return
    for key in ("expires", "expires_on", "idle_shutdown"):
        if getattr(budget, key) is not None:
            yield Finding(
                summary="no site makes machines: there is nothing to remove when it ends",
                path=("budget", key),
                at_key=True,
                severity=Severity.WARNING,
                hint=f"remove {key}; the hosts are yours",
                relies_on=(("budget", key), ("sites", "*", "provider")),
            )
            return
