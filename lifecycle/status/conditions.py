"""Values of a running cluster's status: conditions with reason and time, nodes, queue."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from ...stacks.provider import Leftover
from ..state.repair_queue import Repair


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
    """From sinfo: idle, alloc, drain, down*; of Kubernetes ready, cordoned, not ready; "" for nodes
    that run no jobs."""
    reason: str = ""
    """Why it isn't healthy; "" when it is."""
    steps_pending: int = 0
    """Steps whose stamp differs from the compiled spec."""
    out_since: str = ""
    """When the scheduler took it out of service, RFC 3339, UTC; "" when it serves."""


ElasticState: TypeAlias = Literal["off", "requested", "starting", "joined", "leaving", "refused"]
"""By the burst agent. off: it has no machine. refused: its site gave it none."""


class ElasticStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A node that comes when jobs wait, and goes when it is idle."""

    name: str
    pool: str
    state: ElasticState
    site: str = ""
    """Where its machine is, or was refused; "" where there is none."""
    scheduler_state: str = ""
    """As of `NodeStatus`; "": the scheduler doesn't know it."""
    reason: str = ""
    """Why it was refused, why it leaves, or why it takes no jobs."""
    requested: str = ""
    """When its machine was requested, RFC 3339, UTC; "" where it has none."""


class PartitionQueue(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs of one partition; one that may run in several counts in each while it waits."""

    name: str
    running: int
    pending: int
    oldest_wait_s: float | None = None
    """Since the submission of the pending job that waits longest; None: none waits."""


class WaitingFor(msgspec.Struct, frozen=True, kw_only=True):
    """Pending jobs that wait for the same."""

    reason: str
    """The scheduler's reason."""
    jobs: int


class QueueStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs by state; each task of an array is a job."""

    running: int
    pending: int
    oldest_wait_s: float | None = None
    """Since the submission of the pending job that waits longest; None: none waits."""
    partitions: tuple[PartitionQueue, ...] = ()
    reasons: tuple[WaitingFor, ...] = ()
    """What pending jobs wait for, the most frequent first."""


class QuotaUse(msgspec.Struct, frozen=True, kw_only=True):
    """What an account has now, and may have, of one resource."""

    account: str
    resource: str
    """As Slurm's accounting names it: gres/gpu, cpu, node; as Kubernetes does: nvidia.com/gpu."""
    used: int
    limit: int | None
    """None: no limit."""


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """Why something does not work, and what to do about it."""

    kind: str
    """munge-key, clock-skew, disk-full, slurmctld-down ...; stays the same over versions."""
    host: str
    summary: str
    next_step: str


class ClusterStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `gcluster status`."""

    cluster: str
    conditions: tuple[Condition, ...]
    nodes: tuple[NodeStatus, ...]
    queue: QueueStatus | None
    certificate: dict[str, object] | None
    """The last certificate, as stored."""
    kept: tuple[Leftover, ...] = ()
    """Data that `down` kept, and the resource that holds it; reported of a cluster without
    nodes.
    """
    quotas: tuple[QuotaUse, ...] = ()
    """Accounts that use GPUs or whose use is limited, where the scheduler keeps accounts."""
    elastic: tuple[ElasticStatus, ...] = ()
    """Nodes that come and go, in the order in which they are requested."""
    repairs: tuple[Repair, ...] = ()
    """Nodes that the cluster does without, oldest first."""
    causes: tuple[Cause, ...] = ()
    """What is known of why conditions don't hold."""

    @property
    def healthy(self) -> bool:
        """Whether every condition holds."""
        return all(condition.status == "true" for condition in self.conditions)
