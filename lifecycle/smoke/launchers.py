"""Which launcher starts the AllReduce of a spec: its scheduler's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gcluster.lifecycle.smoke.slurm_launcher import SlurmLauncher
from gcluster.schemas.spec import KubernetesScheduler

if TYPE_CHECKING:
    from gcluster.inventory.hosts import ClusterInventory
    from gcluster.lifecycle.progress import Reporter
    from gcluster.lifecycle.smoke.launcher import Launcher
    from gcluster.lifecycle.ssh import SshSession
    from gcluster.schemas.catalog import Catalog
    from gcluster.schemas.spec import ClusterSpec


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
    from gcluster.inventory.compile.kubernetes_objects.facts import (  # noqa: PLC0415  # its own
        kubernetes_facts,
    )
    from gcluster.lifecycle.kubernetes.kubectl import kubectl_of  # noqa: PLC0415  # its own
    from gcluster.lifecycle.smoke.kubernetes_launcher import (  # noqa: PLC0415  # its own
        KubernetesLauncher,
    )

    facts = kubernetes_facts(spec, inventory, catalog)
    return KubernetesLauncher(kubectl_of(session, inventory), facts, report)
