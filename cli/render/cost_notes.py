"""What the figures of a bill mean, what they lack, and what is not in them."""

from __future__ import annotations

from collections.abc import Iterator

from ...schemas.cost.bill import Bill
from .cells import printable
from .cost_figures import (
    AT_LEAST,
    AT_MOST,
    FREE,
    LACKS,
    OWN,
    UNKNOWN,
    is_priced,
    names,
)

_HELD = frozenset({"reservation", "capacity-block"})
"""Markets that are paid while they are held."""


def notes(bill: Bill, gone: list[str], *, chart: bool) -> Iterator[str]:
    """Yield one note after the other; each only where it applies.

    Args:
        bill: what is shown.
        gone: columns that there was no room for.
        chart: whether bars are shown, and no comparison of the markets.
    """
    yield from _marks(bill, chart=chart)
    yield from _month(bill)
    yield from _holdings(bill)
    yield from _power(bill)
    yield from _not_counted(bill, chart=chart)
    if gone:
        yield f"no room for {', '.join(gone)}: widen the terminal, or --format json"


def _marks(bill: Bill, *, chart: bool) -> Iterator[str]:
    offers = [
        offer
        for pool in bill.pools
        for offer in (*pool.ladder, *(() if chart or not pool.nodes else pool.markets))
    ]
    if any(offer.is_bound for offer in offers):
        yield (
            f"{AT_MOST} at most: that market has no price of its own here, and the on-demand price "
            "or the spec's limit stands in"
        )
    lacks = bill.totals.hour.lacks or bill.totals.month.lacks
    if lacks:
        yield f"{LACKS} the price of {names(lacks)} is unknown and in no sum; {UNKNOWN} not known"
    elif any(offer.usd_per_hour is None for offer in offers):
        yield f"{UNKNOWN} sold so, at a price that is not known"
    if any(offer.market in _HELD for pool in bill.pools for offer in pool.ladder):
        yield "a reservation or capacity block is paid while it is held, nodes running or not"


def _month(bill: Bill) -> Iterator[str]:
    if is_priced(bill.pools):
        elastic = any(pool.nodes_now != pool.nodes for pool in bill.pools)
        share = f", elastic nodes running {100 * bill.utilisation:.4g}% of it" if elastic else ""
        yield f"a month has {bill.hours_per_month} h{share}, at the worst case's prices"


def _holdings(bill: Bill) -> Iterator[str]:
    if bill.own_unpriced:
        yield (
            f"{OWN}: machines that exist ({names(bill.own_unpriced)}); nothing is rented for "
            "them, and the catalog has no price of yours, so they are in no sum"
        )
    free = [pool.name for pool in bill.pools if pool.holding == "free"]
    if free:
        yield f"{FREE}: on this machine or in a file ({names(free)}); nothing is rented for them"


def _power(bill: Bill) -> Iterator[str]:
    drawing = [pool for pool in bill.pools if pool.power.kw is not None]
    lacks = bill.totals.kw_lacks
    if not drawing:
        if lacks:
            yield f"power unknown: no figure for {names(lacks)}"
            yield "carbon unknown, as the power is"
        return
    pues = {s.provider: p.power.pue for s in bill.sites for p in drawing if p.site == s.name}
    factors = [
        f"{provider}: PUE unknown, without cooling" if pue is None else f"{provider}: x PUE {pue:g}"
        for provider, pue in pues.items()
    ]
    partial = lacks or any(pool.power.basis == "gpus" for pool in drawing)
    total = f"{AT_LEAST if partial else ''}{bill.totals.kw or 0.0:,.1f} kW"
    yield f"power {total}, every node running at its limit ({'; '.join(factors)})"
    alone = [pool.name for pool in drawing if pool.power.basis == "gpus"]
    if alone:
        yield f"{AT_LEAST} the GPUs alone ({names(alone)}): the rest of the node is not known"
    if lacks:
        yield f"power unknown, in no sum: {names(lacks)}"
    yield from _carbon(bill)


def _carbon(bill: Bill) -> Iterator[str]:
    known = [p.power.kg_co2_per_hour for p in bill.pools if p.power.kg_co2_per_hour is not None]
    if known:
        yield f"carbon of that power: {sum(known):,.1f} kg CO2e/h"
    dark = [
        f"{site.name} ({site.region})" if site.region else site.name
        for site in bill.sites
        if any(
            pool.power.kw is not None and pool.power.kg_co2_per_hour is None
            for pool in bill.pools
            if pool.site == site.name
        )
    ]
    if dark:
        yield f"carbon unknown: no kg CO2e per kWh is known for {names(dark)}"


def _not_counted(bill: Bill, *, chart: bool) -> Iterator[str]:
    """Yield what costs money and is in no figure."""
    priced = [each for each in bill.storage if each.usd_per_month is not None]
    if priced and chart:
        month = sum(each.usd_per_month or 0.0 for each in priced)
        yield f"not in the bars: storage {names(s.name for s in priced)}, ${month:,.0f} a month"
    elif priced:
        yield "a budget is held against the machines alone, without storage"
    storage = []
    for each in bill.storage:
        if each.usd_per_month is None:
            size = f", {each.gib:,.0f} GiB" if each.gib is not None else ", by what it holds"
            storage.append(f"storage {printable(each.name)} ({each.type}{size}; price unknown)")
    if any(pool.holding == "rented" for pool in bill.pools):
        storage.append("boot disks, addresses, gateways and traffic")
    if storage:
        yield f"not counted: {'; '.join(storage)}"
