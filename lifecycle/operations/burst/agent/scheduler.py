"""The burst agent's interface to a scheduler: queries and updates.

The scheduler's own view of a node decides; requests only trigger a poll, so a lost one delays
nothing for longer than a round.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Literal, Protocol, TypeAlias

import msgspec

from ..policy import PendingJob  # msgspec reads it

NodeState: TypeAlias = Literal["off", "coming", "here", "down"]
"""off: released, or never requested. coming: wanted, but not registered yet. here: it takes jobs.
down: it was given up, or has failed."""

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
    """The address that the scheduler uses; "": unknown."""


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
    """One poll of the scheduler. Nodes that it doesn't report are left out, and left alone."""

    now: float
    """By the scheduler's clock, which all its times are of."""
    requests: tuple[Request, ...] = ()
    nodes: dict[str, NodeSeen] = {}
    jobs: tuple[JobSeen, ...] = ()


class SchedulerSilent(Exception):  # noqa: N818  # named for what happened, as Unreachable
    """The scheduler did not answer; nothing is decided without it."""


class SchedulerRefused(SchedulerSilent):
    """It refused one update; other updates continue."""


class BurstScheduler(Protocol):
    """What the agent serves. Every call is safe to repeat.

    Each may raise SchedulerSilent, or SchedulerRefused.
    """

    def observe(self) -> Seen:
        """Return requests, nodes and jobs."""
        ...

    def wait(self, seconds: float) -> None:
        """Return when nodes are requested, after so many seconds at the latest."""
        ...

    def remove_requests(self, requests: Collection[str]) -> None:
        """Remove requests that were read."""
        ...

    def place(self, addresses: Mapping[str, str]) -> None:
        """Set the nodes' addresses."""
        ...

    def give_up(self, nodes: Collection[str], reason: str) -> None:
        """Record that nodes won't come."""
        ...

    def forget(self, nodes: Collection[str]) -> None:
        """Record that nodes may be requested again."""
        ...

    def end_power_down(self, nodes: Collection[str]) -> None:
        """Record that nothing is left of nodes that were given back."""
        ...

    def release(self, nodes: Collection[str]) -> None:
        """Let no job start on idle nodes; they are given back where none has started meanwhile."""
        ...

    def move(self, job: str, partition: str, reason: str) -> None:
        """Move a waiting job."""
        ...

    def annotate(self, reasons: Mapping[str, str]) -> None:
        """Put messages on jobs; jobs that have ended need none."""
        ...
