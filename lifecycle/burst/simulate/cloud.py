"""The rented nodes of a simulation: what each costs, how long it runs, and whether it has a job."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from ..policy.rule import HOUR_S, by_day


class _Node(NamedTuple):
    since: float
    usd_per_hour: float
    ready: float
    """When it takes jobs."""


class Cloud:
    """Nodes by number, and what was paid for those that went."""

    def __init__(self) -> None:
        """Start with none."""
        self._nodes: dict[int, _Node] = {}
        self._next = 0
        self.usd = 0.0
        self.node_s = 0.0
        """Seconds that nodes were rented for, all together."""
        self.peak_nodes = 0
        self.peak_usd_per_hour = 0.0
        self._rate = 0.0
        self._days: defaultdict[int, float] = defaultdict(float)

    def rent(self, count: int, now: float, usd_per_hour: float, ready: float) -> list[int]:
        """Plan to ask for nodes at a time from which they are paid for; they count from today."""
        numbers = list(range(self._next, self._next + count))
        self._next += count
        for number in numbers:
            self._nodes[number] = _Node(now, usd_per_hour, ready)
        self._rate += count * usd_per_hour
        self.peak_nodes = max(self.peak_nodes, len(self._nodes))
        self.peak_usd_per_hour = max(self.peak_usd_per_hour, self._rate)
        return numbers

    def give_back(self, number: int, now: float) -> None:
        """Give a node back."""
        node = self._nodes.pop(number)
        self._rate = self._rate - node.usd_per_hour if self._nodes else 0.0
        lasted = max(0.0, now - node.since)
        self.usd += lasted / HOUR_S * node.usd_per_hour
        self.node_s += lasted
        spread = by_day(node.since, now, node.usd_per_hour)
        for day, usd in enumerate(spread.usd, start=spread.first):
            self._days[day] += usd

    def is_asked_for(self, number: int, now: float) -> bool:
        """Say whether a node is paid for by now."""
        return self._nodes[number].since <= now

    def ready(self, number: int) -> float:
        """Return when a node takes jobs."""
        return self._nodes[number].ready

    def usd_per_hour(self, number: int) -> float:
        """Return what a node costs."""
        return self._nodes[number].usd_per_hour

    @property
    def peak_usd_per_day(self) -> float:
        """What the dearest day (UTC) has cost, of nodes that were given back."""
        return max(self._days.values(), default=0.0)
