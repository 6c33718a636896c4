"""What the burst agent asks of a scheduler, and what it tells it.

The scheduler's own view of a node decides, and requests only say that it is worth to look now: one
that got lost delays nothing for longer than a round.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

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
