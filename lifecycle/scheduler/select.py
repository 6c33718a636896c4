"""Which scheduler a cluster has: the one that its spec names, or its nodes where it names none."""

from __future__ import annotations

from ...inventory.hosts import ClusterInventory
from ...schemas.spec import ClusterSpec, KubernetesScheduler, NoScheduler
from ..kubernetes.managed.login import kubectl_of
from ..nodes.ssh import SshSession
from ..operations.selection import controller_of
from .base import Scheduler, SchedulerSilent
from .kubernetes import Kubernetes
from .processes import Processes
from .slurm import Slurm


def has_observable_use(spec: ClusterSpec, hosts: ClusterInventory) -> bool:
    """Whether it can be known what runs on the hosts: from a scheduler, or from the hosts."""
    if isinstance(spec.scheduler, NoScheduler):
        return any(host.connection == "ssh" for host in hosts.with_role("compute"))
    return hosts.has_scheduler


def scheduler_of(spec: ClusterSpec, hosts: ClusterInventory, session: SshSession) -> Scheduler:
    """Return the scheduler on the controllers of `hosts`; without one the hosts themselves.

    Raises:
        LifecycleError: there is no controller (GC908).
    """
    if isinstance(spec.scheduler, NoScheduler):
        return Processes(session, hosts.with_role("compute"))
    if not isinstance(spec.scheduler, KubernetesScheduler):
        return Slurm(session, controller_of(hosts, session))
    if not hosts.has_scheduler:
        controller_of(hosts, session)  # raises where there is none
    return Kubernetes(kubectl_of(session, hosts))


def node_jobs(
    spec: ClusterSpec, session: SshSession, inventory: ClusterInventory
) -> dict[str, tuple[str, ...]] | None:
    """Return compute node -> its jobs; None when no scheduler answers."""
    if not inventory.with_role("controller") and not has_observable_use(spec, inventory):
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
    """Return the scheduler that the spec names; None where it can't be queried."""
    if not has_observable_use(spec, existing):
        return None
    return scheduler_of(spec, existing, session)
