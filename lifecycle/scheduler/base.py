"""The scheduler of a cluster, behind one interface: nodes with state and jobs, drain, resume.

Three implementations: Slurm through a controller, Kubernetes through its API, and without a
scheduler the processes on the nodes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

import msgspec

MARK = "gcluster up: "
"""How the reason of a node begins that we took out of service. Only such nodes are given back."""


class NodeUse(msgspec.Struct, frozen=True, kw_only=True):
    """The scheduler's view of one node."""

    out: bool
    """No job can start on it."""
    jobs: tuple[str, ...] = ()
    """Jobs that hold it: running, suspended, or not yet cleaned up after."""
    reason: str = ""
    """Why it is out, as an administrator, a health check or we wrote it."""
    silent: bool = False
    """The node doesn't respond to the scheduler: its state may be outdated."""
    unheard: bool = False
    """The scheduler was restarted, and the node has not registered since."""

    @property
    def is_ours(self) -> bool:
        """Whether we took it out of service, in this run or in one that was killed."""
        return self.out and self.reason.startswith(MARK)

    @property
    def is_forgotten(self) -> bool:
        """Whether Slurm took it out by its own mistake (slurm 24.11, agent.c): the node is well.

        A slurmctld that was killed may start a job again that runs there already.
        """
        return self.out and self.reason == "Duplicate jobid"

    @property
    def is_free(self) -> bool:
        """Whether nothing runs there and nothing can start."""
        return self.out and not self.jobs


class SchedulerSilent(Exception):  # noqa: N818  # named for what happened, as Unreachable
    """The scheduler did not respond, so what runs where is unknown; the text says why."""


class Scheduler(Protocol):
    """A cluster's scheduler. Every call may be repeated, and may raise SchedulerSilent."""

    def nodes(self, nodes: Collection[str]) -> Mapping[str, NodeUse]:
        """Return the use of each node; one that the scheduler doesn't have is left out."""
        ...

    def drain(self, nodes: Collection[str], reason: str) -> None:
        """Let no further job start on the nodes; running ones go on."""
        ...

    def resume(self, nodes: Collection[str]) -> None:
        """Let jobs start on the nodes again."""
        ...

    def requeue(self, jobs: Collection[str]) -> None:
        """Put running jobs back in line; those that can't be are left running."""
        ...

    def pinned(self, nodes: Collection[str]) -> Mapping[str, str]:
        """Return job -> "PENDING", "RUNNING" ... of those that end where these nodes are no more.

        Slurm ends a queued job that requests a node by name once its configuration lacks that node
        (slurm 24.11, job_mgr.c: "Invalid req_nodes"), with state NODE_FAIL.
        """
        ...
