"""What the figures of a bill mean, what they lack, and what is not in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gcluster.cli.render.cells import printable
from gcluster.cli.render.cost_figures import AT_LEAST, AT_MOST, FREE, LACKS, OWN, UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gcluster.schemas.bill import Bill

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
    yield from _holdings(bill)
    yield from _power(bill)
    yield from _not_counted(bill)
    if gone:
        yield f"no room for {', '.join(gone)}: widen the terminal, or --format json"


def _names(names: Iterable[str]) -> str:
    return ", ".join(map(printable, names))


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
        yield f"{LACKS} the price of {_names(lacks)} is unknown and in no sum; {UNKNOWN} not known"
    elif any(offer.usd_per_hour is None for offer in offers):
        yield f"{UNKNOWN} sold so, at a price that is not known"
    if any(offer.market in _HELD for pool in bill.pools for offer in pool.ladder):
        yield "a reservation or capacity block is paid while it is held, nodes running or not"


def _holdings(bill: Bill) -> Iterator[str]:
    if bill.own_unpriced:
        yield (
            f"{OWN}: machines that exist ({_names(bill.own_unpriced)}); nothing is rented for "
            "them, and the catalog has no price of yours, so they are in no sum"
        )
    free = [pool.name for pool in bill.pools if pool.holding == "free"]
    if free:
        yield f"{FREE}: on this machine or in a file ({_names(free)}); nothing is rented for them"


def _power(bill: Bill) -> Iterator[str]:
    drawing = [pool for pool in bill.pools if pool.power.kw is not None]
    lacks = bill.totals.kw_lacks
    if not drawing:
        if lacks:
            yield f"power unknown: no figure for {_names(lacks)}"
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
        yield f"{AT_LEAST} the GPUs alone ({_names(alone)}): the rest of the node is not known"
    if lacks:
        yield f"power unknown, in no sum: {_names(lacks)}"
    yield from _carbon(bill)


def _carbon(bill: Bill) -> Iterator[str]:
    known = [p.power.kg_co2_per_hour for p in bill.pools if p.power.kg_co2_per_hour is not None]
    if known:
        yield f"carbon of that power: {sum(known):,.1f} kg CO2e/h"
    dark = [
        printable(f"{site.name} ({site.region})" if site.region else site.name)
        for site in bill.sites
        if any(
            pool.power.kw is not None and pool.power.kg_co2_per_hour is None
            for pool in bill.pools
            if pool.site == site.name
        )
    ]
    if dark:
        yield f"carbon unknown: no kg CO2e per kWh is known for {', '.join(dark)}"


def _not_counted(bill: Bill) -> Iterator[str]:
    """Yield what costs money and is in no figure."""
    storage = []
    for each in bill.storage:
        if each.usd_per_month is None:
            size = f", {each.gib:,.0f} GiB" if each.gib is not None else ", by what it holds"
            storage.append(f"storage {printable(each.name)} ({each.type}{size}; price unknown)")
    if any(pool.holding == "rented" for pool in bill.pools):
        storage.append("boot disks, addresses, gateways and traffic")
    if storage:
        yield f"not counted: {'; '.join(storage)}"
