"""Jobs that wait at home, in the order of the trace: finds the first that fits without a scan."""

from __future__ import annotations

ANY = 10**9
"""More nodes than a site has."""
_NONE = 10**12
_FOREVER = 1e18


class Waiting:
    """A tree over all jobs of a trace that knows the least nodes and time limit of each part."""

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
        return self.first(0, free=ANY, within=_FOREVER / 2, beside=0)

    def first(self, at: int, *, free: int, within: float, beside: int) -> int:
        """Return the first from `at` on that may start; -1: none may.

        Args:
            at: place in the trace to begin with.
            free: nodes for a job that ends within `within` seconds.
            within: see there.
            beside: nodes for a job that runs for longer.
        """
        nodes, limit, size = self._nodes, self._limit, self._size
        if at >= size:
            return -1
        here = at + size
        while True:
            if (nodes[here] <= free and limit[here] <= within) or nodes[here] <= beside:
                if here >= size:
                    return here - size
                here *= 2
                continue
            while here & 1:
                here >>= 1
            if not here:
                return -1
            here += 1
