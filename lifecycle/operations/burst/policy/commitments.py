"""What is rented until when, and what each day costs: the sums that ceilings are held against.

A rent is booked for as long as it may last at most. What ends earlier is taken back, so that the
sums are never below what will be paid: a ceiling that holds for them holds for the bill.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from typing import NamedTuple

from .rule import CENT, DAY_S, LONGEST_S, Ceiling, Rule, by_day
from .situation import Situation

GOING_S = 300.0
"""Most seconds that a node which is given back is still paid for: clouds take a minute or two."""


class Rent(NamedTuple):
    """Nodes that are paid for."""

    begins: float
    until: float
    """At the latest."""
    nodes: int
    usd_per_hour: float
    """Of all of them together."""
    idle: bool = False
    """They have no job: the next may have them."""

    @property
    def is_free(self) -> bool:
        """Whether a job that takes them costs nothing and leaves as much room as before."""
        return self.idle and self.usd_per_hour == 0


class Commitments:
    """All rents of one pool."""

    def __init__(self) -> None:
        """Start with nothing rented and nothing spent."""
        self._rents: dict[Hashable, Rent] = {}
        self.idle: dict[Hashable, Rent] = {}
        """Those of the rents whose nodes have no job."""
        self.busy = 0
        """Nodes with a job, or on their way to one."""
        self.usd_per_hour = 0.0
        """Of all nodes."""
        self.days: defaultdict[int, float] = defaultdict(float)
        """Day since the epoch -> USD that was or may be spent on it."""

    @classmethod
    def of(cls, situation: Situation) -> Commitments:
        """Build the accounts from the current state.

        An idle node that should be gone by now is still paid for, and no job gets it.
        """
        commitments = cls()
        now = situation.now
        commitments.days[int(now // DAY_S)] += situation.spent_today_usd
        for node in situation.rented:
            idle = node.idle_since is not None
            stays = node.until is None or (node.always and idle)
            until = now + LONGEST_S if stays else max(now, node.until or now)
            rate = 0.0 if node.always else node.usd_per_hour
            going = idle and until <= now
            ends = now + GOING_S if going else until
            commitments.add(node.node, Rent(now, ends, 1, rate, idle and not going))
        return commitments

    def add(self, key: Hashable, rent: Rent) -> None:
        """Take a rent up under its key."""
        self._rents[key] = rent
        if rent.idle:
            self.idle[key] = rent
        else:
            self.busy += rent.nodes
        self.usd_per_hour += rent.usd_per_hour
        self._spread(rent.begins, rent.until, rent.usd_per_hour)

    def end(self, key: Hashable, now: float) -> Rent:
        """End a rent: what was booked beyond now is taken back."""
        rent = self._rents.pop(key)
        if rent.idle:
            del self.idle[key]
        else:
            self.busy -= rent.nodes
        self.usd_per_hour = self.usd_per_hour - rent.usd_per_hour if self._rents else 0.0
        self._spread(max(now, rent.begins), rent.until, -rent.usd_per_hour)
        return rent

    def _spread(self, begins: float, until: float, usd_per_hour: float) -> None:
        spread = by_day(begins, until, usd_per_hour)
        for number, usd in enumerate(spread.usd, start=spread.first):
            self.days[number] += usd

    def after(self, at: float) -> tuple[int, float]:
        """Return (nodes, USD per hour) that may still be rented at a time."""
        later = [rent for rent in self._rents.values() if rent.until > at]
        nodes = sum(rent.nodes for rent in later if not rent.is_free)
        return nodes, sum(rent.usd_per_hour for rent in later)

    def endings(self) -> list[tuple[float, int, float]]:
        """Return (time, nodes, USD per hour) for each latest end, in order.

        The figures are those of what may be rented beyond it.
        """
        found: list[tuple[float, int, float]] = []
        nodes, rate = 0, 0.0
        for rent in sorted(self._rents.values(), key=lambda each: each.until, reverse=True):
            if not found or found[-1][0] != rent.until:
                found.append((rent.until, nodes, rate))
            nodes += 0 if rent.is_free else rent.nodes
            rate += rent.usd_per_hour
        return found[::-1]


def over_hour(ceilings: Iterable[Ceiling], usd_per_hour: float) -> Iterator[Ceiling]:
    """Yield the ceilings for an hour that a rate is above."""
    for ceiling in ceilings:
        if ceiling.per == "hour" and usd_per_hour > ceiling.usd + CENT:
            yield ceiling


def over_day(
    ceilings: Iterable[Ceiling], days: dict[int, float], *added: Rent
) -> Iterator[tuple[Ceiling, int, float]]:
    """Yield (ceiling, day, USD of it) for the first day of each ceiling that rents bring over it.

    Only days within the rents are checked.
    """
    extra: dict[int, float] = {}
    for rent in added:
        spread = by_day(rent.begins, rent.until, rent.usd_per_hour)
        for number, usd in enumerate(spread.usd, start=spread.first):
            extra[number] = extra.get(number, 0.0) + usd
    for ceiling in ceilings:
        if ceiling.per != "day":
            continue
        for number, usd in sorted(extra.items()):
            total = days.get(number, 0.0) + usd
            if usd > 0 and total > ceiling.usd + CENT:
                yield ceiling, number, total
                break


def earliest(rule: Rule, commitments: Commitments, wanted: Rent) -> float:
    """Return when a rent has its room at the latest; it must fit where nothing else is rented.

    Other rents end at their latest times and no new ones come. From then on the days are checked,
    each from its beginning, when all of the new day is still to be spent.
    """
    at = wanted.begins
    paid = sum(not rent.is_free for rent in commitments.idle.values())
    states = [(at, commitments.busy + paid, commitments.usd_per_hour), *commitments.endings()]
    for end, nodes, rate in states:
        fits = nodes + wanted.nodes <= rule.target.most
        if fits and not any(over_hour(rule.ceilings, rate + wanted.usd_per_hour)):
            at = max(at, end)
            break
    length = wanted.until - wanted.begins
    while any(
        over_day(rule.ceilings, commitments.days, wanted._replace(begins=at, until=at + length))
    ):
        at = (at // DAY_S + 1) * DAY_S
    return at
