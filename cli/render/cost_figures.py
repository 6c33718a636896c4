"""Figures of a bill as cells: money, bounds, power, and the numbers of their sources."""

from __future__ import annotations

from collections.abc import Iterable

from ...schemas.cost.bill import Offer, PoolBill, Sum
from ...schemas.cost.pools import Power
from .cells import printable

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


def money(value: float | None, *, is_bound: bool = False, digits: int = 2) -> str:
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
    return any(p.holding == "rented" or (p.holding == "own" and p.ladder) for p in pools)


def pool_money(pool: PoolBill, value: float | None, *, is_bound: bool, digits: int = 2) -> str:
    """Return a pool's money; machines that nobody is paid for are said to be own or free."""
    if pool.holding == "free":
        return FREE
    if value is None and pool.holding == "own":
        return OWN
    return money(value, is_bound=is_bound, digits=digits)


def sum_money(total: Sum, *, digits: int = 2) -> str:
    """Return a sum, marked where a price in it isn't known."""
    text = money(total.usd, is_bound=total.is_bound, digits=digits)
    return f"{text} {LACKS}" if total.lacks and total.usd is not None else text


def node_money(pool: PoolBill) -> str:
    """Return what one node costs: "39.33..55.04" where the rungs differ."""
    rates = [offer.usd_per_hour for offer in pool.ladder]
    if pool.holding == "free" or not rates:
        return pool_money(pool, None, is_bound=False)
    known = [rate for rate in rates if rate is not None]
    if len(known) < len(rates):
        return UNKNOWN
    least, most = min(known), max(known)
    text = money(most, is_bound=pool.is_bound or all(o.is_bound for o in pool.ladder))
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
    text = money(None if rate is None else rate * times, is_bound=offer.is_bound)
    return f"{text}{sources.mark(offer)}"
