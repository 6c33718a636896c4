"""Reads what steps left on nodes, for `drift` and for the plans of `up`.

One SSH exec a node, all at once. `up` repeats steps whose results were changed since, before the
steps that would wait for them: a stopped service, another key.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from ....inventory.compile import CompiledCluster, Step, compile_cluster
from ....inventory.compile.node import pulls
from ....inventory.hosts import ClusterInventory, Host
from ....schemas.derived.hostlist import fold
from ....schemas.diagnostics import Diagnostic, Severity
from ...cluster.cluster import Cluster
from ...nodes.converge.pending import step_digests
from ...nodes.converge.role_files import merged, traces_of
from ...nodes.converge.stamps import CHANGED_HERE, DOUBTED
from ...nodes.ssh import SshSession, Unreachable
from ...nodes.ssh.arguments import as_root
from ..observe import Observation
from .nodes import NodeReport, judge, observe_script, read_report
from .values import Drift

Wanted: TypeAlias = dict[str, tuple[Step, str]]
"""Step -> the step and the stamp that it leaves, in the order they run."""
_LIMIT_S = 30
_AT_ONCE = 64
_NAMED = 10
"""Differences that are shown one by one."""


def wanted_steps(
    compiled: CompiledCluster, secret_versions: Mapping[str, str]
) -> dict[str, Wanted]:
    """Return host -> what it is to run."""
    found: dict[str, Wanted] = {}
    for group in compiled.groups:
        steps = {step.key: (step, digest) for step, digest in step_digests(group, secret_versions)}
        found |= dict.fromkeys(group.hosts, steps)
    return found


def query_nodes(
    session: SshSession, hosts: Collection[Host], wanted: Mapping[str, Wanted], words: str = ""
) -> list[tuple[Host, NodeReport | Unreachable]]:
    """Read each host's stamps and what exists of the steps' results.

    Args:
        session: SSH to them.
        hosts: those with an address.
        wanted: host -> its steps.
        words: the shell lines that query the scheduler on controllers; "": none.
    """
    if not hosts:
        return []
    session.trust(hosts)
    scripts: dict[tuple[str, bool], str] = {}
    for host in hosts:
        key = host.pool, host.role == "controller"
        if key not in scripts:
            traces = merged(traces_of(step) for step, _ in wanted[host.name].values())
            scripts[key] = observe_script(traces, words if key[1] else "")

    def ask(host: Host) -> tuple[Host, NodeReport | Unreachable]:
        script = scripts[host.pool, host.role == "controller"]
        answer = session.run(host, as_root(host, ["sh", "-s"]), stdin=script, timeout_s=_LIMIT_S)
        return host, answer if isinstance(answer, Unreachable) else read_report(answer.stdout)

    with ThreadPoolExecutor(min(_AT_ONCE, len(hosts))) as pool:
        return list(pool.map(ask, hosts))


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """What was changed on nodes since their steps were done."""

    observation: Observation
    """With the steps that put it right as pending."""
    by_node: dict[str, tuple[Drift, ...]] = {}
    """Node -> what was changed there, of those that answered."""
    is_known: bool = True
    """False: the nodes converge themselves, and only their controller was queried."""

    @property
    def fixed_by_steps(self) -> tuple[Drift, ...]:
        """What running steps again puts right."""
        return tuple(d for drifts in self.by_node.values() for d in drifts if d.fixable)

    @property
    def unfixable(self) -> tuple[Drift, ...]:
        """What no step puts right."""
        return tuple(d for drifts in self.by_node.values() for d in drifts if not d.fixable)

    @property
    def every(self) -> tuple[Drift, ...]:
        """All of it."""
        return (*self.unfixable, *self.fixed_by_steps)


def see_changes(
    cluster: Cluster, observation: Observation, compiled: CompiledCluster, session: SshSession
) -> Changes:
    """Compare what exists on the nodes that responded with what their steps left."""
    if pulls(cluster.spec, observation.desired):
        return Changes(observation=observation, is_known=False)
    wanted = wanted_steps(compiled, cluster.secret_versions(compiled))
    hosts = [
        host
        for host in observation.existing.hosts
        if host.connection == "ssh" and observation.stamps.get(host.name) and host.name in wanted
    ]
    found = _changed(session, hosts, wanted, cluster.name)
    stamps = dict(observation.stamps)
    for name, drifts in found.items():
        stamps[name] = _disbelieved(stamps[name], [d for d in drifts if d.fixable])
    return Changes(observation=replace(observation, stamps=stamps), by_node=found)


def see_deviations(
    cluster: Cluster, nodes: ClusterInventory, session: SshSession
) -> dict[str, tuple[str, ...]]:
    """Read the deviations of the compute nodes that are about to be tested, as `deviations` has it.

    Args:
        cluster: as it was applied.
        nodes: those to be tested, and their controllers.
        session: SSH to them.
    """
    compiled = compile_cluster(
        cluster.spec, nodes, cluster.catalog, cluster.bundle, cluster.kubernetes
    )
    wanted = wanted_steps(compiled, cluster.secret_versions(compiled))
    compute = nodes.with_role("compute")
    requested = [host for host in compute if host.connection == "ssh" and host.name in wanted]
    return deviations(_changed(session, requested, wanted, cluster.name))


def deviations(by_node: Mapping[str, Collection[Drift]]) -> dict[str, tuple[str, ...]]:
    """Return node -> texts of how it deviates from what its steps left; () for one that doesn't."""
    return {node: tuple(sorted(map(described, drifts))) for node, drifts in by_node.items()}


