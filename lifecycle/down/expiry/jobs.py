"""Whether a cluster is in use, and since when it is idle, according to its scheduler."""

from __future__ import annotations

import re

import msgspec

from ....inventory.hosts import ClusterInventory
from ....schemas.catalog import Catalog
from ....schemas.derived.hostlist import fold
from ....schemas.spec import ClusterSpec, KubernetesScheduler, NoScheduler
from ....stacks.provider import ProviderError
from ...cluster.cluster import Cluster
from ...cluster.outcome import LifecycleError
from ...cluster.sites import existing_hosts
from ...nodes.ssh import SshSession, Unreachable
from ...operations.selection import controller_of
from ...scheduler.processes import Processes
from ...status.slurm import last_error_line

_LIMIT_S = 30
_BETWEEN = "---"
# LastBusyTime of a node is kept by slurmctld, over restarts too (scontrol(1), since 21.08).
_ASK = f"""\
export SLURM_TIME_FORMAT=%s
squeue --noheader --format=%T \
--states=PENDING,RUNNING,SUSPENDED,CONFIGURING,COMPLETING,STOPPED &&
echo {_BETWEEN} && date +%s && scontrol --oneliner show node"""
_BUSY = re.compile(r"\bLastBusyTime=(\d+)\b")
_WAITING = frozenset({"PENDING"})


class Jobs(msgspec.Struct, frozen=True, kw_only=True):
    """Who uses a cluster."""

    running: int = 0
    """Jobs that hold nodes: running, being started or cleaned up, suspended."""
    waiting: int = 0
    problem: str = ""
    """Why the scheduler could not be queried; then nothing is known."""
    idle_s: float | None = None
    """How long no node has had a job; None: unknown, or one has."""

    @property
    def why_not(self) -> str:
        """Why the cluster must not be removed now; "": no work would be lost."""
        if self.problem:
            return f"its scheduler can't be queried for running jobs ({self.problem})"
        return f"{self.running} {'job runs' if self.running == 1 else 'jobs run'}" * bool(
            self.running
        )


def ask_jobs(cluster: Cluster) -> Jobs:
    """Query the controller; a cluster without nodes, or of simulated ones, has no jobs."""
    try:
        hosts = existing_hosts(cluster)
    except LifecycleError as error:
        if error.diagnostics[0].code == "GC908":  # no nodes
            return Jobs()
        return Jobs(problem=error.diagnostics[0].summary)
    except ProviderError as error:
        return Jobs(problem=str(error))
    with SshSession(cluster.workdir) as session:
        session.trust(hosts.hosts)
        return jobs_on(running_spec(cluster), hosts, session, cluster.catalog)


def running_spec(cluster: Cluster) -> ClusterSpec:
    """Return the spec that was applied last: its scheduler is the one that runs."""
    return cluster.applied_spec or cluster.spec


def jobs_on(
    spec: ClusterSpec, hosts: ClusterInventory, session: SshSession, catalog: Catalog
) -> Jobs:
    """Query the scheduler of these hosts; never raises for an unreachable one.

    Args:
        spec: names the scheduler.
        hosts: those that exist; without a controller that runs anything there are no jobs.
        session: how they are reached.
        catalog: add-ons, whose pods are no users' jobs.
    """
    if isinstance(spec.scheduler, NoScheduler):
        return _of_processes(hosts, session)
    if not hosts.has_scheduler:
        return Jobs()
    if isinstance(spec.scheduler, KubernetesScheduler):
        from .kubernetes import use_of  # noqa: PLC0415  # its own

        return use_of(hosts, session, catalog)
    controller = controller_of(hosts, session)
    answer = session.run_many([controller], _ASK, timeout_s=_LIMIT_S)[controller.name]
    if isinstance(answer, Unreachable):
        return Jobs(problem=f"{controller.name}: {answer.reason}")
    if answer.returncode != 0:
        return Jobs(problem=f"{controller.name}: {last_error_line(answer)}")
    return read_jobs(answer.stdout)


def _of_processes(hosts: ClusterInventory, session: SshSession) -> Jobs:
    """Count what people started on nodes without a scheduler; since when none runs isn't known."""
    uses = Processes(session, hosts.with_role("compute")).every_node()
    silent = [name for name, use in uses.items() if use.silent]
    if silent:
        return Jobs(problem=f"{fold(silent)}: no answer")
    return Jobs(running=sum(len(use.jobs) for use in uses.values()))


def read_jobs(text: str) -> Jobs:
    """Read the states of jobs, the time there, and the nodes."""
    jobs, between, rest = text.partition(f"{_BETWEEN}\n")
    clock, _, nodes = rest.partition("\n")
    if not between or not clock.isdecimal():
        return Jobs(problem="the scheduler's answer was cut short")
    states = jobs.split()
    waiting = sum(state in _WAITING for state in states)
    busy = [int(found) for found in _BUSY.findall(nodes)]
    known = busy and len(busy) == nodes.count("NodeName=")
    idle = max(0.0, float(clock) - max(busy)) if known and not states else None
    return Jobs(running=len(states) - waiting, waiting=waiting, idle_s=idle)
