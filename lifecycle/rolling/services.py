"""Which scheduler drains and grants nodes of a cluster: the one that its spec names."""

from __future__ import annotations

from ...inventory.hosts import ClusterInventory
from ...schemas.spec import ClusterSpec, KubernetesScheduler
from ..kubernetes.kubectl import kubectl_of
from ..operations.selection import controller_of
from ..ssh import SshSession
from .service import NodeService
from .slurm import SlurmService


def service_of(spec: ClusterSpec, hosts: ClusterInventory, session: SshSession) -> NodeService:
    """Return the scheduler, asked on the controllers of `hosts`.

    Raises:
        LifecycleError: there is no controller (GC908).
    """
    if not isinstance(spec.scheduler, KubernetesScheduler):
        return SlurmService(session, controller_of(hosts, session))
    if not hosts.has_scheduler:
        controller_of(hosts, session)  # says so where there is none
    from .kubernetes import KubernetesService  # noqa: PLC0415  # its own

    return KubernetesService(kubectl_of(session, hosts))
