"""The tables and bars of a bill, and the figures in their cells."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from ....schemas.cost.bill import Bill, Offer, PoolBill, SiteBill, Sum, Totals
from ....schemas.cost.pools import Power, StorageCost
from ...console import Console, pad, printable, width
from ..table import Column, Rendered, tabulate

_COLUMNS = (
    Column("POOL", right=False),
    Column("MACHINE", right=False, may_go=2),
    Column("NODES", may_go=1),
    Column("$/NODE", may_go=3),
    Column("$/h NOW"),
    Column("$/h WORST"),
    Column("$/MONTH", may_go=4),
    Column("kW", may_go=5),
)
_MARKETS = ("on-demand", "spot", "reservation", "capacity-block", "flex-start")


def pools(bill: Bill, sources: Sources, console: Console) -> Rendered:
    """Return the pools below their sites, with the sums of each site and of the cluster."""
    rows: list[list[str]] = []
    strong: list[int] = []
    several = len(bill.sites) > 1
    for site in bill.sites:
        mine = [pool for pool in bill.pools if pool.site == site.name]
        if several:
            strong.append(len(rows) + 1)
            rows.append(_sums(_place(site), site.totals, mine))
        rows += [_pool(pool, "  " if several else "") for pool in mine]
    strong.append(len(rows) + 1)
    rows.append(_sums("all machines", bill.totals, list(bill.pools)))
    priced = [each for each in bill.storage if each.usd_per_month is not None]
    rows += [_storage(each, bill, sources) for each in priced]
    if priced:
        strong.append(len(rows) + 1)
        rows.append(_with_storage(bill))
    table = tabulate(_COLUMNS, rows, console)
    return Rendered(
        [
            console.paint("strong", line) if number in {0, *strong} else line
            for number, line in enumerate(table.lines)
        ],
        table.dropped,
    )


def _place(site: SiteBill) -> str:
    region = f" {printable(site.region)}" if site.region else ""
    return f"{printable(site.name)} ({site.provider}{region})"


def _pool(pool: PoolBill, indent: str) -> list[str]:
    return [
        f"{indent}{printable(pool.name)}",
        printable(pool.machine) if pool.machine else UNKNOWN,
        nodes(pool),
        node_usd_text(pool),
        pool_usd_text(pool, pool.usd_per_hour_now, is_bound=pool.is_bound_now),
        pool_usd_text(pool, pool.usd_per_hour, is_bound=pool.is_bound),
        pool_usd_text(pool, pool.usd_per_month, is_bound=pool.is_bound, digits=0),
        "" if pool.holding == "free" else kilowatts(pool.power),
    ]


def _sums(title: str, totals: Totals, within: list[PoolBill]) -> list[str]:
    """Return a row of sums; where nothing is rented there is none."""
    now = sum(pool.nodes_now for pool in within)
    most = sum(pool.nodes for pool in within)
    count = f"{most:,}" if now == most else f"{now:,}..{most:,}"
    begin = [title, "", count, ""]
    partial = totals.kw_lacks or any(pool.power.basis == "gpus" for pool in within)
    power = UNKNOWN if totals.kw is None else f"{AT_LEAST if partial else ''}{totals.kw:,.1f}"
    if not is_priced(within):
        holding = OWN if any(pool.holding == "own" for pool in within) else FREE
        return [*begin, holding, holding, holding, "" if holding == FREE else power]
    return [
        *begin,
        sum_usd_text(totals.hour_now),
        sum_usd_text(totals.hour),
        sum_usd_text(totals.month, digits=0),
        power,
    ]


def _storage(storage: StorageCost, bill: Bill, sources: Sources) -> list[str]:
    """Return managed storage with a price; it is there all the time."""
    month = storage.usd_per_month or 0.0
    size = "" if storage.gib is None else f" {storage.gib:,.0f} GiB"
    cited = storage.citation
    mark = "" if cited is None else f" [{sources.cite(cited.source, cited.date)}]"
    hour = usd_text(month / bill.hours_per_month)
    title = f"storage {printable(storage.name)}"
    return [title, f"{storage.type}{size}{mark}", "", "", hour, hour, usd_text(month, digits=0), ""]


def _with_storage(bill: Bill) -> list[str]:
    """Return the sums of machines and priced storage."""
    month = sum(each.usd_per_month or 0.0 for each in bill.storage)
    hour, totals = month / bill.hours_per_month, bill.totals
    return [
        "with storage",
        *("", "", ""),
        sum_usd_text(_more(totals.hour_now, hour)),
        sum_usd_text(_more(totals.hour, hour)),
        sum_usd_text(_more(totals.month, month), digits=0),
        "",
    ]


def _more(total: Sum, usd: float) -> Sum:
    return replace(total, usd=usd + (total.usd or 0.0))


def fallback_lists(bill: Bill, sources: Sources, console: Console) -> list[str]:
    """Return a line for each pool with prices: its options in order."""
    by_kind = {
        pool.name: [
            *(_way(offer, sources) for offer in pool.fallback_list),
            *(
                f"at {there.site}: {_way(offer, sources)}"
                for there in pool.elsewhere
                for offer in there.fallback_list
            ),
        ]
        for pool in bill.pools
        if pool.fallback_list
    }
    return _lists(by_kind, console, " > ")


def _way(offer: Offer, sources: Sources) -> str:
    limit = "" if offer.source or offer.usd_per_hour is None else " (its limit)"
    return f"{offer.market} {offer_text(offer, sources)}{limit}"


def markets(bill: Bill, sources: Sources, console: Console) -> list[str]:
    """Return what all nodes of each pool cost in every market; lists where a table has no room."""
    rented = [pool for pool in bill.pools if pool.markets and pool.nodes]
    if not rented:
        return []
    there = {offer.market for pool in rented for offer in pool.markets}
    shown = [market for market in _MARKETS if market in there]
    cells = {pool.name: _by_market(pool, sources) for pool in rented}
    columns = (Column("POOL", right=False), *(Column(market) for market in shown))
    rows = [
        [printable(name), *(found.get(market, "") for market in shown)]
        for name, found in cells.items()
    ]
    lines = tabulate(columns, rows, console).lines
    if console.terminal and max(map(width, lines)) > console.width:
        by_kind = {
            name: [f"{market} {found[market]}" for market in shown if market in found]
            for name, found in cells.items()
        }
        return _lists(by_kind, console, ", ")
    return lines


def _by_market(pool: PoolBill, sources: Sources) -> dict[str, str]:
    return {o.market: offer_text(o, sources, times=pool.nodes) for o in pool.markets}


def _lists(by_kind: dict[str, list[str]], console: Console, between: str) -> list[str]:
    return list(_listed(by_kind, console, between))


def _listed(by_kind: dict[str, list[str]], console: Console, between: str) -> Iterator[str]:
    """Yield names with their lists behind them, wrapped where that is too long."""
    columns = (Column(right=False, least=24), Column(right=False, wraps=True))
    rows = [(printable(name), between.join(parts)) for name, parts in by_kind.items()]
    yield from tabulate(columns, rows, console).lines if rows else ()


NOW, MOST = "█", "░"
_LEAST = 8
"""Columns that a bar has at least, however narrow the terminal."""
_NAME = 24
"""Most columns of a pool's name next to its bar; longer ones are above it."""


