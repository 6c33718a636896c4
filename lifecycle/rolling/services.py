"""Which scheduler drains and grants nodes of a cluster: the one that its spec names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gcluster.lifecycle.operations.chosen import controller_of
from gcluster.lifecycle.rolling.slurm import SlurmService
from gcluster.schemas.spec import KubernetesScheduler

if TYPE_CHECKING:
    from gcluster.inventory.hosts import ClusterInventory
    from gcluster.lifecycle.rolling.service import NodeService
    from gcluster.lifecycle.ssh import SshSession
    from gcluster.schemas.spec import ClusterSpec


def service_of(spec: ClusterSpec, hosts: ClusterInventory, session: SshSession) -> NodeService:
    """Return the scheduler, asked on the controllers of `hosts`.

    Raises:
        LifecycleError: there is no controller (GC908).
    """
    if not isinstance(spec.scheduler, KubernetesScheduler):
        return SlurmService(session, controller_of(hosts, session))
    if not hosts.has_scheduler:
        controller_of(hosts, session)  # says so where there is none
    from gcluster.lifecycle.kubernetes.kubectl import kubectl_of  # noqa: PLC0415  # its own
    from gcluster.lifecycle.rolling.kubernetes import KubernetesService  # noqa: PLC0415  # its own

    return KubernetesService(kubectl_of(session, hosts))
