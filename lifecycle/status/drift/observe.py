"""`gcluster drift`: queries all planes at once, one SSH exec per node, and changes nothing.

Whether the fabric is still as fast as it was certified is read from the AllReduces in the log.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

import msgspec

from ....inventory.compile import compile_cluster
from ....inventory.hosts import ClusterInventory, Host
from ....schemas.derived.control_planes import managed_by
from ....stacks.provider import ProviderError
from ...cluster.cluster import Cluster
from ...cluster.open_site import OpenSite, at_each, inventory, site_outputs
from ...cluster.outcome import failure
from ...cluster.sites import open_sites
from ...kubernetes.managed import nodes
from ...kubernetes.managed.login import run_shell
from ...nodes.converge.stamps import kept_stamps
from ...nodes.ssh import SshSession, Unreachable
from ...operations.repair.queue import queue
from ...planning.guards import ever_converged
from ...smoke.gate import note_drift
from ...state import Event, SmokeFinished, SpecApplied
from .kubernetes import KubernetesDrift
from .node_reports import Wanted, deviations, query_nodes, wanted_steps
from .nodes import NodeReport, judge
from .scheduler import SchedulerDrift, scheduler_drift
from .sites import compare, list_site, site_drifts
from .values import PLANES, Behind, Drift, DriftReport


def find_drift(cluster: Cluster) -> DriftReport:
    """Compare what exists with what was applied; takes no lock and changes nothing.

    Of the state only the certificate is invalidated, where a member deviates since its test.

    Args:
        cluster: as it was last applied: what only the file has is a change, and no drift.

    Raises:
        LifecycleError: GC1102, nothing was ever applied.
    """
    if not cluster.was_applied:
        raise failure(
            "GC1102", f"{cluster.name} was never applied", hint=f"gcluster up {cluster.spec_path}"
        )
    began = time.monotonic()
    sites = open_sites(cluster)
    with SshSession(cluster.workdir) as session, ThreadPoolExecutor(len(sites)) as pool:
        lists = {site.name: pool.submit(list_site, site) for site in sites}
        compared = at_each(sites, compare)
        hosts = _Hosts(cluster, sites, compared)
        found = hosts.observe(session)
        observations = {
            name: msgspec.structs.replace(future.result(), **_outcome_fields(compared[name]))
            for name, future in lists.items()
        }
    out = {entry.node for entry in queue(cluster.events)}
    requested = {
        name: observation for name, observation in observations.items() if not observation.problem
    }
    cloud = [
        d
        for name, observation in requested.items()
        for d in site_drifts(cluster, name, observation, out)
    ]
    drifts = [*cloud, *found.drifts, *bandwidth_drift(cluster.name, cluster.events.known())]
    order = {plane: number for number, plane in enumerate(PLANES)}
    problems = {
        name: observation.problem
        for name, observation in observations.items()
        if observation.problem
    }
    seen: dict[str, list[Drift]] = {name: [] for name in hosts.answered}
    for drift in found.drifts:
        if drift.is_deviation:
            seen[drift.where].append(drift)
    note_drift(cluster, deviations(seen))
    return msgspec.structs.replace(
        found,
        drifts=tuple(sorted(drifts, key=lambda d: (order[d.plane], d.where, d.kind, d.name))),
        silent=problems | found.silent,
        repairs=queue(cluster.events),
        seconds=round(time.monotonic() - began, 2),
    )


def _outcome_fields(compared: object) -> dict[str, object]:
    if isinstance(compared, ProviderError):
        return {"problem": compared.diagnostics[0].summary}
    return {"changes": compared}


class _Hosts:
    """The reachable hosts, and the expected steps of each."""

    def __init__(
        self, cluster: Cluster, sites: tuple[OpenSite, ...], compared: Mapping[str, object]
    ) -> None:
        self._cluster = cluster
        self._sites = sites
        self._out = {entry.node for entry in queue(cluster.events)}
        away = {
            (site, change.resource.name)
            for site, changes in compared.items()
            if isinstance(changes, tuple)
            for change in changes
            if change.effect != "keep"
        }
        there = at_each(sites, _existing)
        existing = {host.name: host for found in there.values() for host in found}
        planned = [h for s in sites for h in s.provider.planned_hosts(cluster.spec, s.name)]
        self._silent = ""
        if managed_by(cluster.spec) is not None:
            seen = nodes.see(cluster.spec, sites, cluster.workdir)
            wanted, joined = nodes.with_managed_nodes(cluster.spec, planned, seen.nodes)
            planned, self._silent = list(wanted), seen.problem
            existing |= {host.name: host for host in joined}
        self._desired: ClusterInventory = inventory(
            cluster.spec,
            (existing.get(host.name, host) for host in planned),
            site_outputs(sites),
        )
        self._asked = [
            host
            for host in self._desired.hosts
            if host.name in existing
            and host.name not in self._out
            and (host.site, host.name) not in away
        ]
        compiled = compile_cluster(
            cluster.spec, self._desired, cluster.catalog, cluster.bundle, cluster.kubernetes
        )
        self._wanted = wanted_steps(compiled, cluster.secret_versions(compiled))
        self.answered: frozenset[str] = frozenset()
        """Hosts that gave an answer to `observe`."""

    def observe(self, session: SshSession) -> DriftReport:
        """Query every host, and evaluate the responses."""
        drift = scheduler_drift(self._cluster.spec, self._desired, self._cluster.catalog)
        answers = self._answers(session, drift)
        reports = {h.name: a for h, a in answers if isinstance(a, NodeReport)}
        self.answered = frozenset(reports)
        real = {h.name for h in self._asked if h.connection == "ssh"}
        drifts: list[Drift] = []
        behind: list[Behind] = []
        unsealed: dict[str, int] = {}
        ever = ever_converged(self._cluster.events)
        for name, answer in reports.items():
            if not answer.stamps and not answer.seals and name in ever:
                drifts.append(_empty(name, self._wanted[name]))
                continue
            found = judge(name, self._wanted[name], answer, cluster=self._cluster.name)
            drifts += found.drifts
            behind += found.behind
            if found.unsealed and name in real:
                unsealed[name] = found.unsealed
        silent = {host.name: a.reason for host, a in answers if isinstance(a, Unreachable)}
        seen = self._scheduler(drift, reports, session)
        drifts += seen.drifts
        silent |= seen.silent
        return DriftReport(
            cluster=self._cluster.name,
            drifts=tuple(drifts),
            behind=tuple(behind),
            silent=silent,
            unsealed=unsealed,
            hosts=len(self._asked),
        )

    def _answers(
        self, session: SshSession, drift: SchedulerDrift
    ) -> list[tuple[Host, NodeReport | Unreachable]]:
        real = [host for host in self._asked if host.connection == "ssh"]
        kept = kept_stamps(self._sites, self._asked)
        noted = [(h, _only_stamps(kept[h.name])) for h in self._asked if h.name in kept]
        return [*noted, *query_nodes(session, real, self._wanted, drift.words)]

    def _managed(self, drift: SchedulerDrift, session: SshSession) -> dict[str, str]:
        """Query the control plane that a cloud runs, from here; {} where there is none."""
        there = any(host.connection == "api" for host in self._asked)
        if not isinstance(drift, KubernetesDrift) or not there:
            return {}
        return {"this machine": run_shell(drift.local_command, session.workdir)}

    def _scheduler(
        self, drift: SchedulerDrift, reports: Mapping[str, NodeReport], session: SshSession
    ) -> DriftReport:
        controllers = [h for h in self._asked if h.role == "controller" and h.connection == "ssh"]
        report = DriftReport(cluster=self._cluster.name, drifts=())
        printed = {h.name: reports[h.name].scheduler for h in controllers if h.name in reports}
        if self._desired.is_managed:
            printed = self._managed(drift, session)
        if not printed:
            if self._silent:
                return msgspec.structs.replace(report, silent={drift.name: self._silent})
            if not controllers:
                return report
            return msgspec.structs.replace(report, silent={drift.name: "no controller answers"})
        workers = [h for h in self._asked if h.is_compute and h.is_real]
        found = drift.judge(printed, {h.name: _joins(self._wanted[h.name]) for h in workers})
        silent = {drift.name: found.problem} if found.problem else {}
        return msgspec.structs.replace(report, drifts=found.drifts, silent=silent)


def _existing(site: OpenSite) -> tuple[Host, ...]:
    try:
        return site.provider.hosts(site.context)
    except ProviderError:
        return ()  # the comparison has the reason


def _joins(wanted: Wanted) -> Collection[str]:
    """Return the steps by which a node comes back to its scheduler."""
    return [name for name, (step, _) in wanted.items() if step.phase == "join"]


def _empty(host: str, wanted: Wanted) -> Drift:
    return Drift(
        plane="node",
        where=host,
        kind="node",
        name=host,
        was="as the spec says",
        now="it carries nothing: it was set up again, or is another machine",
        steps=tuple(wanted),
        fixable=True,
    )


def _only_stamps(carried: Mapping[str, str]) -> NodeReport:
    """Return the answer of a node that is a line in a file: it carries stamps and nothing else."""
    return NodeReport(
        stamps=dict(carried),
        seals={},
        now={},
        touched={},
        health={},
        packages=(),
        commands=(),
        scheduler="",
    )


TOLERANCE = 0.1
"""Share of the certified bandwidth that may be missing: runs of a healthy fabric differ by some
per cent, and a rail of eight that is gone by more."""


def bandwidth_drift(cluster: str, events: Iterable[Event]) -> tuple[Drift, ...]:
    """Compare the newest AllReduce with the one at the end of `up`.

    That is the last one that passed before the spec counted as applied. Nothing is reported where
    there is no later one, or none was measured in the unit of the certificate; and of simulated
    GPUs only that the newest failed, since their bandwidth depends on the machine's load.
    """
    certified: SmokeFinished | None = None
    passed: SmokeFinished | None = None
    newest: tuple[SmokeFinished, str, str] | None = None
    for event in events:
        if isinstance(event.body, SmokeFinished):
            newest = event.body, event.time.strftime("%Y-%m-%dT%H:%M:%SZ"), event.actor
            passed = event.body if event.body.verdict == "pass" else passed
        elif isinstance(event.body, SpecApplied):
            certified, newest = passed, None
    if certified is None or newest is None:
        return ()
    last, when, who = newest
    slow = (
        not last.simulated
        and last.busbw is not None
        and certified.busbw is not None
        and last.busbw < certified.busbw * (1 - TOLERANCE)
    )
    if last.verdict == "pass" and not slow:
        return ()
    return (
        Drift(
            plane="fabric",
            where=cluster,
            kind="bandwidth",
            name="AllReduce",
            was=_figure(certified),
            now=_figure(last) + ("" if last.verdict == "pass" else f", {last.verdict}"),
            when=when,
            who=who,
            hint=f"gcluster smoke {cluster} names the node, rail or link",
        ),
    )


def _figure(smoke: SmokeFinished) -> str:
    return "not measured" if smoke.busbw is None else f"{smoke.busbw:.4g} GB/s"
