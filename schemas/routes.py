"""Which sites reach each other over the links of a spec, and how long a round trip takes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heappop, heappush

from .spec import Link


class Routes:
    """Sites that links join, directly or through other sites."""

    def __init__(self, links: Iterable[Link]) -> None:
        """Join the two sites of each link."""
        self._above: dict[str, str] = {}
        self._latency: dict[frozenset[str], float] = {}
        self.ends: set[str] = set()
        """Sites that links name, declared or not."""
        for link in links:
            self.ends.update(link.between)
            one, other = link.between[0], link.between[-1]
            self._above[self._top(one)] = self._top(other)
            if link.latency is not None:
                self._latency.setdefault(frozenset((one, other)), link.latency.value)

    def joins(self, one: str, other: str) -> bool:
        """Say whether a chain of links leads from one site to the other."""
        return self._top(one) == self._top(other)

    def latency(self, one: str, other: str) -> float | None:
        """Return the round trip of a link between two sites in seconds; None: not known."""
        return self._latency.get(frozenset((one, other)))

    def _top(self, site: str) -> str:
        """Return what stands for all sites that are joined with this one."""
        above = self._above.setdefault(site, site)
        while above != site:
            self._above[site] = self._above[above]  # halves the way for the next call
            site, above = above, self._above[above]
        return site


def first_links(links: Sequence[Link], site: str) -> dict[str, int]:
    """Return each site that a chain of links leads to -> index of the chain's first link.

    The chain with the fewest links is taken. Of several, one is chosen such that both ends choose
    the same, and every site on it: WireGuard takes no packet that comes another way than the
    answer goes. So a link weighs 1, and a bit of its own that no sum of others equals.
    """
    unit = 1 << len(links)
    joins: dict[str, list[tuple[str, int]]] = {}
    for index, link in enumerate(links):
        one, other = link.between[0], link.between[-1]
        joins.setdefault(one, []).append((other, index))
        joins.setdefault(other, []).append((one, index))
    first: dict[str, int] = {}
    waiting: list[tuple[int, str, int]] = [(0, site, -1)]
    while waiting:
        weight, here, begun = heappop(waiting)
        if here in first:
            continue
        first[here] = begun
        for there, index in joins.get(here, ()):
            if there not in first:
                step = (weight + unit + (1 << index), there, index if begun < 0 else begun)
                heappush(waiting, step)
    del first[site]
    return first
