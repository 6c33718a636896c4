"""Which rung of its market a pool is bought on next: a decision from values alone.

Rungs are tried in their order, each once in a walk. The nodes of a pool stand on one rung, unless
the spec says `mixed: true`: then those that came stay, and only the missing ones go on. A rung that
costs more than the budget leaves is skipped, and so is a capacity block that nobody asked for by
name. Where the ladder ends, what the walk has made is given back, unless the pool's quorum is met.
Machines that stood before the walk are never given back for it: growing a pool replaces nothing.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from ...stacks.provider import PurchaseOption
from ..state.rungs import Tried, Walk

_CENT = 0.005
"""USD/h by which sums of prices may differ from a ceiling: they are sums of floats."""


class PoolLadder(msgspec.Struct, frozen=True, kw_only=True):
    """A pool and the ways it may be bought."""

    pool: str
    site: str
    nodes: tuple[str, ...]
    """Those that are always there."""
    rungs: tuple[PurchaseOption, ...]
    mixed: bool = False
    quorum: int | None = None
    elastic: int = 0
    """Nodes that may come beyond."""

    @property
    def mixes(self) -> bool:
        """Whether its nodes may stand on several rungs: the spec says so and the cloud can."""
        return self.mixed and not any(rung.whole for rung in self.rungs)

    def rung(self, key: str) -> PurchaseOption | None:
        """Return a rung; None where the ladder has none of this key."""
        return next((rung for rung in self.rungs if rung.key == key), None)

    def suffices(self, count: int) -> bool:
        """Say whether this many nodes are enough to go live."""
        return count >= len(self.nodes) or (self.quorum is not None and count >= self.quorum)

    def usd_per_hour(self, on: dict[str, str], elastic: float = 1.0) -> float | None:
        """Return what nodes cost on these rungs, with a share of the elastic ones; None: unknown.

        Elastic nodes count at the price of the dearest of these rungs.
        """
        rates = [self._rate(key) for key in on.values()]
        known = [rate for rate in rates if rate is not None]
        if len(known) < len(rates):
            return None
        return sum(known) + max(known, default=0.0) * self.elastic * elastic

    def _rate(self, key: str) -> float | None:
        rung = self.rung(key)
        return None if rung is None else rung.usd_per_hour


class Room(msgspec.Struct, frozen=True, kw_only=True):
    """What a ceiling of the budget leaves for one pool."""

    ceiling: str
    """Where the spec says it: budget.max_usd_per_hour."""
    usd_per_hour: float
    elastic: float = 1.0
    """Share of the elastic nodes that counts."""


class Hold(msgspec.Struct, frozen=True, kw_only=True):
    """All nodes stand."""


class Try(msgspec.Struct, frozen=True, kw_only=True):
    """Ask for the nodes that are missing on this rung."""

    rung: PurchaseOption
    nodes: tuple[str, ...]
    skipped: tuple[Tried, ...] = ()


class TakeBack(msgspec.Struct, frozen=True, kw_only=True):
    """Remove these nodes first: no rung gave enough of them."""

    nodes: tuple[str, ...]
    skipped: tuple[Tried, ...] = ()


class GiveUp(msgspec.Struct, frozen=True, kw_only=True):
    """The walk ends without these nodes."""

    missing: tuple[str, ...]
    skipped: tuple[Tried, ...] = ()


class Blocked(msgspec.Struct, frozen=True, kw_only=True):
    """A purchase was begun and killed: whether it was made isn't known, and it isn't repeated."""

    rung: PurchaseOption
    nodes: tuple[str, ...]


Decision: TypeAlias = Hold | Try | TakeBack | GiveUp | Blocked


def at_home(ladder: PoolLadder, walk: Walk) -> Walk:
    """Return a walk without what its ladder no longer has: nodes and rungs that the spec dropped.

    A rung that is still in the ladder is kept, wherever it stands there now.
    """
    if walk.site != ladder.site:
        return Walk(site=ladder.site)
    keys = {rung.key for rung in ladder.rungs}
    nodes = set(ladder.nodes)
    standing = {n: rung for n, rung in walk.standing.items() if n in nodes and rung in keys}
    return msgspec.structs.replace(
        walk,
        standing=standing,
        fresh=walk.fresh & standing.keys(),
        loose=walk.loose & nodes,
        trying=walk.trying if walk.trying in keys else "",
        tried=tuple(tried for tried in walk.tried if tried.rung in keys),
        paid=walk.paid if walk.paid in keys else "",
    )


def decide(
    ladder: PoolLadder, walk: Walk, *, rooms: tuple[Room, ...] = (), buys: bool = False
) -> Decision:
    """Return what to do next with a pool.

    Args:
        ladder: the pool.
        walk: where it stands, `at_home` in this ladder.
        rooms: what each ceiling leaves for it; empty: there is no ceiling.
        buys: somebody asked for its capacity block by name.
    """
    if walk.loose:
        return TakeBack(nodes=_ordered(ladder, walk.loose))
    missing = tuple(node for node in ladder.nodes if node not in walk.standing)
    if not missing:
        return Hold()
    trying = ladder.rung(walk.trying)
    if trying is not None:
        unknown = trying.buy_hours is not None and not buys and walk.paid != trying.key
        again = Try(rung=trying, nodes=missing)
        return Blocked(rung=trying, nodes=missing) if unknown else again
    skipped: list[Tried] = []
    enough = ladder.suffices(len(walk.standing))
    if not (enough and walk.tried and not ladder.mixes):
        for rung in _open_rungs(ladder, walk):
            reason = why_not(ladder, walk, rung, rooms, buys=buys)
            if not reason:
                return Try(rung=rung, nodes=missing, skipped=tuple(skipped))
            skipped.append(Tried(rung=rung.key, outcome="skipped", reason=reason))
    if walk.fresh and not enough and not walk.paid:
        return TakeBack(nodes=_ordered(ladder, walk.fresh), skipped=tuple(skipped))
    return GiveUp(missing=missing, skipped=tuple(skipped))


def sorted_out(
    ladder: PoolLadder, walk: Walk, lacking: frozenset[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return (kept, loose) of the nodes that came although others of the pool did not."""
    came = [n for n in ladder.nodes if n not in walk.standing and n not in lacking]
    still = len(walk.standing.keys() - lacking)
    keeps = ladder.mixes or walk.paid or ladder.suffices(still + len(came))
    return (tuple(came), ()) if keeps else ((), tuple(came))


