"""Whether a cluster is in use, and since when it is idle, according to its scheduler."""

from __future__ import annotations

from ....inventory.hosts import ClusterInventory
from ....schemas.catalog import Catalog
from ....schemas.derived.hostlist import fold
from ....schemas.spec import ClusterSpec, KubernetesScheduler, NoScheduler
from ....stacks.provider import ProviderError
from ...cluster.cluster import Cluster
from ...cluster.hosts import existing_hosts
from ...cluster.outcome import LifecycleError
from ...nodes.ssh import SshSession, Unreachable
from ...operations.selection import controller_of
from ...scheduler.processes import Processes
from ...status.slurm import last_error_line
from .jobs import BETWEEN, Jobs, read_jobs
from .kubernetes import use_of

_LIMIT_S = 30
# LastBusyTime of a node is kept by slurmctld, over restarts too (scontrol(1), since 21.08).
_ASK = f"""\
export SLURM_TIME_FORMAT=%s
squeue --noheader --format=%T \
--states=PENDING,RUNNING,SUSPENDED,CONFIGURING,COMPLETING,STOPPED &&
echo {BETWEEN} && date +%s && scontrol --oneliner show node"""


def query_jobs(cluster: Cluster) -> Jobs:
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
        session: SSH to them.
        catalog: add-ons, whose pods are no users' jobs.
    """
    if isinstance(spec.scheduler, NoScheduler):
        return _of_processes(hosts, session)
    if not hosts.has_scheduler:
        return Jobs()
    if isinstance(spec.scheduler, KubernetesScheduler):
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
