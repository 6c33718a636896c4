"""Which jobs a rolling change would wait for, for a plan that a person reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gcluster.lifecycle.rolling.service import ServiceSilent
from gcluster.lifecycle.rolling.slurm import SlurmService

if TYPE_CHECKING:
    from gcluster.inventory.hosts import ClusterInventory
    from gcluster.lifecycle.ssh import SshSession


def jobs_on(session: SshSession, inventory: ClusterInventory) -> dict[str, tuple[str, ...]] | None:
    """Return compute node -> its jobs; None when no scheduler answers."""
    controllers = inventory.with_role("controller")
    if not controllers:
        return None
    try:
        nodes = [host.name for host in inventory.with_role("compute")]
        uses = SlurmService(session, controllers[0]).look(nodes)
    except ServiceSilent:
        return None
    return {name: use.jobs for name, use in uses.items()}
