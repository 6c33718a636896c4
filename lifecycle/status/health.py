"""`gcluster status`: the cluster as its providers, its nodes and its scheduler see it now."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Literal

import msgspec

from ...inventory.hosts import Host
from ...schemas.derived.hostlist import fold
from ...schemas.spec import KubernetesScheduler, NoScheduler
from ...schemas.structure.decoding import decode_json
from ...stacks.provider import ResourceChange
from ..cluster.cluster import Cluster
from ..cluster.sites import open_sites
from ..down.data import kept_data
from ..down.expiry.due import lifetime
from ..kubernetes import kubectl
from ..kubernetes.managed.login import kubectl_of
from ..nodes.ssh import SshSession
from ..operations.burst.agent.ledger import BurstLedger
from ..operations.gitops.record import read_followed
from ..operations.repair.queue import queue
from ..planning.plan import pending_for
from ..scheduler.processes import Processes
from ..smoke.gate import last_certificate, note_drift, reasons_against
from ..state import DamagedObjectError
from ..up.compiled import compile_for
from . import control_planes as keeping
from . import kubernetes as report
from .causes import causes_of
from .conditions import Cause, ClusterStatus, Condition, NodeStatus
from .drift.node_reports import Changes, described, deviations, see_changes
from .elastic import elastic_status
from .observe import Observation, observe
from .slurm import SchedulerReport, SchedulerView, report_of

OBSERVED_KEY = "observed.json"
"""Cache of the last conditions: where "since when" comes from."""

_GATE = "AllReducePassed"
_SHOWN = 3
"""Differences that a condition names."""
_NEED_REAL_NODES = frozenset({"SchedulerUp", _GATE, "NoDrift"})
"""Conditions that are omitted where no node is real: nothing runs a scheduler or a job."""


def read_status(cluster: Cluster) -> ClusterStatus:
    """Query every site, node and the scheduler; nothing is changed but the cache."""
    sites = open_sites(cluster)
    with SshSession(cluster.workdir) as session:
        observation = observe(cluster, sites, session)
        compiled = compile_for(cluster, observation).cluster
        changes = see_changes(cluster, observation, compiled, session)
        controllers = [
            host
            for host in observation.existing.with_role("controller")
            if host.name in observation.stamps and host.connection == "ssh"
        ]
        report: SchedulerReport | None = None
        causes: tuple[Cause, ...] = ()
        own: tuple[Condition, ...] = ()
        unscheduled = isinstance(cluster.spec.scheduler, NoScheduler)
        if controllers or observation.existing.is_managed or observation.silent or unscheduled:
            report, causes, own = _query_scheduler(cluster, observation, session, controllers)
        nodes = _nodes(cluster, changes.observation, *_seen_by(report))
        note_drift(cluster, deviations(changes.by_node))
        certificate = last_certificate(cluster) if nodes else None
        against = _against(cluster, certificate, nodes, observation, session)
    view = report.view if report is not None else None
    conditions = (*_conditions(nodes, view), _gate(cluster, certificate, against), *own)
    if not nodes:
        conditions = tuple(c for c in conditions if c.name != _GATE)
    elif changes.by_node or not changes.is_known:
        conditions += (_drift_condition(cluster.name, changes),)
    if unscheduled:
        conditions = tuple(c for c in conditions if c.name != "SchedulerUp")
    if not observation.existing.real.hosts:
        conditions = tuple(c for c in conditions if c.name not in _NEED_REAL_NODES)
    return ClusterStatus(
        cluster=cluster.name,
        conditions=(*_since(cluster, conditions), *_watched(cluster)),
        nodes=nodes,
        queue=view.queue if view is not None else None,
        certificate=certificate,
        kept=() if nodes else kept_data(cluster, sites),
        quotas=report.quotas if report is not None else (),
        causes=causes,
        elastic=elastic_status(cluster.spec, BurstLedger(cluster.events).read(), view)
        if nodes
        else (),
        repairs=queue(cluster.events) if nodes else (),
    )


def _seen_by(
    report: SchedulerReport | None,
) -> tuple[SchedulerView | None, Mapping[str, str]]:
    return (None, {}) if report is None else (report.view, report.since)


def _query_scheduler(
    cluster: Cluster, observation: Observation, session: SshSession, controllers: list[Host]
) -> tuple[SchedulerReport, tuple[Cause, ...], tuple[Condition, ...]]:
    """Return the scheduler's report, causes of unhealthy nodes, and the scheduler's conditions."""
    if isinstance(cluster.spec.scheduler, NoScheduler):
        return SchedulerReport(view=_view_of_nodes(observation, session)), (), ()
    if isinstance(cluster.spec.scheduler, KubernetesScheduler):
        if not controllers:  # a cloud keeps its control plane alive itself
            there = kubectl_of(session, observation.desired)
            return report.kubernetes_report(there), (), ()
        report_found = report.kubernetes_report(kubectl.Kubectl(session, controllers))
        watched = keeping.watch_control_planes(cluster.name, session, controllers)
        return report_found, watched.causes, watched.conditions
    answer = report_of(session, controllers[0])
    causes = causes_of(
        cluster.name,
        session,
        controllers[0],
        answer,
        [h for h in observation.desired.with_role("compute") if h.connection == "ssh"],
        _silent(observation),
    )
    return answer, causes, ()


def _view_of_nodes(observation: Observation, session: SshSession) -> SchedulerView:
    """Return what runs on nodes without a scheduler, as far as they answer."""
    compute = [h for h in observation.existing.with_role("compute") if h.name in observation.stamps]
    uses = Processes(session, compute).every_node()
    return SchedulerView(
        states={
            name: "drained" if use.out else "in use" if use.jobs else "idle"
            for name, use in uses.items()
            if not use.silent
        },
        reasons={name: use.reason for name, use in uses.items() if use.out},
    )


def _watched(cluster: Cluster) -> tuple[Condition, ...]:
    """Return the announced expiry, and the record of a controller that follows the cluster."""
    living, followed = lifetime(cluster.events.read()), read_followed(cluster.store)
    found = () if followed is None else (followed.condition,)
    if living is None or living.announced is None:
        return found
    announced = living.announced
    when = f"{datetime.fromtimestamp(announced.earliest, UTC):%Y-%m-%d %H:%M} UTC"
    return (
        *found,
        Condition(
            name="WithinLifetime", status="false", reason=f"removed on {when}: {announced.why}"
        ),
    )


def _silent(observation: Observation) -> dict[str, str]:
    """Return node -> why it can't be queried: no response, or no running machine."""
    off = {
        name: change.reason or f"needs {change.effect}"
        for (_, name), change in observation.changes().items()
        if change.effect != "keep" and name not in observation.stamps
    }
    return off | dict(observation.unreachable)


