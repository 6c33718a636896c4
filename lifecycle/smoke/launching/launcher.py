"""The gate's interface to a scheduler: which nodes are idle, and one AllReduce run to its end.

The scheduler only starts ranks and passes on their output; parsing, floors and verdict are
independent of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import msgspec

from ....inventory.hosts import Host
from ..launch import Launch


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """How one AllReduce ended, as its scheduler saw it."""

    status: int = 0
    """Exit status of what started the ranks; not 0 where it came to no end."""
    problem: str = ""
    """Why it was aborted; "" when it ended by itself."""
    started: bool = True
    """False: ranks never ran, so nothing is at fault with their nodes."""
    messages: tuple[str, ...] = ()
    """The scheduler's messages, for readers of the log; the verdict ignores them."""


class Launcher(Protocol):
    """A scheduler, as far as the gate needs one."""

    def idle(self, compute: tuple[Host, ...]) -> tuple[tuple[Host, ...], tuple[str, ...]]:
        """Return the hosts that no job is on, and the names of the others.

        All of them when the scheduler doesn't respond or none is idle: the AllReduce then waits in
        the queue, and its verdict says so.
        """
        ...

    def run(self, launch: Launch, take: Callable[[str], None], limit_s: float) -> Ended:
        """Run one AllReduce; whatever happens, nothing of it is left running.

        Args:
            launch: what to start, and where.
            take: given each line of the log as it comes, hosts by their names in the cluster.
            limit_s: seconds in the queue and running until it is cancelled.
        """
        ...

    def reaches_nics(self, launch: Launch) -> bool:
        """Whether its ranks see the NICs of their nodes by the nodes' own names."""
        ...
