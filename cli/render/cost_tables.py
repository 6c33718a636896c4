"""The tables of a bill: pools by site, the ladder of each, and every market beside the others."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from msgspec.structs import replace

from ...schemas.cost.bill import Bill, PoolBill, SiteBill, Sum, Totals
from ...schemas.cost.pools import StorageCost
from .cells import pad, printable, width
from .cost_figures import (
    AT_LEAST,
    FREE,
    OWN,
    UNKNOWN,
    Sources,
    is_priced,
    kilowatts,
    money,
    node_money,
    nodes,
    offer_text,
    pool_money,
    sum_money,
)
from .grid import Column, Grid, grid
from .surface import Surface

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


def pools(bill: Bill, sources: Sources, surface: Surface) -> Grid:
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
    table = grid(_COLUMNS, rows, surface)
    return Grid(
        [
            surface.paint("strong", line) if number in {0, *strong} else line
            for number, line in enumerate(table.lines)
        ],
        table.gone,
    )


def _place(site: SiteBill) -> str:
    region = f" {printable(site.region)}" if site.region else ""
    return f"{printable(site.name)} ({site.provider}{region})"


def _pool(pool: PoolBill, indent: str) -> list[str]:
    return [
        f"{indent}{printable(pool.name)}",
        printable(pool.machine) if pool.machine else UNKNOWN,
        nodes(pool),
        node_money(pool),
        pool_money(pool, pool.usd_per_hour_now, is_bound=pool.is_bound_now),
        pool_money(pool, pool.usd_per_hour, is_bound=pool.is_bound),
        pool_money(pool, pool.usd_per_month, is_bound=pool.is_bound, digits=0),
        "" if pool.holding == "free" else kilowatts(pool.power),
    ]


def _sums(title: str, totals: Totals, within: list[PoolBill]) -> list[str]:
    """Return a row of sums; where nothing is rented there is none to tell."""
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
        sum_money(totals.hour_now),
        sum_money(totals.hour),
        sum_money(totals.month, digits=0),
        power,
    ]


def _storage(storage: StorageCost, bill: Bill, sources: Sources) -> list[str]:
    """Return managed storage with a price; it is there all the time."""
    month = storage.usd_per_month or 0.0
    size = "" if storage.gib is None else f" {storage.gib:,.0f} GiB"
    cited = storage.citation
    mark = "" if cited is None else f" [{sources.cite(cited.source, cited.date)}]"
    hour = money(month / bill.hours_per_month)
    title = f"storage {printable(storage.name)}"
    return [title, f"{storage.type}{size}{mark}", "", "", hour, hour, money(month, digits=0), ""]


def _with_storage(bill: Bill) -> list[str]:
    """Return the sums of machines and priced storage."""
    month = sum(each.usd_per_month or 0.0 for each in bill.storage)
    hour, totals = month / bill.hours_per_month, bill.totals
    return [
        "with storage",
        *("", "", ""),
        sum_money(_more(totals.hour_now, hour)),
        sum_money(_more(totals.hour, hour)),
        sum_money(_more(totals.month, month), digits=0),
        "",
    ]


def _more(total: Sum, usd: float) -> Sum:
    return replace(total, usd=usd + (total.usd or 0.0))


def ladders(bill: Bill, sources: Sources, surface: Surface) -> list[str]:
    """Return a line for each pool with prices: its rungs in order."""
    told = {
        pool.name: [
            f"{offer.market} {offer_text(offer, sources)}"
            + ("" if offer.source or offer.usd_per_hour is None else " (its limit)")
            for offer in pool.ladder
        ]
        for pool in bill.pools
        if pool.ladder
    }
    return _lists(told, surface, " > ")


def markets(bill: Bill, sources: Sources, surface: Surface) -> list[str]:
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
    lines = grid(columns, rows, surface).lines
    if surface.live and max(map(width, lines)) > surface.width:
        told = {
            name: [f"{market} {found[market]}" for market in shown if market in found]
            for name, found in cells.items()
        }
        return _lists(told, surface, ", ")
    return lines


def _by_market(pool: PoolBill, sources: Sources) -> dict[str, str]:
    return {o.market: offer_text(o, sources, times=pool.nodes) for o in pool.markets}


def _lists(told: dict[str, list[str]], surface: Surface, between: str) -> list[str]:
    return list(_listed(told, surface, between))


def _listed(told: dict[str, list[str]], surface: Surface, between: str) -> Iterator[str]:
    """Yield names with their lists behind them, wrapped where that is too long."""
    left = min(24, max((width(printable(name)) for name in told), default=0))
    for name, parts in told.items():
        yield from textwrap.wrap(
            between.join(parts),
            width=max(40, surface.width),
            initial_indent=f"{pad(printable(name), left)}  ",
            subsequent_indent=" " * (left + 2),
            break_long_words=False,
            break_on_hyphens=False,
        )
