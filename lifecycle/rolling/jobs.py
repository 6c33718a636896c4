"""Which jobs a rolling change would wait for, for a plan that a person reads."""

from __future__ import annotations

from ...inventory.hosts import ClusterInventory
from ...schemas.spec import ClusterSpec
from ..ssh import SshSession
from .service import ServiceSilent
from .services import service_of


def jobs_on(
    spec: ClusterSpec, session: SshSession, inventory: ClusterInventory
) -> dict[str, tuple[str, ...]] | None:
    """Return compute node -> its jobs; None when no scheduler answers."""
    if not inventory.with_role("controller"):
        return None
    try:
        nodes = [host.name for host in inventory.with_role("compute")]
        uses = service_of(spec, inventory, session).look(nodes)
    except ServiceSilent:
        return None
    return {name: use.jobs for name, use in uses.items()}
