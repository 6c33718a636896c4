"""Runs an acceptance: what is missing, on the nodes that are idle, until nothing is missing."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from ....inventory.hosts import ClusterInventory, Host
from ....schemas.derived.hostlist import expand, fold
from ....schemas.spec import ClusterSpec, LocalSite
from ...cluster.cluster import Cluster
from ...cluster.hosts import existing_hosts
from ...cluster.outcome import Exit, failure
from ...cluster.progress import Reporter, StageFinished, StageStarted
from ...nodes.ssh import SshSession
from ...smoke.domains import machine_of
from ...smoke.launch import launches
from ...state import acquire
from ...up.run import Run
from ..selection import chosen, controller_of, require_slurm
from . import report as reports
from .execute import STAGE, Execution, repeat_until_done
from .facts.counters import read_counters
from .facts.inventory import read_parts
from .facts.probe import NodeHas, choose_way, probe
from .jobs import forget_jobs
from .judge import Gap, judge_results
from .record import Options, Plan, Record, Result, now, plan_of, refuse_other
from .table import AcceptanceTest, OptionName, Way, acceptance_tests
from .targets import (
    Want,
    named,
    programs_of,
    wanted,
)

_SIMULATED = "GPUs are simulated: {}"
_SHARED = "nodes are containers of one machine: they share its processors, memory and disk"


class Accepted(msgspec.Struct, frozen=True, kw_only=True):
    """How far an acceptance is."""

    report: reports.Report
    content: bytes
    """The report as it is signed."""
    signature: str
    """"": it is incomplete, so it can't be signed."""
    allowed_signers: str

    @property
    def exit_code(self) -> Exit:
        """REFUSED for a failure, PENDING while something is missing."""
        return {"pass": Exit.OK, "fail": Exit.REFUSED, "incomplete": Exit.PENDING}[
            self.report.verdict
        ]


def run_acceptance(cluster: Cluster, options: Options, report: Reporter) -> Accepted:
    """Run what an acceptance still lacks on idle nodes, and judge what there is.

    Raises:
        LifecycleError: the cluster has no Slurm (GC1031, GC931), the options don't fit the
            acceptance that is unfinished (GC1195), or no test or node is of that name.
    """
    require_slurm(
        cluster.spec,
        "is accepted by Slurm jobs only",
        hint="gcluster smoke runs the AllReduce; the other tests need Slurm",
    )
    nodes = existing_hosts(cluster).real
    if not nodes.has_scheduler or not nodes.with_role("compute"):
        raise failure("GC931", "acceptance needs a controller and a compute node that work")
    cluster.identify()
    with (
        SshSession(cluster.workdir) as session,
        acquire(cluster.store, tuple(cluster.spec.sites), reason=STAGE) as lock,
        Run(cluster, STAGE, lock) as run,
    ):
        session.trust([host for host in nodes.hosts if host.connection == "ssh"])
        accepted = Acceptance(cluster, nodes, session, run.directory, report).go(options)
        run.finish(accepted.exit_code)
        return accepted


def last_accepted(cluster: Cluster) -> Accepted:
    """Return the last acceptance whose report is signed; nothing is run.

    Raises:
        LifecycleError: there is none (GC1196).
    """
    newest = Record.newest(cluster.store)
    for record in (newest, *newest.earlier()) if newest else ():
        if content := record.report():
            return Accepted(
                report=reports.decode(content),
                content=content,
                signature=record.signature(),
                allowed_signers=reports.allowed_signers(cluster.vault, cluster.name),
            )
    hint = f"gcluster acceptance {cluster.name}"
    raise failure("GC1196", f"no acceptance of {cluster.name} is finished", hint=hint)


