"""`gcluster rotate tunnels`: other keys for the gateways of the tunnels between sites.

All gateways are told their new keys before the first takes one up (the role's configure, then
join), so a tunnel stands still for the time between two gateways' turns. gcluster reaches each
gateway by SSH beside the tunnels.
"""

from __future__ import annotations

from ...inventory.compile import CompiledCluster, compile_cluster
from ...inventory.hosts import ClusterInventory
from ..outcome import failure
from ..progress import Reporter
from ..run import Run
from ..secrets.makers import rotate_tunnel_keys
from ..ssh import SshSession
from .rotate_kept import give, only
from .rotate_munge import Rotated

_ROLE = "wireguard"


def rotate_tunnels(
    run: Run, hosts: ClusterInventory, session: SshSession, report: Reporter
) -> Rotated:
    """Make every gateway's key anew and give it to them.

    Raises:
        LifecycleError: no tunnel is there (GC908), or a gateway can't be reached (GC999): then no
            key was changed.
    """
    cluster = run.cluster
    compiled = compile_cluster(
        cluster.spec, hosts, cluster.catalog, cluster.bundle, cluster.kubernetes
    )
    compiled = only(compiled, {_ROLE})
    names = frozenset(_gateways(compiled))
    if not names:
        raise failure("GC908", f"{cluster.name} has no tunnels between its sites")
    return give(
        run,
        compiled,
        hosts,
        session,
        report,
        names=names,
        remake=lambda: rotate_tunnel_keys(cluster.vault, compiled.secrets),
    )


def _gateways(compiled: CompiledCluster) -> list[str]:
    """Return the hosts that are gateways: one of each pool."""
    return [
        step.variables["wireguard_host"]
        for group in compiled.groups
        for step in group.steps
        if step.phase == "configure"
    ]
