"""Which nodes an AllReduce may run on: those that no job is on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gcluster.lifecycle.slurm import SchedulerView, ask_controller

if TYPE_CHECKING:
    from gcluster.inventory.hosts import Host
    from gcluster.lifecycle.ssh import SshSession

_FREE = frozenset({"idle", "completing", "planned"})
"""States (man sinfo) of nodes without a job, or whose job has just ended."""


def idle_hosts(
    session: SshSession, controller: Host, compute: tuple[Host, ...]
) -> tuple[tuple[Host, ...], tuple[str, ...]]:
    """Return the hosts that are idle, and the names of the others.

    All of them when the scheduler doesn't answer or none is idle: the job then waits in the queue,
    and its verdict says so.
    """
    return choose_idle(ask_controller(session, controller), compute)


def choose_idle(
    view: SchedulerView, compute: tuple[Host, ...]
) -> tuple[tuple[Host, ...], tuple[str, ...]]:
    """Return the hosts that are idle in this view, and the names of the others."""
    if view.problem:
        return compute, ()
    idle = tuple(h for h in compute if view.states.get(h.name, "").rstrip("-+$") in _FREE)
    if not idle:
        return compute, ()
    return idle, tuple(host.name for host in compute if host not in idle)