def rungs_after(ladder: PoolLadder, walk: Walk, decision: Decision) -> dict[str, str]:
    """Return node -> rung that it shall be on for a decision; "": it shall not be there."""
    on = {node: walk.standing.get(node, "") for node in ladder.nodes}
    if isinstance(decision, Try | Blocked):
        on |= dict.fromkeys(decision.nodes, decision.rung.key)
    elif isinstance(decision, TakeBack):
        on |= dict.fromkeys(decision.nodes, "")
    return on


def _open_rungs(ladder: PoolLadder, walk: Walk) -> list[PurchaseOption]:
    """Return the rungs that may be asked: where nodes stand and don't mix, only theirs."""
    told = {tried.rung for tried in walk.tried}
    only = {walk.paid} if walk.paid else set[str]()
    if not only and not ladder.mixes:
        only = set(walk.standing.values())
    return [r for r in ladder.rungs if r.key not in told and (not only or r.key in only)]


def why_not(
    ladder: PoolLadder,
    walk: Walk,
    rung: PurchaseOption,
    rooms: tuple[Room, ...],
    *,
    buys: bool,
) -> str:
    """Return why a rung is not asked for the nodes that are missing; "" where it is."""
    missing = [node for node in ladder.nodes if node not in walk.standing]
    if rung.buy_hours is not None and walk.paid != rung.key and not buys:
        return (
            f"a capacity block of {rung.buy_hours} h is bought only with "
            f"--buy-capacity-block {ladder.pool}"
        )
    for room in rooms:
        on = walk.standing | dict.fromkeys(missing, rung.key)
        costs = ladder.usd_per_hour(on, room.elastic)
        if costs is None:
            return f"its price is unknown, and {room.ceiling} is a ceiling"
        if costs > room.usd_per_hour + _CENT:
            left = max(0.0, room.usd_per_hour)
            return f"the pool would cost ${costs:,.2f}/h, {room.ceiling} leaves ${left:,.2f}/h"
    return ""


def _ordered(ladder: PoolLadder, nodes: frozenset[str]) -> tuple[str, ...]:
    return tuple(node for node in ladder.nodes if node in nodes)
