"""Which scheduler a cluster has: the one that its spec names, asked on its controllers."""

from __future__ import annotations

from ...inventory.hosts import ClusterInventory
from ...schemas.spec import ClusterSpec, KubernetesScheduler
from ..kubernetes.kubectl import kubectl_of
from ..nodes.ssh import SshSession
from ..operations.selection import controller_of
from .base import Scheduler, SchedulerSilent
from .slurm import Slurm


def scheduler_of(spec: ClusterSpec, hosts: ClusterInventory, session: SshSession) -> Scheduler:
    """Return the scheduler, asked on the controllers of `hosts`.

    Raises:
        LifecycleError: there is no controller (GC908).
    """
    if not isinstance(spec.scheduler, KubernetesScheduler):
        return Slurm(session, controller_of(hosts, session))
    if not hosts.has_scheduler:
        controller_of(hosts, session)  # says so where there is none
    from .kubernetes import Kubernetes  # noqa: PLC0415  # its own

    return Kubernetes(kubectl_of(session, hosts))


def node_jobs(
    spec: ClusterSpec, session: SshSession, inventory: ClusterInventory
) -> dict[str, tuple[str, ...]] | None:
    """Return compute node -> its jobs; None when no scheduler answers."""
    if not inventory.with_role("controller"):
        return None
    try:
        nodes = [host.name for host in inventory.with_role("compute")]
        uses = scheduler_of(spec, inventory, session).nodes(nodes)
    except SchedulerSilent:
        return None
    return {name: use.jobs for name, use in uses.items()}


def scheduler_or_none(
    spec: ClusterSpec, existing: ClusterInventory, session: SshSession
) -> Scheduler | None:
    """Return the scheduler that the spec names; None where no controller runs one."""
    if not existing.has_scheduler:
        return None
    return scheduler_of(spec, existing, session)
