"""Convergence of all nodes in `up`: pending steps, secrets, Ansible, and the quorum rule."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import msgspec
from msgspec.structs import replace

from ...inventory.compile import CompiledCluster
from ...inventory.compile.node import pulls
from ...inventory.hosts import ClusterInventory, Host
from ...schemas.derived.hostlist import fold
from ...schemas.diagnostics import Diagnostic, Severity
from ...schemas.spec import ClusterSpec
from ..cluster.cluster import Cluster
from ..cluster.open_site import OpenSite
from ..cluster.progress import Reporter
from ..nodes.converge.pending import Scope, pending_steps, refuse_unknown_addresses, worn_out
from ..nodes.converge.run import converge, keep_stamps
from ..nodes.converge.watch import findings, reasons
from ..nodes.ssh import SshSession
from ..operations.gitops.pull.converge import PullWork, withdraw
from ..operations.rolling.change import RollingChange
from ..state import HostsConverged
from ..status.observe import Observation
from .run import Run

_NAMED = 20
"""Nodes of a pool that are named with their reason; the rest is a range."""


class NodesResult(msgspec.Struct, frozen=True, kw_only=True):
    """The nodes' state after convergence."""

    inventory: ClusterInventory
    """Hosts that are fit for work."""
    failed: dict[str, str]
    """Host -> reason, for those that are not."""
    diagnostics: tuple[Diagnostic, ...]
    """One for each host left behind."""
    below_quorum: tuple[Diagnostic, ...]
    """One for each pool that can't go live."""
    held: dict[str, str] = {}
    """Host -> why it continues unchanged; it is healthy, and differs from the spec."""

    @property
    def serving(self) -> frozenset[str]:
        """All that count as members: matching the spec, or kept unchanged."""
        return frozenset(host.name for host in self.inventory.hosts) | self.held.keys()

    @property
    def pools_below(self) -> frozenset[str]:
        """Pools that can't go live."""
        return frozenset(str(diagnostic.path[1]) for diagnostic in self.below_quorum)


def converge_nodes(
    run: Run,
    sites: tuple[OpenSite, ...],
    observation: Observation,
    session: SshSession,
    compiled: CompiledCluster,
    *,
    report: Reporter,
    requeue: bool = False,
    scope: Scope | None = None,
) -> NodesResult:
    """Run every pending step; a node that fails is left out and named, the others continue.

    Nodes in service are drained for steps that affect their jobs; `requeue` requeues those jobs,
    whatever the spec says. `scope` limits it to a part.
    """
    cluster = run.cluster
    secret_versions = cluster.make_secrets(compiled)
    pending = pending_steps(compiled, observation.stamps, secret_versions)
    refuse_unknown_addresses(pending)
    left_out: frozenset[str] = frozenset()
    if scope is not None:
        worn = worn_out(observation.stamps, scope)
        observation = replace(observation, stamps=worn)
        every = pending_steps(compiled, worn, secret_versions)
        pending = scope.of(every)
        left_out = frozenset(every.by_host()) - frozenset(pending.by_host())
    reachable = [h for h in observation.existing.hosts if h.name not in observation.unreachable]
    real = ClusterInventory(
        cluster=cluster.name, hosts=tuple(h for h in reachable if h.connection == "ssh")
    )
    rolling = RollingChange(cluster.spec, real, session, report, why=f"run {run.id}")
    roll = partial(rolling.of, stamps=observation.stamps, requeue=requeue)
    with cluster.vault.materialise(compiled.secrets) as secret_files:
        if pulls(cluster.spec, observation.desired):
            work = PullWork(cluster, compiled, secret_versions, session, report)
            result = work.converge(
                pending, real, observation.stamps, secret_files, run.directory, roll
            )
        else:
            withdraw(cluster, real, session)
            result = converge(
                pending,
                real,
                session,
                secret_files=secret_files,
                run_dir=run.directory,
                report=report,
                rolling=roll(pending),
            )
    for site in sites:
        keep_stamps(pending, site, reachable, report)
    rolling.give_back(observation.stamps, result.unchanged | left_out)
    failed = {**observation.unreachable, **reasons(result)}
    accounted = {h.name for h in reachable} | failed.keys()
    for host in observation.desired.hosts:
        if host.name not in accounted:
            why = observation.aside.get(host.name)
            failed[host.name] = f"given up: {why}" if why else "its site did not make it"
    fit = tuple(h for h in reachable if h.name not in failed)
    changed = tuple(host for host in fit if host.name not in result.held)
    cluster.events.append(HostsConverged(hosts=fold([h.name for h in changed]), failed=failed))
    return NodesResult(
        inventory=ClusterInventory(cluster=cluster.name, hosts=changed),
        failed=failed,
        diagnostics=(
            *_unreachable(cluster, observation),
            *findings(result, _go_on(cluster)),
            *_skipped_findings(cluster, result.held),
        ),
        below_quorum=_below_quorum(cluster.spec, observation.desired, fit, failed),
        held=result.held,
    )


def _skipped_findings(cluster: Cluster, held: Mapping[str, str]) -> list[Diagnostic]:
    """Return one finding for the nodes that were left as they are for the same reason."""
    alike: dict[str, list[str]] = {}
    for host, reason in held.items():
        alike.setdefault(reason, []).append(host)
    return [
        Diagnostic(
            code="GC924",
            severity=Severity.WARNING,
            summary=f"{fold(hosts)} in service as before, not changed: {reason}",
            hint=f"go on later with: {_go_on(cluster)}   (--requeue-jobs doesn't wait for jobs)",
        )
        for reason, hosts in alike.items()
    ]


def _unreachable(cluster: Cluster, observation: Observation) -> list[Diagnostic]:
    return [
        Diagnostic(
            code="GC921",
            severity=Severity.ERROR,
            summary=f"{host} can't be reached: {reason}",
            detail="\n".join(("the last lines of its log:", *lines)) if lines else "",
            hint=f"fix it, then resume with: {_go_on(cluster)}",
        )
        for host, reason in sorted(observation.unreachable.items())
        for lines in [observation.last_lines.get(host, ())]
    ]


def _go_on(cluster: Cluster) -> str:
    return f"gcluster up {cluster.spec_path}"


def _below_quorum(
    spec: ClusterSpec,
    desired: ClusterInventory,
    fit: tuple[Host, ...],
    failed: Mapping[str, str],
) -> tuple[Diagnostic, ...]:
    """Return one finding for each pool that has fewer fit nodes than it needs to go live."""
    found = []
    for name, pool in spec.pools.items():
        have = sum(1 for host in fit if host.pool == name)
        nodes = desired.in_pool(name)
        need = pool.quorum or len(nodes)
        if have < need:
            missing = [host.name for host in nodes if host.name in failed]
            found.append(
                Diagnostic(
                    code="GC923",
                    severity=Severity.ERROR,
                    summary=f"pool {name}: {have} of {len(nodes)} nodes are fit, {need} are needed",
                    detail="\n".join(f"{node}: {failed[node]}" for node in missing[:_NAMED])
                    + (f"\nand {fold(missing[_NAMED:])}" if missing[_NAMED:] else ""),
                    path=("pools", name),
                    hint="fix the nodes named above and run the same command again"
                    + ("" if pool.quorum else f", or set pools.{name}.quorum"),
                )
            )
    return tuple(found)
