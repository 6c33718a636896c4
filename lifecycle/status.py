"""What a running cluster looks like now: conditions with reasons and since when, nodes, queue."""

from __future__ import annotations

from typing import Literal

import msgspec

from gcluster.stacks.provider import Leftover


class Condition(msgspec.Struct, frozen=True, kw_only=True):
    """One statement about the cluster, e.g. NodesReady False "gpu003: container is stopped"."""

    name: str
    status: Literal["true", "false", "unknown"]
    reason: str = ""
    since: str = ""
    """RFC 3339, UTC; "" when it isn't known."""


class NodeStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One node as its provider, SSH and the scheduler see it."""

    name: str
    site: str
    pool: str
    role: str
    address: str
    reachable: bool
    scheduler_state: str = ""
    """As sinfo says it: idle, alloc, drain, down*; "" for nodes that run no jobs."""
    reason: str = ""
    """Why it isn't fit for work, in words; "" when it is."""
    steps_pending: int = 0
    """Steps whose stamp differs from the compiled spec."""


class QueueStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs by state."""

    running: int
    pending: int


class ClusterStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `gcluster status`."""

    cluster: str
    conditions: tuple[Condition, ...]
    nodes: tuple[NodeStatus, ...]
    queue: QueueStatus | None
    certificate: dict[str, object] | None
    """The last certificate, as stored."""
    kept: tuple[Leftover, ...] = ()
    """Data that `down` kept, and what it stands in; told of a cluster without nodes."""

    @property
    def healthy(self) -> bool:
        """Whether every condition holds."""
        return all(condition.status == "true" for condition in self.conditions)
