"""Every node to what the spec says: pending steps, secrets, convergence, and the quorum rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gcluster.inventory.hosts import ClusterInventory, Host
from gcluster.lifecycle.converge.findings import findings, reasons
from gcluster.lifecycle.converge.pending import pending_steps
from gcluster.lifecycle.converge.run import converge
from gcluster.lifecycle.converge.simulated import converge_simulated
from gcluster.lifecycle.plan import compile_for
from gcluster.lifecycle.state import HostsConverged
from gcluster.schemas.diagnostics import Diagnostic, Severity
from gcluster.schemas.hostlist import fold

if TYPE_CHECKING:
    from gcluster.lifecycle.cluster import Cluster
    from gcluster.lifecycle.observe import Observation
    from gcluster.lifecycle.progress import Reporter
    from gcluster.lifecycle.run import Run
    from gcluster.lifecycle.sites import OpenSite
    from gcluster.lifecycle.ssh import SshSession
    from gcluster.schemas.spec import ClusterSpec


class NodesResult(msgspec.Struct, frozen=True, kw_only=True):
    """Where the nodes stand after convergence."""

    inventory: ClusterInventory
    """Hosts that are fit for work."""
    failed: dict[str, str]
    """Host -> reason, for those that are not."""
    diagnostics: tuple[Diagnostic, ...]
    """One for each host left behind."""
    below_quorum: tuple[Diagnostic, ...]
    """One for each pool that can't go live."""


def converge_nodes(
    run: Run,
    sites: tuple[OpenSite, ...],
    observation: Observation,
    session: SshSession,
    *,
    report: Reporter,
) -> NodesResult:
    """Run every pending step; a node that fails is left behind and named, the others go on."""
    cluster = run.cluster
    compiled = compile_for(cluster, observation)
    secret_versions = cluster.make_secrets(compiled)
    pending = pending_steps(compiled, observation.stamps, secret_versions)
    reachable = [h for h in observation.existing.hosts if h.name not in observation.unreachable]
    real = ClusterInventory(
        cluster=cluster.name, hosts=tuple(h for h in reachable if h.connection == "ssh")
    )
    simulated = tuple(h for h in reachable if h.connection == "simulated")
    with cluster.vault.materialise(compiled.secrets) as secret_files:
        result = converge(
            pending, real, session, secret_files=secret_files, run_dir=run.directory, report=report
        )
    for site in sites:
        mine = [host for host in simulated if host.site == site.name]
        converge_simulated(pending, site.context, mine, report)
    failed = {**observation.unreachable, **reasons(result)}
    accounted = {h.name for h in reachable} | failed.keys()
    for host in observation.desired.hosts:
        if host.name not in accounted:
            failed[host.name] = "its site did not make it"
    fit = tuple(h for h in reachable if h.name not in failed)
    cluster.events.append(HostsConverged(hosts=fold([h.name for h in fit]), failed=failed))
    return NodesResult(
        inventory=ClusterInventory(cluster=cluster.name, hosts=fit),
        failed=failed,
        diagnostics=(*_unreachable(cluster, observation), *findings(result, _go_on(cluster))),
        below_quorum=_below_quorum(cluster.spec, observation.desired, fit),
    )


def _unreachable(cluster: Cluster, observation: Observation) -> list[Diagnostic]:
    return [
        Diagnostic(
            code="GC921",
            severity=Severity.ERROR,
            summary=f"{host} can't be reached: {reason}",
            hint=f"mend it, then go on with: {_go_on(cluster)}",
        )
        for host, reason in sorted(observation.unreachable.items())
    ]


def _go_on(cluster: Cluster) -> str:
    return f"gcluster up {cluster.spec_path}"


def _below_quorum(
    spec: ClusterSpec, desired: ClusterInventory, fit: tuple[Host, ...]
) -> tuple[Diagnostic, ...]:
    """Return one finding for each pool that has fewer fit nodes than it needs to go live."""
    found = []
    for name, pool in spec.pools.items():
        have = sum(1 for host in fit if host.pool == name)
        want = len(desired.in_pool(name))
        need = pool.quorum or want
        if have < need:
            found.append(
                Diagnostic(
                    code="GC923",
                    severity=Severity.ERROR,
                    summary=f"pool {name}: {have} of {want} nodes are fit, {need} are needed",
                    path=("pools", name),
                    hint="mend the nodes named above and run the same command again"
                    + ("" if pool.quorum else f", or set pools.{name}.quorum"),
                )
            )
    return tuple(found)