def _nodes(
    cluster: Cluster,
    observation: Observation,
    view: SchedulerView | None,
    since: Mapping[str, str],
) -> tuple[NodeStatus, ...]:
    pending = pending_for(cluster, compile_for(cluster, observation), observation).by_host()
    there = {host.name for host in observation.existing.hosts}
    if not there:
        return ()
    changes = observation.changes()
    return tuple(
        NodeStatus(
            name=host.name,
            site=host.site,
            pool=host.pool,
            role=host.role,
            address=host.address,
            reachable=host.name in observation.stamps,
            scheduler_state=_scheduler_state(host, view),
            reason=f"given up: {observation.aside[host.name]}"
            if host.name in observation.aside
            else _reason(host, observation, changes.get((host.site, host.name)), view),
            steps_pending=len(pending.get(host.name, ())) if host.name in observation.stamps else 0,
            out_since=since.get(host.name, "")
            if view is not None and host.is_compute and not view.is_fit(host.name)
            else "",
        )
        for host in observation.desired.hosts
    )


def _scheduler_state(host: Host, view: SchedulerView | None) -> str:
    if not host.is_compute or view is None:
        return ""
    return view.states.get(host.name, "")


def _reason(
    host: Host,
    observation: Observation,
    change: ResourceChange | None,
    view: SchedulerView | None,
) -> str:
    """Return why a node isn't healthy; the nearest cause wins."""
    if change is not None and change.effect != "keep":
        return change.reason or f"needs {change.effect}"
    if host.name in observation.unreachable:
        return observation.unreachable[host.name]
    if not host.is_compute or view is None or not host.is_real:
        return ""
    if host.name not in view.states and not view.problem:
        return "the scheduler does not know it"
    if not view.problem and not view.is_fit(host.name):
        return view.reasons.get(host.name, f"the scheduler reports {view.states[host.name]}")
    return ""


