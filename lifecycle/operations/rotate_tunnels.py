"""`gcluster rotate tunnels`: other keys for the gateways of the tunnels between sites.

All gateways are told their new keys before the first takes one up (the role's configure, then
join), so a tunnel stands still for the time between two gateways' turns. gcluster reaches each
gateway by SSH beside the tunnels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gcluster.inventory.compile import CompiledCluster, compile_cluster
from gcluster.inventory.hosts import ClusterInventory
from gcluster.lifecycle.converge.findings import reasons
from gcluster.lifecycle.converge.pending import pending_steps
from gcluster.lifecycle.converge.run import converge
from gcluster.lifecycle.converge.stamps import read_stamps
from gcluster.lifecycle.operations.rotate_munge import Rotated
from gcluster.lifecycle.outcome import Exit, failure
from gcluster.lifecycle.ssh import Unreachable
from gcluster.lifecycle.tunnel_keys import make_anew

if TYPE_CHECKING:
    from gcluster.lifecycle.cluster import Cluster
    from gcluster.lifecycle.progress import Reporter
    from gcluster.lifecycle.run import Run
    from gcluster.lifecycle.ssh import SshSession

_ROLE = "wireguard"


def rotate_tunnels(
    run: Run, hosts: ClusterInventory, session: SshSession, report: Reporter
) -> Rotated:
    """Make every gateway's key anew and give it to them.

    The keys are kept first: killed from here on, the next `up` gives them to whoever lacks them.

    Raises:
        LifecycleError: no tunnel is there (GC908), or a gateway can't be reached (GC999): then no
            key was changed.
    """
    cluster = run.cluster
    compiled = _tunnels(cluster, hosts)
    names = frozenset(_gateways(compiled))
    gateways = ClusterInventory(
        cluster=cluster.name,
        hosts=tuple(h for h in hosts.hosts if h.name in names and h.connection == "ssh"),
    )
    if not gateways.hosts:
        raise failure("GC908", f"{cluster.name} has no tunnels between its sites")
    answers = read_stamps(session, gateways.hosts)
    stamps = {name: a for name, a in answers.items() if not isinstance(a, Unreachable)}
    for name, answer in answers.items():
        if isinstance(answer, Unreachable):
            raise failure(
                "GC999",
                f"the key of {name} can't be changed: {answer.reason}",
                detail="no key was changed",
            )
    make_anew(cluster.vault, compiled.secrets)
    pending = pending_steps(compiled, stamps, cluster.make_secrets(compiled)).for_hosts(names)
    with cluster.vault.materialise(compiled.secrets) as secret_files:
        result = converge(
            pending,
            gateways,
            session,
            secret_files=secret_files,
            run_dir=run.directory,
            report=report,
        )
    left = reasons(result)
    return Rotated(
        cluster=cluster.name,
        changed=tuple(host.name for host in gateways.hosts if host.name not in left),
        left=left,
        exit_code=Exit.PENDING if left else Exit.OK,
    )


def _tunnels(cluster: Cluster, hosts: ClusterInventory) -> CompiledCluster:
    """Return the steps of gateways alone."""
    compiled = compile_cluster(cluster.spec, hosts, cluster.catalog, cluster.bundle)
    groups = (
        msgspec.structs.replace(g, steps=tuple(s for s in g.steps if s.role == _ROLE))
        for g in compiled.groups
    )
    return msgspec.structs.replace(compiled, groups=tuple(g for g in groups if g.steps))


def _gateways(compiled: CompiledCluster) -> list[str]:
    """Return the hosts that are gateways: one of each pool."""
    return [
        step.variables["wireguard_host"]
        for group in compiled.groups
        for step in group.steps
        if step.phase == "configure"
    ]
