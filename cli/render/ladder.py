"""How pools of clouds are bought, in a plan: each rung with its price, and where nodes stand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...lifecycle.planning.changes import LadderView, RungState, RungView
from .cells import pad, printable
from .quantities import plural, usd_per_hour
from .surface import Surface, Tone

_MARKS: dict[RungState, tuple[str, Tone]] = {
    "stands": ("=", "good"),
    "next": ("+", "good"),
    "after": (" ", "faint"),
    "skipped": ("-", "warning"),
    "refused": ("!", "error"),
}


def ladder_lines(ladders: Iterable[LadderView], surface: Surface) -> Iterator[str]:
    """Yield the lines of each ladder that has something to tell: more than one plain rung."""
    for ladder in ladders:
        [only, *more] = ladder.rungs
        if not more and not only.reason and only.buy_hours is None:
            continue
        how = "rungs may mix" if ladder.mixes else "all on one rung"
        title = f"how {ladder.pool} is bought ({plural(ladder.count, 'node')}, {how})"
        yield surface.paint("strong", title)
        for rung in ladder.rungs:
            mark, tone = _MARKS[rung.state]
            what = f"{pad(rung.key, 32)} {pad(_price(rung), 24)} {_state(rung)}"
            yield f"  {surface.paint(tone, mark)} {what}".rstrip()
        if ladder.note:
            yield f"    {printable(ladder.note)}"


def _price(rung: RungView) -> str:
    price = usd_per_hour(rung.usd_per_hour)
    return f"at most {price}" if rung.is_bound and rung.usd_per_hour is not None else price


def _state(rung: RungView) -> str:
    words = {
        "stands": f"{rung.nodes} on it",
        "next": f"asked next, for {rung.nodes}",
        "after": "then this",
        "skipped": f"skipped: {rung.reason}",
        "refused": f"refused: {rung.reason}",
    }
    told = words[rung.state]
    return printable(f"{purchase(rung)}; {told}" if rung.buy_hours is not None else told)


def purchase(rung: RungView) -> str:
    """Return what a capacity block costs: "24 h for $2,641.92, paid at once, not refundable"."""
    price = "a price that is unknown" if rung.usd_at_once is None else f"${rung.usd_at_once:,.2f}"
    return f"{rung.buy_hours} h for {price}, paid at once, not refundable"
