"""Runs what an acceptance lacks on idle nodes, job by job, and stores the results as they come."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import msgspec

from ....inventory.hosts import Host
from ....schemas.catalog import Machine
from ....schemas.derived.floor import FloorFigure
from ....schemas.derived.hostlist import fold
from ...cluster.cluster import Cluster
from ...cluster.outcome import failure
from ...cluster.progress import Reporter, StageProgress
from ...nodes.ssh import SshSession
from ...smoke.domains import fabric_of, machine_in_pool_of
from ...smoke.judging.verdict import Expectation, Wire
from ...smoke.launch import Launch
from ...smoke.launching.slurm import FREE
from ...smoke.run import floor_of
from ...smoke.saved import wire_of
from ...status.slurm import query_controller
from .jobs import Job, is_there, job_name, run_job
from .reading.output import read_output
from .record import Plan, Record, Result, now
from .table import AcceptanceTest, Way
from .targets import NO_FLOOR, Want, collective_of, fillings, nic_floor, sizes_of

STAGE = "acceptance"
DRILL = Path(__file__).with_name("drill.sh")
AGAIN_S = 30.0
"""Seconds between polls of nodes that jobs occupy."""
WAVE = 512
"""Nodes of one job in which each works by itself: one srun starts so many within seconds."""


Left: TypeAlias = dict[tuple[str, str, int], str]
"""Key of what still has no result -> why."""


def repeat_until_done(run: Callable[[], Left], wait_s: float) -> Left:
    """Run what is missing again and again until nothing is, or the time is over."""
    ends = time.monotonic() + wait_s
    while left := run():
        if time.monotonic() >= ends:
            break
        time.sleep(AGAIN_S)
    return left


class Execution:
    """Runs the jobs of one acceptance."""

    def __init__(  # noqa: PLR0917  # what the jobs share
        self,
        cluster: Cluster,
        session: SshSession,
        controller: Host,
        everyone: Sequence[Host],
        folder: Path,
        report: Reporter,
    ) -> None:
        """Hold what jobs share; logs are kept in `folder`."""
        self._cluster, self._session, self._folder, self._report = cluster, session, folder, report
        self._controller, self._everyone = controller, tuple(everyone)

    def run_missing(
        self,
        record: Record,
        plan: Plan,
        tests: Sequence[AcceptanceTest],
        wants: Sequence[Want],
        ways: Mapping[tuple[str, str, int], Way],
    ) -> Left:
        """Run what has no result; return why some still have none."""
        by_name = {test.name: test for test in tests}
        left: Left = {}
        stored = set(record.results(wants))
        known = {want.key: want for want in wants}
        for begun in tuple(record.begun()):
            lacks = all(known.get(want.key) == want and want.key not in stored for want in begun)
            if lacks and is_there(self._session, self._controller, _name(plan, begun)):
                left |= self._take(record, plan, by_name[begun[0].test], begun, ways[begun[0].key])
        stored = set(record.results(wants))
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
                record.keep_begun(wave)
                left |= self._take(record, plan, test, wave, ways[first.key])
                done += len(wave)
        return left

    def _take(
        self, record: Record, plan: Plan, test: AcceptanceTest, wave: Sequence[Want], way: Way
    ) -> Left:
        """Run one job, or go on with it, and store its results; return why there is none."""
        results, why = self._run(plan, test, wave, way)
        if results:
            record.keep_results(wave[0], results)
        return {want.key: why for want in wave} if why else {}

    def _idle(self) -> set[str]:
        view = query_controller(self._session, self._controller)
        if view.problem:
            raise failure("GC931", f"the idle nodes are unknown: {view.problem}")
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
        _, _, words = line.partition(" ")
        name = _name(plan, wave)
        job = Job(
            name=name,
            launch=launch,
            command=f"set -- {words}\n{DRILL.read_text()}" if way.on_controller else line,
            on_controller=way.on_controller,
            container=plan.container if way.in_container else "",
            limit_s=test.minutes * 60,
            most_s=self._partition_limit_s(launch.partition),
            user="" if test.root else plan.account,
            by_node=test.scope == "node",
            mpi=test.scope not in {"node", "fabric", "drill"},
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
        targets = [want.target for want in wave]
        readings = read_output(test, way.reader, targets, output, expected, plan.wiring)
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
        cluster = self._cluster
        return machine_in_pool_of(cluster.spec, cluster.catalog, self._first(launch))

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


def _name(plan: Plan, wave: Sequence[Want]) -> str:
    return job_name(f"{plan.number:06d}", *wave[0].key, fold(_nodes(wave)))


def _nodes(wave: Sequence[Want]) -> list[str]:
    return [name for want in wave for name in want.launch.nodes]
