"""The way back: jobs that have not started go home when it has room, idle nodes are returned."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from .decide import age_order
from .rule import Rule
from .situation import PendingJob, Rented


class Home(msgspec.Struct, frozen=True, kw_only=True):
    """The partition's own nodes."""

    free_nodes: int
    """Nodes that a job could start on now."""
    oldest_waiting: float | None
    """Since when the oldest job waits that home is to start next; None: none waits."""


def going_back(moved: Iterable[PendingJob], home: Home) -> tuple[str, ...]:
    """Return jobs that go back now, the oldest first.

    Args:
        moved: jobs that have spilled and have not started: their data is staged, their nodes boot.
        home: the partition's own nodes.

    One goes back when it could start at home at once and is older than what waits there, so that
    it passes nobody. It goes back once: if it has to spill again it stays where it is then.
    """
    free, going = home.free_nodes, []
    for job in sorted(moved, key=age_order):
        passes = home.oldest_waiting is not None and home.oldest_waiting < job.eligible_since
        if job.nodes <= free and not passes and not job.returned:
            free -= job.nodes
            going.append(job.id)
    return tuple(going)


def to_release(rule: Rule, rented: Iterable[Rented], now: float) -> tuple[str, ...]:
    """Return idle nodes to give back: idle for long enough, and not of the pool's least count."""
    return tuple(
        node.node
        for node in rented
        if node.idle_since is not None
        and not node.always
        and now - node.idle_since >= rule.target.idle
    )
