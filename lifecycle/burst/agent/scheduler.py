"""What the burst agent asks of a scheduler, and what it tells it.

The scheduler's own view of a node decides, and requests only say that it is worth to look now: one
that got lost delays nothing for longer than a round.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Literal, Protocol, TypeAlias

import msgspec

from ..policy import PendingJob  # msgspec reads it

NodeState: TypeAlias = Literal["off", "coming", "here", "down"]
"""off: let go, or never asked for. coming: wanted, and it hasn't answered. here: it takes jobs.
down: it was given up, or has died."""

MARK = "gcluster burst: "
"""How reasons begin that the agent gives."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What the scheduler left for the agent."""

    id: str
    kind: str
    """resume, suspend or failed."""
    nodes: tuple[str, ...]
    at: float


class NodeSeen(msgspec.Struct, frozen=True, kw_only=True):
    """A node as the scheduler has it."""

    state: NodeState
    reason: str = ""
    idle_since: float | None = None
    """None: it has a job, or isn't there."""
    fit: bool = True
    """Whether jobs may start on it."""
    address: str = ""
    """Where the scheduler would look for it; "": it doesn't say."""


class JobSeen(msgspec.Struct, frozen=True, kw_only=True):
    """A job that waits, or holds nodes."""

    job: PendingJob
    partition: str
    nodes: tuple[str, ...] = ()
    """() while it waits."""
    ends: float | None = None
    """When it is over at the latest; None: not known."""
    starting: bool = False
    """It holds nodes and hasn't begun: some of them may not be there yet."""


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """One look at the scheduler. Nodes that it doesn't tell about are left out, and left alone."""

    now: float
    """By the scheduler's clock, which all its times are of."""
    requests: tuple[Request, ...] = ()
    nodes: dict[str, NodeSeen] = {}
    jobs: tuple[JobSeen, ...] = ()


class SchedulerSilent(Exception):  # noqa: N818  # it says what happened, as Unreachable does
    """The scheduler did not answer; nothing is decided without it."""


class SchedulerRefused(SchedulerSilent):
    """It answered and refused one thing that it was told: whatever else there is goes on."""


class Scheduler(Protocol):
    """Every call is safe to repeat, and may raise SchedulerSilent or SchedulerRefused."""

    def look(self) -> Seen:
        """Return requests, nodes and jobs as they are now."""
        ...

    def wait(self, seconds: float) -> None:
        """Return when the scheduler leaves a request, after so many seconds at the latest."""
        ...

    def taken(self, requests: Collection[str]) -> None:
        """Drop requests (ids): what they ask for is on record."""
        ...

    def place(self, addresses: Mapping[str, str]) -> None:
        """Say at which addresses nodes answer."""
        ...

    def give_up(self, nodes: Collection[str], reason: str) -> None:
        """Say that nodes won't come: their jobs wait again, and may start elsewhere."""
        ...

    def forget(self, nodes: Collection[str]) -> None:
        """Make nodes that were given up ones that may be asked for again."""
        ...

    def gone(self, nodes: Collection[str]) -> None:
        """Say that nothing is left of nodes that were let go: they may be asked for again."""
        ...

    def release(self, nodes: Collection[str]) -> None:
        """Let idle nodes go."""
        ...

    def move(self, job: str, partition: str, reason: str) -> None:
        """Move a waiting job; raises SchedulerRefused where it stays."""
        ...

    def annotate(self, reasons: Mapping[str, str]) -> None:
        """Put job -> sentence where whoever looks at the job sees it."""
        ...