def chart(bill: Bill, console: Console) -> list[str]:
    """Return a line of bar and figures for each pool, and what the bars mean."""
    dearest = max((pool.usd_per_hour or 0.0 for pool in bill.pools), default=0.0)
    figures = {pool.name: _figures(pool) for pool in bill.pools}
    right = max((width(text) for text in figures.values()), default=0)
    left = min(_NAME, max((width(printable(pool.name)) for pool in bill.pools), default=0))
    room = max(_LEAST, console.width - left - right - 4)
    lines: list[str] = []
    for pool in bill.pools:
        name = printable(pool.name)
        if width(name) > left:
            lines.append(name)
            name = ""
        drawn = _bar(pool, dearest, room, console)
        lines.append(f"{pad(name, left)}  {drawn}  {figures[pool.name]}")
    if not dearest:
        return lines
    scale = f"{NOW} now, {MOST} worst case; the longest: ${dearest:,.2f}/h"
    return [*lines, "", console.paint("faint", scale)]


def _bar(pool: PoolBill, dearest: float, room: int, console: Console) -> str:
    """Draw a bar as long as its share of the dearest; what costs anything has a cell at least."""
    now = _cells(pool.usd_per_hour_now, dearest, room)
    most = max(now, _cells(pool.usd_per_hour, dearest, room))
    drawn = console.paint("good", NOW * now) + console.paint("warning", MOST * (most - now))
    return drawn + " " * (room - most)


def _cells(value: float | None, dearest: float, room: int) -> int:
    if not value or not dearest:
        return 0
    return min(room, max(1, round(value / dearest * room)))