def _conditions(
    nodes: tuple[NodeStatus, ...],
    view: SchedulerView | None,
) -> tuple[Condition, ...]:
    if not nodes:
        return (Condition(name="NodesReady", status="false", reason="no nodes exist"),)
    unfit = [node for node in nodes if node.reason or not node.reachable]
    ready = f"{len(nodes) - len(unfit)}/{len(nodes)}"
    named = "; ".join(f"{node.name}: {node.reason or 'no answer'}" for node in unfit[:5])
    more = f"; and {len(unfit) - 5} more" if len(unfit) > 5 else ""  # noqa: PLR2004  # five fit on a line
    return (
        _condition("NodesReady", not unfit, f"{ready} {named}{more}".strip()),
        _scheduler_condition(nodes, view),
        _converged(nodes),
    )


def _converged(nodes: tuple[NodeStatus, ...]) -> Condition:
    """Return whether steps must run; the stamps of an unreachable node are unknown."""
    steps = sum(node.steps_pending for node in nodes)
    silent = [node.name for node in nodes if not node.reachable]
    if silent and not steps:
        reason = f"{fold(silent)} can't be queried"
        return Condition(name="Converged", status="unknown", reason=reason)
    return _condition(
        "Converged", steps == 0, f"{steps} steps to run" if steps else "as the spec says"
    )


def _drift_condition(cluster: str, changes: Changes) -> Condition:
    if not changes.is_known:
        reason = f"the nodes converge themselves: gcluster drift {cluster} checks them"
        return Condition(name="NoDrift", status="unknown", reason=reason)
    every = [f"{drift.where}: {described(drift)}" for drift in changes.every]
    more = f"; and {len(every) - _SHOWN} more" if len(every) > _SHOWN else ""
    fix = f" (gcluster drift {cluster})" if every else ""
    return _condition("NoDrift", not every, f"{'; '.join(every[:_SHOWN])}{more}{fix}")


def _scheduler_condition(nodes: tuple[NodeStatus, ...], view: SchedulerView | None) -> Condition:
    if view is None:
        return Condition(name="SchedulerUp", status="unknown", reason="no controller answers")
    known = sum(1 for node in nodes if node.scheduler_state)
    return _condition("SchedulerUp", not view.problem, view.problem or f"{known} nodes known")


def _against(
    cluster: Cluster,
    certificate: dict[str, object] | None,
    nodes: tuple[NodeStatus, ...],
    observation: Observation,
    session: SshSession,
) -> tuple[str, ...]:
    if certificate is None or certificate.get("spec_hash") != cluster.spec_hash:
        return ()
    unsettled = [node.name for node in nodes if node.steps_pending]
    return reasons_against(cluster, certificate, observation.existing, session, unsettled)


def _gate(
    cluster: Cluster, certificate: dict[str, object] | None, against: tuple[str, ...]
) -> Condition:
    verdict = certificate.get("verdict") if certificate is not None else None
    if certificate is None or not isinstance(verdict, dict):
        return Condition(name=_GATE, status="unknown", reason="never run")
    if certificate.get("spec_hash") != cluster.spec_hash:
        return Condition(name=_GATE, status="unknown", reason="the spec changed since it ran")
    passed = verdict.get("verdict") == "pass"
    if passed and against:
        reason = f"{'; '.join(against)}: gcluster smoke {cluster.name} tests again"
        return Condition(name=_GATE, status="unknown", reason=reason)
    left_out = f"without {certificate['left_out']}" if certificate.get("left_out") else ""
    return msgspec.structs.replace(
        _condition(_GATE, passed, left_out if passed else "the gate failed"),
        since=str(certificate.get("time", "")),
    )


def _condition(name: str, holds: bool, reason: str) -> Condition:
    status: Literal["true", "false"] = "true" if holds else "false"
    return Condition(name=name, status=status, reason=reason)


def _since(cluster: Cluster, conditions: tuple[Condition, ...]) -> tuple[Condition, ...]:
    """Set the time since when each condition has its value, and store it."""
    if not cluster.was_applied:
        return conditions
    before = {condition.name: condition for condition in _remembered(cluster)}
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    dated = tuple(
        c
        if c.since
        else msgspec.structs.replace(
            c,
            since=before[c.name].since
            if c.name in before and before[c.name].status == c.status
            else now,
        )
        for c in conditions
    )
    cluster.store.put(OBSERVED_KEY, msgspec.json.encode(list(dated)))
    return dated


def _remembered(cluster: Cluster) -> list[Condition]:
    """Return the conditions that were seen last; a cache that can't be read counts as none."""
    try:
        return decode_json(cluster.store.get(OBSERVED_KEY) or b"[]", list[Condition])
    except (msgspec.DecodeError, DamagedObjectError):
        return []
