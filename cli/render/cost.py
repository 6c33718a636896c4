"""What clusters cost as text: tables or bars, what the figures mean, where prices come from."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from itertools import chain

from ...schemas.cost.bill import Bill, Sum
from .cells import printable
from .cost_chart import chart as chart_lines
from .cost_figures import Sources, ascii_only, is_priced, money, names
from .cost_notes import notes
from .cost_tables import ladders, markets, pools
from .surface import Surface


def bills_text(bills: Sequence[Bill], surface: Surface, *, chart: bool = False) -> str:
    """Return what each cluster costs, and all of them together where there are several."""
    texts = ["\n".join(_bill(bill, surface, chart=chart)) for bill in bills]
    if len(bills) > 1:
        texts.append(_together(bills))
    text = surface.plain("\n\n".join(texts))
    return text if surface.unicode else ascii_only(text)


def _bill(bill: Bill, surface: Surface, *, chart: bool) -> Iterator[str]:
    sources = Sources()
    yield from _folded(f"{printable(bill.cluster)}: {_headline(bill)}", surface)
    yield from _budget(bill, surface)
    yield ""
    gone: list[str] = []
    if chart:
        yield from chart_lines(bill, surface)
    else:
        table = pools(bill, sources, surface)
        gone = table.gone
        yield from table.lines
    bought = ladders(bill, sources, surface)
    yield from _section("bought so, in this order; $/h for a node:", bought)
    if not chart:
        yield from _section(
            "every node of a pool in each market it is sold in, $/h:",
            markets(bill, sources, surface),
        )
    told = [*notes(bill, gone, chart=chart)]
    yield from _section("", list(chain.from_iterable(_wrapped(note, surface) for note in told)))
    yield from _section("prices, as the catalog has them:", [*_sources(sources, surface)])


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


def _budget(bill: Bill, surface: Surface) -> Iterator[str]:
    """Yield what is left of each ceiling of the budget."""
    for ceiling, total, unit, what, digits in (
        (bill.max_usd_per_hour, bill.totals.hour, "/h", "the worst case", 2),
        (bill.max_usd_per_month, bill.totals.month, " a month", "the month", 0),
    ):
        if ceiling is None:
            continue
        begin = f"budget ${ceiling:,.{digits}f}{unit}"
        if total.usd is None:
            yield from _folded(f"{begin}: not judged, {what} is unknown", surface)
            continue
        rest = ceiling - total.usd
        share = f"{what} takes {'at most ' if total.is_bound else ''}{total.usd / ceiling:.0%}"
        without = f", without {names(total.lacks)}" if total.lacks else ""
        if rest < 0:
            text = f"{begin}: {share}, ${-rest:,.{digits}f} too much{without}"
            yield from (surface.paint("error", line) for line in _folded(text, surface))
        else:
            yield from _folded(f"{begin}: {share}, ${rest:,.{digits}f} left{without}", surface)


def _wrapped(note: str, surface: Surface) -> list[str]:
    return [surface.paint("faint", line) for line in _folded(note, surface)]


def _folded(text: str, surface: Surface) -> list[str]:
    return textwrap.wrap(
        text,
        width=max(40, min(surface.width, 100)),
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _sources(sources: Sources, surface: Surface) -> Iterator[str]:
    """Yield each source of a price with its date, then the oldest date."""
    for (source, date, unverified), number in sources.numbers.items():
        doubt = "; not confirmed" if unverified else ""
        yield from _wrapped(f"[{number}] {printable(source)}, {date}{doubt}", surface)
    if sources.oldest is not None:
        yield from _wrapped(
            f"the oldest price is of {sources.oldest}; nothing was looked up now", surface
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
    return money(sum(known) if known else None, is_bound=any(each.is_bound for each in sums))
