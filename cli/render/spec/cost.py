"""What clusters cost as text: tables or bars, what the figures mean, where prices come from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from ....schemas.cost.bill import Bill, Sum
from ...console import Console, printable, wrap
from .cost_tables import (
    AT_LEAST,
    AT_MOST,
    FREE,
    LACKS,
    OWN,
    UNKNOWN,
    Sources,
    ascii_only,
    fallback_lists,
    is_priced,
    markets,
    names,
    pools,
    usd_text,
)
from .cost_tables import chart as chart_lines


def bills_text(bills: Sequence[Bill], console: Console, *, chart: bool = False) -> str:
    """Return what each cluster costs, and all of them together where there are several."""
    texts = ["\n".join(_bill(bill, console, chart=chart)) for bill in bills]
    if len(bills) > 1:
        texts.append(_together(bills))
    text = console.plain("\n\n".join(texts))
    return text if console.unicode else ascii_only(text)


def _bill(bill: Bill, console: Console, *, chart: bool) -> Iterator[str]:
    sources = Sources()
    yield from _folded(f"{printable(bill.cluster)}: {_headline(bill)}", console)
    yield from _budget(bill, console)
    yield ""
    gone: list[str] = []
    if chart:
        yield from chart_lines(bill, console)
    else:
        table = pools(bill, sources, console)
        gone = table.dropped
        yield from table.lines
    bought = fallback_lists(bill, sources, console)
    yield from _section("bought so, in this order; $/h for a node:", bought)
    if not chart:
        yield from _section(
            "every node of a pool in each market it is sold in, $/h:",
            markets(bill, sources, console),
        )
    lines = [*notes(bill, gone, chart=chart)]
    yield from _section("", list(chain.from_iterable(_wrapped(note, console) for note in lines)))
    yield from _section("prices, as the catalog has them:", [*_sources(sources, console)])


def _section(title: str, lines: list[str]) -> Iterator[str]:
    if lines:
        yield ""
        if title:
            yield title
        yield from lines


def _headline(bill: Bill) -> str:
    """Return "at most $110.89/h now, worst case $110.89/h, $80,947 a month"."""
    totals = bill.totals
    if not is_priced(bill.pools):
        return "nothing is rented"
    lacks = totals.hour.lacks
    return (
        f"{_dollars(totals.hour_now, '/h')} now, worst case {_dollars(totals.hour, '/h')}, "
        f"{_dollars(totals.month, '', digits=0)} a month"
        + (f"; without {names(lacks)}, whose price is unknown" if lacks else "")
        + (f"; your own {names(bill.own_unpriced)} not counted" if bill.own_unpriced else "")
    )


def _dollars(total: Sum, unit: str, *, digits: int = 2) -> str:
    if total.usd is None:
        return "unknown"
    return f"{'at most ' if total.is_bound else ''}${total.usd:,.{digits}f}{unit}"


def _budget(bill: Bill, console: Console) -> Iterator[str]:
    """Yield what is left of each ceiling of the budget."""
    for ceiling, total, unit, what, digits in (
        (bill.max_usd_per_hour, bill.totals.hour, "/h", "the worst case", 2),
        (bill.max_usd_per_month, bill.totals.month, " a month", "the month", 0),
    ):
        if ceiling is None:
            continue
        begin = f"budget ${ceiling:,.{digits}f}{unit}"
        if total.usd is None:
            yield from _folded(f"{begin}: not judged, {what} is unknown", console)
            continue
        rest = ceiling - total.usd
        share = f"{what} takes {'at most ' if total.is_bound else ''}{total.usd / ceiling:.0%}"
        without = f", without {names(total.lacks)}" if total.lacks else ""
        if rest < 0:
            text = f"{begin}: {share}, ${-rest:,.{digits}f} too much{without}"
            yield from (console.paint("error", line) for line in _folded(text, console))
        else:
            yield from _folded(f"{begin}: {share}, ${rest:,.{digits}f} left{without}", console)


def _wrapped(note: str, console: Console) -> list[str]:
    return [console.paint("faint", line) for line in _folded(note, console)]


def _folded(text: str, console: Console) -> list[str]:
    return wrap(text, min(console.width, 100), rest="  ")


def _sources(sources: Sources, console: Console) -> Iterator[str]:
    """Yield each source of a price with its date, then the oldest date."""
    for (source, date, unverified), number in sources.numbers.items():
        doubt = "; not confirmed" if unverified else ""
        yield from _wrapped(f"[{number}] {printable(source)}, {date}{doubt}", console)
    if sources.oldest is not None:
        yield from _wrapped(
            f"the oldest price is of {sources.oldest}; nothing was looked up now", console
        )


def _together(bills: Sequence[Bill]) -> str:
    """Return the sums over several clusters; what is lacking is named with its cluster."""
    lacks = [f"{bill.cluster}.{pool}" for bill in bills for pool in bill.totals.hour.lacks]
    begin = f"{len(bills):,} clusters"
    if not any(is_priced(bill.pools) for bill in bills):
        return f"{begin}: nothing is rented"
    now = _added([bill.totals.hour_now for bill in bills])
    worst = _added([bill.totals.hour for bill in bills])
    without = f", without {names(lacks)}" if lacks else ""
    return f"{begin}: {now} $/h now, worst case {worst} $/h{without}"


def _added(sums: Sequence[Sum]) -> str:
    known = [each.usd for each in sums if each.usd is not None]
    return usd_text(sum(known) if known else None, is_bound=any(each.is_bound for each in sums))


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
        for offer in (*pool.fallback_list, *(() if chart or not pool.nodes else pool.markets))
    ]
    if any(offer.is_bound for offer in offers):
        yield (
            f"{AT_MOST} at most: that market has no price of its own here, and the on-demand price "
            "or the spec's limit is used"
        )
    lacks = bill.totals.hour.lacks or bill.totals.month.lacks
    if lacks:
        yield f"{LACKS} the price of {names(lacks)} is unknown and in no sum; {UNKNOWN} not known"
    elif any(offer.usd_per_hour is None for offer in offers):
        yield f"{UNKNOWN} sold so, at a price that is not known"
    if any(offer.market in _HELD for pool in bill.pools for offer in pool.fallback_list):
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
        yield "a budget is compared with the machines alone, without storage"
    storage = []
    for each in bill.storage:
        if each.usd_per_month is None:
            size = f", {each.gib:,.0f} GiB" if each.gib is not None else ", by what it holds"
            storage.append(f"storage {printable(each.name)} ({each.type}{size}; price unknown)")
    if any(pool.holding == "rented" for pool in bill.pools):
        storage.append("boot disks, addresses, gateways and traffic")
    if storage:
        yield f"not counted: {'; '.join(storage)}"
