"""What clusters cost as text: tables or bars, what the figures mean, where prices come from."""

from __future__ import annotations

import textwrap
from itertools import chain
from typing import TYPE_CHECKING

from gcluster.cli.render.cells import printable
from gcluster.cli.render.cost_chart import chart as chart_lines
from gcluster.cli.render.cost_figures import Sources, ascii_only, is_priced, money
from gcluster.cli.render.cost_notes import notes
from gcluster.cli.render.cost_tables import ladders, markets, pools

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gcluster.cli.render.surface import Surface
    from gcluster.schemas.bill import Bill, Sum


def bills_text(bills: Sequence[Bill], surface: Surface, *, chart: bool = False) -> str:
    """Return what each cluster costs, and all of them together where there are several."""
    texts = ["\n".join(_bill(bill, surface, chart=chart)) for bill in bills]
    if len(bills) > 1:
        texts.append(_together(bills))
    text = surface.plain("\n\n".join(texts))
    return text if surface.unicode else ascii_only(text)


def _bill(bill: Bill, surface: Surface, *, chart: bool) -> Iterator[str]:
    sources = Sources()
    yield surface.paint("strong", printable(bill.cluster)) + f": {_headline(bill)}"
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
    """Return "$0.81/h now, at most $110.89/h, $80,947 a month"."""
    totals = bill.totals
    if not is_priced(bill.pools):
        return "nothing is rented"
    elastic = any(pool.nodes_now != pool.nodes for pool in bill.pools)
    return (
        f"{_dollars(totals.hour_now, '/h')} now, worst case {_dollars(totals.hour, '/h')}, "
        f"{_dollars(totals.month, '', digits=0)} a month of {bill.hours_per_month} h"
        + (f", elastic nodes running {_share(bill.utilisation)} of it" if elastic else "")
    )


def _dollars(total: Sum, unit: str, *, digits: int = 2) -> str:
    if total.usd is None:
        return "unknown"
    at_most = "at most " if total.is_bound else ""
    lacks = f" without {_names(total.lacks)}" if total.lacks else ""
    return f"{at_most}${total.usd:,.{digits}f}{unit}{lacks}"


def _share(share: float) -> str:
    return f"{100 * share:.4g}%"


def _names(names: Sequence[str], most: int = 5) -> str:
    shown = ", ".join(map(printable, names[:most]))
    return shown if len(names) <= most else f"{shown} and {len(names) - most:,} more"


def _budget(bill: Bill, surface: Surface) -> Iterator[str]:
    """Yield what is left of each ceiling of the budget."""
    for ceiling, total, unit, what in (
        (bill.max_usd_per_hour, bill.totals.hour, "/h", "the worst case"),
        (bill.max_usd_per_month, bill.totals.month, " a month", "the month"),
    ):
        if ceiling is None:
            continue
        begin = f"budget ${ceiling:,.2f}{unit}"
        if total.usd is None:
            yield f"{begin}: not judged, {what} is unknown"
            continue
        rest = ceiling - total.usd
        share = f"{what} takes {'at most ' if total.is_bound else ''}{total.usd / ceiling:.0%}"
        share += f" without {_names(total.lacks)}" if total.lacks else ""
        if rest < 0:
            yield surface.paint("error", f"{begin}: {share}, ${-rest:,.2f} too much")
        else:
            yield f"{begin}: {share}, ${rest:,.2f} left"


def _wrapped(note: str, surface: Surface) -> list[str]:
    lines = textwrap.wrap(
        note,
        width=max(40, min(surface.width, 100)),
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [surface.paint("faint", line) for line in lines]


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
    without = f", without {_names(lacks)}" if lacks else ""
    return f"{begin}: {now} $/h now, worst case {worst} $/h{without}"


def _added(sums: Sequence[Sum]) -> str:
    known = [each.usd for each in sums if each.usd is not None]
    return money(sum(known) if known else None, is_bound=any(each.is_bound for each in sums))
