"""The partition's own nodes: first come, first served, with EASY backfill.

The oldest job starts as soon as it fits. While it doesn't, the time at which it will is known from
the limits of what runs, and a younger job starts before it where it doesn't delay that: it ends
before then, or takes nodes that the oldest leaves over (Lifka 1995, "The ANL/IBM SP scheduling
system"). Nodes are identical and allocated whole; priorities, accounts and topology are ignored.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence


class Home:
    """Nodes, what runs on them, and what waits for them."""

    def __init__(self, nodes: int, needs: Sequence[int], limits: Sequence[float]) -> None:
        """Start empty.

        Args:
            nodes: how many there are.
            needs: nodes of each job of the trace.
            limits: time limit of each, in seconds.
        """
        self.nodes = nodes
        self.free = nodes
        self.waiting = Waiting(len(needs))
        self._needs = needs
        self._limits = limits
        self._ends: list[tuple[float, int]] = []
        """(latest end, job) of what runs, in order."""
        self._latest: dict[int, float] = {}

    def queue(self, job: int) -> None:
        """Let a job wait."""
        self.waiting.add(job, self._needs[job], self._limits[job])

    def start(self, job: int, now: float) -> None:
        """Start a job that fits; it no longer waits."""
        self.waiting.remove(job)
        self.free -= self._needs[job]
        self._latest[job] = now + self._limits[job]
        insort(self._ends, (self._latest[job], job))

    def end(self, job: int) -> None:
        """Free the nodes of a job."""
        self.free += self._needs[job]
        del self._ends[bisect_left(self._ends, (self._latest.pop(job), job))]

    def schedule(self, now: float) -> list[int]:
        """Start what may start now; returns it."""
        started: list[int] = []
        while self.waiting.least_nodes <= self.free:
            oldest = self.waiting.oldest()
            if self._needs[oldest] > self.free:
                started += self._backfill(oldest, now)
                break
            self.start(oldest, now)
            started.append(oldest)
        return started

    def _backfill(self, oldest: int, now: float) -> list[int]:
        at, over = self._room_for(oldest)
        started: list[int] = []
        job = oldest
        while self.free:
            spare = min(self.free, over)
            job = self.waiting.first(job + 1, free=self.free, within=at - now, spare=spare)
            if job < 0:
                break
            self.start(job, now)
            if now + self._limits[job] > at:
                over -= self._needs[job]
            started.append(job)
        return started

    def _room_for(self, oldest: int) -> tuple[float, int]:
        """Return when the oldest job has its nodes at the latest, and how many it leaves over."""
        free, needed = self.free, self._needs[oldest]
        for end, job in self._ends:
            free += self._needs[job]
            if free >= needed:
                return end, free - needed
        return float(ANY), 0


ANY = 10**9
"""More nodes than a site has."""
_NONE = 10**12
_FOREVER = 1e18


class Waiting:
    """A tree over all jobs of a trace with the least nodes and time limit of each part."""

    def __init__(self, jobs: int) -> None:
        """Make room for so many jobs; none waits."""
        self._size = 1 << max(1, jobs - 1).bit_length()
        self._nodes = [_NONE] * (2 * self._size)
        self._limit = [_FOREVER] * (2 * self._size)

    def add(self, job: int, nodes: int, limit: float) -> None:
        """Let a job wait, known by its place in the trace."""
        self._set(job, nodes, limit)

    def remove(self, job: int) -> None:
        """Take a job away that waits."""
        self._set(job, _NONE, _FOREVER)

    def _set(self, job: int, nodes: int, limit: float) -> None:
        at = job + self._size
        least_nodes, least_limit = self._nodes, self._limit
        least_nodes[at], least_limit[at] = nodes, limit
        at >>= 1
        while at:
            one, other = 2 * at, 2 * at + 1
            nodes, limit = least_nodes[one], least_limit[one]
            if least_nodes[other] < nodes:  # noqa: PLR1730  # a call takes twice as long
                nodes = least_nodes[other]
            if least_limit[other] < limit:  # noqa: PLR1730  # as above
                limit = least_limit[other]
            if least_nodes[at] == nodes and least_limit[at] == limit:
                return
            least_nodes[at], least_limit[at] = nodes, limit
            at >>= 1

    @property
    def least_nodes(self) -> int:
        """What the smallest of them needs; more than any site has where none waits."""
        return self._nodes[1]

    def oldest(self) -> int:
        """Return the first that waits; -1: none does."""
        return self.first(0, free=ANY, within=_FOREVER / 2, spare=0)

    def first(self, at: int, *, free: int, within: float, spare: int) -> int:
        """Return the first from `at` on that may start; -1: none may.

        Args:
            at: place in the trace to begin with.
            free: nodes for a job that ends within `within` seconds.
            within: see there.
            spare: nodes for a job that runs for longer.
        """
        nodes, limit, size = self._nodes, self._limit, self._size
        if at >= size:
            return -1
        here = at + size
        while True:
            if (nodes[here] <= free and limit[here] <= within) or nodes[here] <= spare:
                if here >= size:
                    return here - size
                here *= 2
                continue
            while here & 1:
                here >>= 1
            if not here:
                return -1
            here += 1
