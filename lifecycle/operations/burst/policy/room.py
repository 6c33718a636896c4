"""Whether the pool has room for a job now: nodes, money an hour, money a day, and its turn."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from datetime import date
from typing import NamedTuple

import msgspec

from .commitments import Commitments, Rent, earliest, over_day, over_hour
from .fitting import cheapest_rent, plural
from .rule import Rule
from .situation import Reason

_EPOCH = date(1970, 1, 1).toordinal()


class ReservedRoom(NamedTuple):
    """Room that is kept for an older job."""

    job: str
    rent: Rent
    """From when it has its room at the latest."""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """What moving a job would take."""

    reused: tuple[Hashable, ...]
    """Keys of idle nodes in the books."""
    new_nodes: int
    cap: float | None
    """Most that one new node may cost, USD per hour; None: there is no ceiling."""
    rents: tuple[Rent, ...]
    """What it adds to the books: new nodes, then each reused one from when it would have gone."""

    @property
    def usd_per_hour(self) -> float:
        """What it adds now."""
        return self.rents[0].usd_per_hour


class RoomRequest(NamedTuple):
    """What a job needs of the pool."""

    nodes: int
    seconds: float
    """How long its nodes may be rented."""


def find(
    rule: Rule, commitments: Commitments, now: float, wanted: RoomRequest, kept: ReservedRoom | None
) -> Place | tuple[Reason, ...]:
    """Return where a job fits now, or the reason against each option.

    Idle nodes are taken first, the cheapest of them; where they would cost more than a ceiling
    allows, new ones instead. New ones are bought at the highest price that holds every ceiling, so
    that as many options of the market as possible are open.
    """
    room = rule.target.most - commitments.busy
    if wanted.nodes > room:
        text = f"it needs {plural(wanted.nodes)}, pool {rule.target.pool} has room for {room} now"
        return (Reason("nodes", holds=False, text=text),)
    idle = sorted(commitments.idle.items(), key=lambda item: (item[1].usd_per_hour, -item[1].until))
    most = min(len(idle), wanted.nodes)
    free = sum(rent.is_free for _key, rent in idle)
    least = max(min(free, most), wanted.nodes + len(idle) - room)
    against: tuple[Reason, ...] = ()
    whole = Rent(now, now + wanted.seconds, wanted.nodes, 0.0)
    for reused in dict.fromkeys((most, least)):
        for place in _places(rule, now, wanted, idle[:reused]):
            found = _against(rule, commitments, place, whole, kept)
            if not found:
                return place
            against = found if reused == most else against
    return against


def _places(
    rule: Rule, now: float, wanted: RoomRequest, reused: list[tuple[Hashable, Rent]]
) -> Iterator[Place]:
    """Yield the ways to have a job's nodes with some idle ones, the dearest way to buy first."""
    new, until = wanted.nodes - len(reused), now + wanted.seconds
    longer = tuple(
        Rent(max(now, rent.until), max(until, rent.until), 1, rent.usd_per_hour)
        for _key, rent in reused
    )
    caps = rule.caps if rule.ceilings or rule.target.is_free else (None,)
    for cap in caps if new else caps[-1:]:
        yield Place(
            reused=tuple(key for key, _rent in reused),
            new_nodes=new,
            cap=cap if rule.ceilings else None,
            rents=(Rent(now, until, new, new * (cap or 0.0)), *longer),
        )


def _against(
    rule: Rule, commitments: Commitments, place: Place, whole: Rent, kept: ReservedRoom | None
) -> tuple[Reason, ...]:
    rate = commitments.usd_per_hour + place.usd_per_hour
    for ceiling in over_hour(rule.ceilings, rate):
        text = (
            f"${commitments.usd_per_hour:,.2f}/h are rented and it adds "
            f"${place.usd_per_hour:,.2f}, "
            f"{ceiling.where} is ${ceiling.usd:,.2f}"
        )
        return (Reason("hour", holds=False, text=text),)
    for ceiling, day, usd in over_day(rule.ceilings, commitments.days, *place.rents):
        text = (
            f"{_date(day)} may come to ${usd:,.2f} with it, {ceiling.where} is ${ceiling.usd:,.2f}"
        )
        return (Reason("day", holds=False, text=text),)
    if kept is not None and _takes_from(rule, commitments, place, whole, kept):
        text = f"job {kept.job} was promised room, and would get it later"
        return (Reason("turn", holds=False, text=text),)
    return ()


def _takes_from(
    rule: Rule, commitments: Commitments, place: Place, whole: Rent, kept: ReservedRoom
) -> bool:
    """Return whether an older job could no longer start at its reserved time."""
    at, older = kept.rent.begins, kept.rent
    busy, rate = commitments.after(at)
    if whole.until > at:
        busy += whole.nodes
        rate += sum(rent.usd_per_hour for rent in place.rents if rent.until > at >= rent.begins)
    if busy + older.nodes > rule.target.most:
        return True
    if any(over_hour(rule.ceilings, rate + older.usd_per_hour)):
        return True
    return any(over_day(rule.ceilings, commitments.days, *place.rents, older))


def take(
    commitments: Commitments, place: Place, key: Hashable, now: float, busy_until: float
) -> None:
    """Write a place into the books, as one rent of the job's nodes."""
    rate = place.usd_per_hour
    for each in place.reused:
        rate += commitments.end(each, now).usd_per_hour
    nodes = place.new_nodes + len(place.reused)
    commitments.add(key, Rent(now, busy_until, nodes, rate))


def room_later(
    rule: Rule, commitments: Commitments, now: float, wanted: RoomRequest, latest: float | None
) -> Rent:
    """Return the rent of a job from when it has its room at the latest, and no later than `latest`.

    It is bought the cheapest way.
    """
    rate = cheapest_rent(rule, wanted.nodes, None).usd_per_hour if rule.caps else 0.0
    rent = Rent(now, now + wanted.seconds, wanted.nodes, rate)
    at = earliest(rule, commitments, rent)
    if latest is not None:
        at = max(now, min(at, latest))
    return rent._replace(begins=at, until=at + wanted.seconds)


def _date(day: int) -> str:
    """Return a day since the epoch as 2027-03-31."""
    return date.fromordinal(_EPOCH + day).isoformat()
