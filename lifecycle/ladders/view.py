"""The ladders of a cluster as a plan shows them: where each pool stands, and what comes after."""

from __future__ import annotations

import msgspec

from ...schemas.cost.pools import Cost
from ...schemas.derived.hostlist import fold
from ...stacks.provider import PurchaseOption
from ..planning.changes import LadderView, RungState, RungView
from .rung import Blocked, Decision, PoolLadder, Try, why_not
from .standing import Ladders


def ladder_views(book: Ladders) -> tuple[LadderView, ...]:
    """Return every pool's ladder as `up` would walk it now."""
    decisions = book.decide_all()
    return tuple(
        LadderView(
            site=ladder.site,
            pool=name,
            count=len(ladder.nodes),
            rungs=tuple(_view(book, ladder, rung, decisions[name]) for rung in ladder.rungs),
            mixes=ladder.mixes,
            note=_note(ladder),
        )
        for name, ladder in book.ladders.items()
        if ladder.nodes
    )


def usd_taken(book: Ladders, cost: Cost) -> float | None:
    """Return $/h of what is always there, each pool on the rung that it would be on."""
    book.decide_all()
    rates = [
        book.usd_per_hour(name)
        if name in book.ladders and book.has_moved(name)
        else pool.usd_per_hour_now
        for name, pool in cost.pools.items()
    ]
    known = [rate for rate in rates if rate is not None]
    return sum(known) if len(known) == len(rates) else None


def _view(book: Ladders, ladder: PoolLadder, rung: PurchaseOption, decision: Decision) -> RungView:
    state, nodes, reason = _state(book, ladder, rung, decision)
    rate, count = rung.usd_per_hour, len(ladder.nodes)
    bought = None if rung.buy_hours is None or rate is None else rate * rung.buy_hours * count
    return RungView(
        key=rung.key,
        market=rung.market,
        zone=rung.zone,
        state=state,
        nodes=fold(nodes) if nodes else "",
        usd_per_hour=None if rate is None else rate * count,
        is_bound=rung.is_bound,
        usd_at_once=bought,
        buy_hours=rung.buy_hours,
        reason=reason,
    )


def _state(
    book: Ladders, ladder: PoolLadder, rung: PurchaseOption, decision: Decision
) -> tuple[RungState, list[str], str]:
    walk = book.walks[ladder.pool]
    standing = [node for node in ladder.nodes if walk.standing.get(node) == rung.key]
    if isinstance(decision, Try | Blocked) and decision.rung.key == rung.key:
        return "next", [*standing, *decision.nodes], ""
    if standing:
        return "stands", standing, ""
    for step in walk.tried:
        if step.rung == rung.key and step.outcome == "refused":
            return "refused", [], step.reason
    buys = ladder.pool in book.wishes.buy
    bare = walk if ladder.mixes else msgspec.structs.replace(walk, standing={})
    reason = why_not(ladder, bare, rung, book.rooms(ladder.pool), buys=buys)
    return ("skipped", [], reason) if reason else ("after", [], "")


def _note(ladder: PoolLadder) -> str:
    reason = next((rung.whole for rung in ladder.rungs if rung.whole), "")
    return f"mixed: true has no effect here: {reason}" if ladder.mixed and reason else ""