def _changed(
    session: SshSession, hosts: Collection[Host], wanted: Mapping[str, Wanted], cluster: str
) -> dict[str, tuple[Drift, ...]]:
    """Return host -> what was changed there, of those that answer."""
    return {
        host.name: tuple(
            d
            for d in judge(host.name, wanted[host.name], answer, cluster=cluster).drifts
            if d.is_deviation
        )
        for host, answer in query_nodes(session, hosts, wanted)
        if not isinstance(answer, Unreachable)
    }


def _disbelieved(carried: Mapping[str, str], drifts: Iterable[Drift]) -> dict[str, str]:
    """Return a node's stamps, with those of changed steps replaced by what was changed."""
    found = dict(carried)
    changed: dict[str, list[str]] = {}
    for drift in drifts:
        first, *later = drift.steps
        changed.setdefault(first, []).append(described(drift))
        for step in later:
            if step in found:
                found[step] = DOUBTED
    for step, what in changed.items():
        if step in found:
            found[step] = CHANGED_HERE + ", ".join(what)
    return found


def described(drift: Drift) -> str:
    """Return the difference as text: "unit slurmctld: enabled,inactive"."""
    return f"{drift.kind} {drift.name}: {drift.now}"


def unfixable_findings(cluster: str, drifts: Collection[Drift]) -> tuple[Diagnostic, ...]:
    """Return the finding for what differs on nodes and what no step puts right."""
    alike: dict[tuple[str, str], list[str]] = {}
    for drift in drifts:
        alike.setdefault((described(drift), drift.hint), []).append(drift.where)
    if not alike:
        return ()
    lines = [f"{fold(nodes)}: {what} ({hint})" for (what, hint), nodes in alike.items()]
    more = [f"and {len(lines) - _NAMED} more"] if len(lines) > _NAMED else []
    nodes = {drift.where for drift in drifts}
    return (
        Diagnostic(
            code="GC1103",
            severity=Severity.WARNING,
            summary=f"{fold(nodes)} changed since up, and no step puts it right",
            detail="\n".join([*lines[:_NAMED], *more]),
            hint=f"gcluster drift {cluster} says since when and by whom, as far as that is known",
        ),
    )