def _figures(pool: PoolBill) -> str:
    now = pool_usd_text(pool, pool.usd_per_hour_now, is_bound=pool.is_bound_now)
    most = pool_usd_text(pool, pool.usd_per_hour, is_bound=pool.is_bound)
    return now if now == most else f"{now} .. {most}"


UNKNOWN = "–"  # noqa: RUF001  # the dash of tables; turned into "-" where there is no Unicode
AT_MOST, AT_LEAST, LACKS = "≤", "≥", "+?"
OWN, FREE = "own", "free"
_ASCII = str.maketrans({"–": "-", "≤": "<=", "≥": ">=", "█": "#", "░": "."})  # noqa: RUF001  # as above


def ascii_only(text: str) -> str:
    """Return the text with its marks as they are written without Unicode."""
    return text.translate(_ASCII)


class Sources:
    """Where prices come from, numbered in the order in which they are first shown."""

    def __init__(self) -> None:
        """Begin with none."""
        self.numbers: dict[tuple[str, str, bool], int] = {}

    def mark(self, offer: Offer) -> str:
        """Return " [1]" for a price that has a source."""
        if offer.source is None or offer.date is None:
            return ""
        return f" [{self.cite(offer.source, offer.date, unverified=offer.unverified)}]"

    def cite(self, source: str, date: str, *, unverified: bool = False) -> int:
        """Return the number of a source."""
        return self.numbers.setdefault((source, date, unverified), len(self.numbers) + 1)

    @property
    def oldest(self) -> str | None:
        """The oldest date of a price that is shown."""
        return min((date for _, date, _ in self.numbers), default=None)


def usd_text(value: float | None, *, is_bound: bool = False, digits: int = 2) -> str:
    """Return "880.64", "≤880.64", or the dash of what isn't known."""
    if value is None:
        return UNKNOWN
    return f"{AT_MOST if is_bound else ''}{value:,.{digits}f}"


def names(those: Iterable[str], most: int = 8) -> str:
    """Return "head, login and 12 more", safe to show."""
    every = [*those]
    shown = ", ".join(map(printable, every[:most]))
    return shown if len(every) <= most else f"{shown} and {len(every) - most:,} more"


def is_priced(pools: Iterable[PoolBill]) -> bool:
    """Say whether money is paid for any: rented, or one's own with a price."""
    return any(p.holding == "rented" or (p.holding == "own" and p.fallback_list) for p in pools)


def pool_usd_text(pool: PoolBill, value: float | None, *, is_bound: bool, digits: int = 2) -> str:
    """Return a pool's money; machines without a price are shown as own or free."""
    if pool.holding == "free":
        return FREE
    if value is None and pool.holding == "own":
        return OWN
    return usd_text(value, is_bound=is_bound, digits=digits)


def sum_usd_text(total: Sum, *, digits: int = 2) -> str:
    """Return a sum, marked where a price in it isn't known."""
    text = usd_text(total.usd, is_bound=total.is_bound, digits=digits)
    return f"{text} {LACKS}" if total.lacks and total.usd is not None else text


def node_usd_text(pool: PoolBill) -> str:
    """Return what one node costs: "39.33..55.04" where the options differ."""
    rates = [offer.usd_per_hour for offer in pool.fallback_list]
    if pool.holding == "free" or not rates:
        return pool_usd_text(pool, None, is_bound=False)
    known = [rate for rate in rates if rate is not None]
    if len(known) < len(rates):
        return UNKNOWN
    least, most = min(known), max(known)
    text = usd_text(most, is_bound=pool.is_bound or all(o.is_bound for o in pool.fallback_list))
    return text if least == most else f"{least:,.2f}..{text}"


def nodes(pool: PoolBill) -> str:
    """Return "16", or "0..16" where machines come and go."""
    if pool.nodes_now == pool.nodes:
        return f"{pool.nodes:,}"
    return f"{pool.nodes_now:,}..{pool.nodes:,}"


def kilowatts(power: Power) -> str:
    """Return a pool's power, every machine running; marked where only the GPUs' is known."""
    if power.kw is None:
        return UNKNOWN
    return f"{AT_LEAST if power.basis == 'gpus' else ''}{power.kw:,.1f}"


def offer_text(offer: Offer, sources: Sources, *, times: int = 1) -> str:
    """Return "≤880.64 [1]" for so many nodes in a market."""
    rate = offer.usd_per_hour
    text = usd_text(None if rate is None else rate * times, is_bound=offer.is_bound)
    return f"{text}{sources.mark(offer)}"