class Acceptance:
    """One command's work on an acceptance."""

    def __init__(
        self,
        cluster: Cluster,
        nodes: ClusterInventory,
        session: SshSession,
        folder: Path,
        report: Reporter,
    ) -> None:
        """Hold what its parts share; logs are kept in `folder`."""
        self._cluster, self._session, self._folder, self._report = cluster, session, folder, report
        self._everyone = nodes.with_role("compute")
        self._controller = controller_of(nodes, session)
        self._inventory = nodes

    def go(self, options: Options) -> Accepted:
        """Do what is missing and return the report."""
        cluster, began = self._cluster, time.monotonic()
        record = self._begun(options)
        plan = record.plan
        if plan is None:
            raise RuntimeError("an acceptance without a plan")
        tests = [test for test in acceptance_tests() if test.name in plan.tests]
        hosts = self._taking_part(plan)
        has = probe(
            self._session,
            hosts,
            cluster.catalog,
            (
                name
                for test in tests
                for way in test.ways
                for name in programs_of(test, way, plan.path)
            ),
            {name for name, pool in cluster.spec.pools.items() if pool.is_sliced},
        )
        if record.counters is None:
            record.keep_counters(read_counters(self._session, hosts))
        record.keep_parts(read_parts(self._session, hosts))
        todo = launches(cluster.spec, tuple(hosts), "acceptance", cluster.catalog)
        drilled = expand(plan.drilled) if plan.drilled else ()
        wants = list(wanted(tests, todo, hosts, plan.repetitions, drilled))
        ways, untested = self._ways(wants, tests, has, plan)
        runnable = [want for want in wants if want.key in ways]
        self._report(StageStarted(name=STAGE, total=len(runnable)))
        execution = Execution(
            cluster, self._session, self._controller, self._everyone, self._folder, self._report
        )
        busy = repeat_until_done(
            lambda: execution.run_missing(record, plan, tests, runnable, ways), options.wait_s
        )
        stored = record.results(wants)
        missing = {
            (want.test, want.target): Gap(nodes=fold(want.launch.nodes), why=busy[want.key])
            for want in runnable
            if want.key not in stored
        }
        accepted = self._judged(record, plan, tests, hosts, stored, untested, missing)
        left = len({want.key for want in runnable} - stored.keys())
        summary = f"{accepted.report.verdict}: {len(runnable) - left} of {len(runnable)} results"
        self._report(
            StageFinished(
                name=STAGE,
                ok=accepted.report.verdict != "fail",
                summary=summary,
                seconds=time.monotonic() - began,
            )
        )
        return accepted

    def _begun(self, options: Options) -> Record:
        """Return the acceptance to go on with, or a new one."""
        store = self._cluster.store
        if options.exclude is not None:
            chosen(self._inventory, [options.exclude.nodes])
        last = Record.newest(store)
        going_on = last is not None and not last.ended and not options.new
        if last is not None and going_on:
            plan = last.plan
            if plan is not None:
                refuse_other(plan, options, self._cluster, self._inventory)
                if options.exclude is not None:
                    more = (*plan.exclusions, options.exclude)
                    last.keep_plan(msgspec.structs.replace(plan, exclusions=more))
                return last
        record = Record(store, last.number + 1 if last else 1)
        record.keep_plan(plan_of(self._cluster, record.number, options, self._inventory))
        return record

    def _taking_part(self, plan: Plan) -> list[Host]:
        requested = (
            set(expand(plan.nodes)) if plan.nodes else {host.name for host in self._everyone}
        )
        out = {name for one in plan.exclusions for name in expand(one.nodes)}
        return [host for host in self._everyone if host.name in requested - out]

    def _ways(
        self,
        wants: Sequence[Want],
        tests: Sequence[AcceptanceTest],
        has: Mapping[str, NodeHas],
        plan: Plan,
    ) -> tuple[dict[tuple[str, str, int], Way], dict[tuple[str, str], Gap]]:
        """Return how each result is got, and what can't be tested at all."""
        by_name = {test.name: test for test in tests}
        ways, untested = {}, {}
        options: Mapping[OptionName, object] = {
            "path": plan.path,
            "wiring": plan.wiring,
            "drill": plan.drilled,
            "container": plan.container,
        }
        given: list[OptionName] = [name for name, value in options.items() if value]
        for want in wants:
            test = by_name[want.test]
            filled = [named(way, test, plan.path) for way in test.ways]
            way = choose_way(filled, want.launch.nodes, has, given)
            if isinstance(way, str):
                gap = Gap(nodes=fold(want.launch.nodes), why=way)
                untested[want.test, want.target] = gap
            elif test.soak and not plan.soak_s:
                gap = Gap(nodes=fold(want.launch.nodes), why="no time was given (--soak)")
                untested[want.test, want.target] = gap
            else:
                ways[want.key] = way
        return ways, untested

    def _judged(  # noqa: PLR0917  # all that is known
        self,
        record: Record,
        plan: Plan,
        tests: Sequence[AcceptanceTest],
        hosts: Sequence[Host],
        stored: Mapping[tuple[str, str, int], Result],
        untested: Mapping[tuple[str, str], Gap],
        missing: Mapping[tuple[str, str], Gap],
    ) -> Accepted:
        cluster = self._cluster
        before = next((one for one in record.earlier() if one.ended), None)
        last = reports.decode(before.report() or b"") if before else None
        simulated = _simulated(cluster.spec, self._everyone, cluster)
        shared = frozenset(simulated.get(_SHARED, ()))
        judged = judge_results(
            tests,
            stored.values(),
            untested,
            missing,
            reports.values_of(last) if last else {},
            shared,
            {host.name: host.machine or "" for host in self._everyone},
        )
        report = reports.compose(
            cluster=cluster.name,
            cluster_id=cluster.id,
            plan=plan,
            ended=now(),
            machines={host.name: host.machine or "" for host in self._everyone},
            simulated=simulated,
            judged=judged,
            parts=record.parts,
            counters=(record.counters, read_counters(self._session, hosts)),
            compared_with=before.number if before else None,
        )
        content = reports.encode(report)
        signature, allowed = "", ""
        if report.verdict != "incomplete":
            signature = reports.sign(cluster.vault, content)
            allowed = reports.allowed_signers(cluster.vault, cluster.name)
            record.keep_report(content, signature)
            forget_jobs(self._session, self._controller, f"{plan.number:06d}")
        return Accepted(
            report=report, content=content, signature=signature, allowed_signers=allowed
        )


def _simulated(
    spec: ClusterSpec, hosts: Sequence[Host], cluster: Cluster
) -> dict[str, tuple[str, ...]]:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for host in hosts:
        machine = machine_of(cluster.catalog, host)
        if machine is not None and machine.simulated:
            found[_SIMULATED.format(machine.name)].append(host.name)
        if isinstance(spec.sites[host.site], LocalSite):
            found[_SHARED].append(host.name)
    return {what: tuple(names) for what, names in found.items()}
