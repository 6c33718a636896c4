"""Which launcher starts the AllReduce of a spec: its scheduler's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....inventory.hosts import ClusterInventory
from ....schemas.spec import ClusterSpec, KubernetesScheduler
from ...cluster.progress import Reporter
from ...kubernetes.kubectl import kubectl_of
from ...nodes.ssh import SshSession
from .launcher import Launcher
from .slurm import SlurmLauncher

if TYPE_CHECKING:
    from ....schemas.catalog import Catalog


def launcher_of(
    spec: ClusterSpec,
    inventory: ClusterInventory,
    session: SshSession,
    catalog: Catalog,
    report: Reporter,
) -> Launcher:
    """Return what starts AllReduces on the hosts of `inventory`, which has a controller.

    `report` is told when something of one is left.
    """
    if not isinstance(spec.scheduler, KubernetesScheduler):
        return SlurmLauncher(session, inventory.with_role("controller")[0])
    from ....inventory.compile.kubernetes_objects.facts import (  # noqa: PLC0415  # its own
        kubernetes_facts,
    )
    from .kubernetes import KubernetesLauncher  # noqa: PLC0415  # only for Kubernetes

    facts = kubernetes_facts(spec, inventory, catalog)
    return KubernetesLauncher(kubectl_of(session, inventory), facts, report)
