"""Runs an acceptance: what is missing, on the nodes that are idle, until nothing is missing."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from ....inventory.hosts import ClusterInventory, Host
from ....schemas.catalog import Machine
from ....schemas.derived.floor import FloorFigure
from ....schemas.derived.hostlist import expand, fold
from ....schemas.spec import ClusterSpec, LocalSite
from ...cluster.cluster import Cluster
from ...cluster.outcome import Exit, failure
from ...cluster.progress import Reporter, StageFinished, StageProgress, StageStarted
from ...cluster.sites import existing_hosts
from ...nodes.ssh import SshSession
from ...smoke.domains import fabric_of, machine_of
from ...smoke.judging.verdict import Expectation, Wire
from ...smoke.launch import Launch, launches
from ...smoke.launching.slurm import FREE
from ...smoke.run import floor_of
from ...smoke.saved import wire_of
from ...state import acquire
from ...status.slurm import ask_controller
from ...up.run import Run
from ..selection import chosen, controller_of, refuse_kubernetes
from . import report as reports
from .counters import read_counters
from .inventory import read_parts
from .jobs import Job, forget_jobs, job_name, run_job
from .judge import Gap, judge_results
from .probe import NodeHas, choose_way, probe
from .reading.output import read_output
from .record import Options, Plan, Record, Result, now, plan_of, refuse_other
from .table import AcceptanceTest, Way, acceptance_tests
from .targets import (
    NO_FLOOR,
    Want,
    collective_of,
    fillings,
    named,
    nic_floor,
    programs_of,
    sizes_of,
    wanted,
)

STAGE = "acceptance"
WAVE = 512
"""Nodes of one job in which each works by itself: one srun starts so many within seconds."""
_SIMULATED = "GPUs are simulated: {}"
_SHARED = "nodes are containers of one machine: they share its processors, memory and disk"


class Accepted(msgspec.Struct, frozen=True, kw_only=True):
    """How far an acceptance is."""

    report: reports.Report
    content: bytes
    """The report as it is signed."""
    signature: str
    """"": it is incomplete, and nobody signs that."""
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
    refuse_kubernetes(
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
        self._domains: dict[str, tuple[Host, ...]] = {}

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
        )
        if record.counters is None:
            record.keep_counters(read_counters(self._session, hosts))
        record.keep_parts(read_parts(self._session, hosts))
        todo = launches(cluster.spec, tuple(hosts), "acceptance", cluster.catalog)
        wants = list(wanted(tests, todo, hosts, plan.repetitions))
        ways, untested = self._ways(wants, tests, has, plan)
        runnable = [want for want in wants if want.key in ways]
        self._report(StageStarted(name=STAGE, total=len(runnable)))
        busy = self._run_missing(record, plan, tests, runnable, ways)
        stored = record.results()
        missing = {
            (want.test, want.target): Gap(nodes=fold(want.launch.nodes), why=busy[want.key])
            for want in runnable
            if want.key not in stored
        }
        accepted = self._judged(record, plan, tests, hosts, untested, missing)
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
        asked = set(expand(plan.nodes)) if plan.nodes else {host.name for host in self._everyone}
        out = {name for one in plan.exclusions for name in expand(one.nodes)}
        return [host for host in self._everyone if host.name in asked - out]

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
        for want in wants:
            test = by_name[want.test]
            named = [named(way, test, plan.path) for way in test.ways]
            way = choose_way(named, want.launch.nodes, has, directory=bool(plan.path))
            if isinstance(way, str):
                gap = Gap(nodes=fold(want.launch.nodes), why=way)
                untested[want.test, want.target] = gap
            elif test.soak and not plan.soak_s:
                gap = Gap(nodes=fold(want.launch.nodes), why="no time was given (--soak)")
                untested[want.test, want.target] = gap
            else:
                ways[want.key] = way
        return ways, untested

    def _run_missing(
        self,
        record: Record,
        plan: Plan,
        tests: Sequence[AcceptanceTest],
        wants: Sequence[Want],
        ways: Mapping[tuple[str, str, int], Way],
    ) -> dict[tuple[str, str, int], str]:
        """Run what has no result; return why some still have none."""
        by_name = {test.name: test for test in tests}
        stored = set(record.results())
        left: dict[tuple[str, str, int], str] = {}
        done = len(stored)
        for group in _groups(wants, by_name):
            test, missing = by_name[group[0].test], [w for w in group if w.key not in stored]
            if not missing:
                continue
            idle = self._idle()
            ready = [want for want in missing if set(want.launch.nodes) <= idle]
            for want in missing:
                if want not in ready:
                    waits = fold(sorted(set(want.launch.nodes) - idle))
                    left[want.key] = f"{waits} is not idle"
            for wave in _jobs(test, ready, ways):
                first = wave[0]
                detail = f"{test.name} {fold(_nodes(wave))}, repetition {first.repetition}"
                self._report(StageProgress(name=STAGE, done=done, total=len(wants), detail=detail))
                results, why = self._run(plan, test, wave, ways[first.key])
                if results:
                    record.keep_results(first, results)
                done += len(results)
                left.update({want.key: why for want in wave if why})
        return left

    def _idle(self) -> set[str]:
        view = ask_controller(self._session, self._controller)
        return {name for name, state in view.states.items() if state.rstrip("-+$") in FREE}

    def _run(
        self, plan: Plan, test: AcceptanceTest, wave: Sequence[Want], way: Way
    ) -> tuple[list[Result], str]:
        """Run one job; return the results of its targets, or why there is none."""
        first, nodes = wave[0], tuple(_nodes(wave))
        launch = msgspec.structs.replace(first.launch, nodes=nodes)
        given = fillings(
            test,
            launch,
            path=plan.path,
            mib=plan.mib,
            dcgm_level=plan.dcgm_level,
            machine=self._machine(launch),
        )
        line = way.command.format(**given).strip()
        name = job_name(f"{plan.number:06d}", *first.key, fold(nodes))
        job = Job(
            name=name,
            launch=launch,
            command=line,
            limit_s=test.minutes * 60,
            most_s=self._partition_limit_s(launch.partition),
            user="" if test.root else plan.account,
            by_node=test.scope == "node",
            mpi=test.scope not in {"node", "fabric"},
            soak_s=plan.soak_s if test.soak else 0,
        )
        began = time.monotonic()
        output = run_job(self._session, self._controller, job, lambda: None)
        seconds = time.monotonic() - began
        log = self._folder / f"{test.name}-{first.repetition}-{name.rpartition('-')[2]}.log"
        log.write_text(f"# {line}\n{output.text}", encoding="utf-8", errors="replace")
        if not output.started:
            return [], output.problem
        floor = self._floor(test, launch)
        expected = self._expectation(test, launch, floor, output.status)
        readings = read_output(test, way.reader, [want.target for want in wave], output, expected)
        return [
            Result(
                test=test.name,
                target=want.target,
                repetition=want.repetition,
                nodes=fold(want.launch.nodes),
                ended=now(),
                seconds=seconds,
                command=line,
                figures=each.figures,
                failures=each.failures,
                remarks=each.remarks,
                floor=floor.gbytes_per_s,
                floor_reason=floor.reason,
                stands_in=way.stands_in,
            )
            for want, each in zip(wave, readings, strict=True)
        ], ""

    def _floor(self, test: AcceptanceTest, launch: Launch) -> FloorFigure:
        if test.floor is None:
            return NO_FLOOR
        spec, catalog = self._cluster.spec, self._cluster.catalog
        if test.floor.of == "nic":
            fabric = fabric_of(spec, catalog, self._first(launch))
            return nic_floor(test.floor.share, self._machine(launch), fabric)
        return floor_of(launch, spec, catalog, self._everyone)

    def _partition_limit_s(self, name: str) -> float:
        partition = self._cluster.spec.scheduler.partitions.get(name)
        limit = partition.max_time if partition else None
        return math.inf if limit is None else limit.value

    def _first(self, launch: Launch) -> Host:
        return next(host for host in self._everyone if host.name == launch.nodes[0])

    def _machine(self, launch: Launch) -> Machine | None:
        return machine_of(self._cluster.catalog, self._first(launch))

    def _expectation(
        self, test: AcceptanceTest, launch: Launch, floor: FloorFigure, status: int
    ) -> Expectation:
        spec, catalog = self._cluster.spec, self._cluster.catalog
        fabric, machine = fabric_of(spec, catalog, self._first(launch)), self._machine(launch)
        wire = Wire(fabric="ethernet", simulated=True)
        if launch.gpus:
            unknown = Wire(fabric="an unknown fabric")
            wire = wire_of(fabric, machine, simulated=False) if fabric else unknown
        least, most = sizes_of(test, launch)
        return Expectation(
            ranks=launch.ranks,
            collective=collective_of(test),
            min_bytes=least,
            max_bytes=most,
            nodes=launch.nodes,
            node_count=len(launch.nodes),
            gpu=machine.gpu.model if machine and machine.gpu and launch.gpus else "",
            wire=wire,
            floor=floor.gbytes_per_s,
            floor_reason=floor.reason,
            exit_status=status,
        )

    def _judged(  # noqa: PLR0917  # all that is known
        self,
        record: Record,
        plan: Plan,
        tests: Sequence[AcceptanceTest],
        hosts: Sequence[Host],
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
            record.results().values(),
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


def _groups(wants: Sequence[Want], tests: Mapping[str, AcceptanceTest]) -> Iterator[list[Want]]:
    """Yield what runs together: of a test on each node all nodes of a domain, else one target."""
    found: defaultdict[tuple[object, ...], list[Want]] = defaultdict(list)
    for want in wants:
        alone = "" if tests[want.test].scope == "node" else want.target
        found[want.test, want.repetition, want.launch.label, alone].append(want)
    yield from found.values()


def _jobs(
    test: AcceptanceTest, ready: Sequence[Want], ways: Mapping[tuple[str, str, int], Way]
) -> Iterator[Sequence[Want]]:
    if test.scope != "node":
        yield from ([want] for want in ready)
        return
    alike: defaultdict[str, list[Want]] = defaultdict(list)
    for want in ready:
        alike[ways[want.key].command].append(want)
    for wants in alike.values():
        yield from (wants[at : at + WAVE] for at in range(0, len(wants), WAVE))


def _nodes(wave: Sequence[Want]) -> list[str]:
    return [name for want in wave for name in want.launch.nodes]


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
