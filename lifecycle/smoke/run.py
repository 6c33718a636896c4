"""Runs the AllReduce of each fabric domain on its idle nodes, and locates a failure's cause."""

from __future__ import annotations

import secrets
import time
from collections import Counter
from pathlib import Path

import msgspec

from ...inventory.compile.kubernetes_objects.facts import kubernetes_facts
from ...inventory.compile.network.rdma import rail_devices
from ...inventory.compile.node import node_facts
from ...inventory.hosts import ClusterInventory, Host
from ...schemas.catalog import Catalog
from ...schemas.derived.floor import FloorFigure, allreduce_floor, fabric_nics
from ...schemas.derived.hostlist import fold
from ...schemas.diagnostics import Diagnostic, Severity
from ...schemas.spec import ClusterSpec, KubernetesScheduler, NoScheduler
from ..cluster.outcome import Exit, LifecycleError, failure
from ..cluster.progress import Finding, Reporter, StageFinished, StageProgress, StageStarted
from ..kubernetes.managed.login import kubectl_of
from ..nodes.ssh import SshSession
from ..scheduler.select import has_observable_use
from .domains import blocks_of, fabric_of, machine_in_pool_of, machine_of
from .judging.verdict import Expectation, Rails, Verdict, Wire
from .launch import Launch, in_container, launches, sweep
from .launching.job import JobRunner, SmokeRun
from .launching.kubernetes import KubernetesLauncher
from .launching.launcher import Launcher
from .launching.slurm import SlurmLauncher
from .launching.ssh import SshLauncher
from .reading.log import AllReduceLog, Row
from .saved import describe_domains, left_out, located_fault, rails_wanted, wire_of
from .search import WORTH_SEARCHING, Located, Search

STAGE = "smoke"

LIMIT_S = 300.0
"""Seconds for waiting in the queue and running. Seen: 3 s on 4 local nodes, 43 s on 1,008."""

MIN_NODES = 2
"""Compute nodes that an AllReduce needs to prove a network."""


RAIL_SHARE = 0.6
"""Of a GPU's own NICs, where each rail is tested by itself: a dead one, or one at half its speed,
leaves half at most, since its GPU then shares another's."""


class UnprovenError(LifecycleError):
    """Too few nodes are idle: nothing failed, and nothing was proven."""


_NO_FLOOR_ASKED = "no floor: the spec has none (smoke.allreduce.floor)"
"""For real GPUs a note is added that their speed is not judged."""


class SmokeResult(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `gcluster smoke`. `verdict` and `log` are those of the run that counts most."""

    verdict: Verdict
    log: AllReduceLog
    runs: tuple[SmokeRun, ...]
    located: dict[str, Located] = {}
    """Nodes of a failed run (as a host range) -> what the search for its fault found."""
    left_out: str = ""
    """Compute nodes that were busy or not fit, as a host range."""

    @property
    def passed(self) -> bool:
        """Whether every run passed."""
        return all(run.verdict.passed for run in self.runs)


def run_allreduce(
    spec: ClusterSpec,
    inventory: ClusterInventory,
    session: SshSession,
    run_dir: Path,
    report: Reporter,
    *,
    catalog: Catalog,
    limit_s: float = LIMIT_S,
    bisect: bool = True,
) -> SmokeResult:
    """Run the AllReduce of each fabric domain over the compute hosts of `inventory` that are idle.

    Args:
        spec: has the message sizes, the iterations and the floor.
        inventory: the hosts to test, and the controller to start the job from.
        session: SSH to the controllers.
        run_dir: where the logs are kept.
        report: receives an event for every message size.
        catalog: has the bandwidths of the machine types' fabrics, for an automatic floor.
        limit_s: seconds until a small job is cancelled; more for large messages and many nodes.
        bisect: whether to locate the fault when one fails.

    Raises:
        LifecycleError: there is no controller, or no compute host to test.
        UnprovenError: too few of the hosts are idle to prove anything (GC1173).
    """
    everyone = tuple(h for h in inventory.with_role("compute") if spec.pools[h.pool].runs_jobs)
    if not has_observable_use(spec, inventory) or not everyone:
        raise failure(
            "GC931",
            "the AllReduce needs a compute node, and a controller where there is one, that work",
            hint=f"gcluster status {spec.name} says what is wrong with the others",
        )
    launcher = launcher_of(spec, inventory, session, catalog, report)
    compute, busy = launcher.idle(everyone)
    if busy:
        report(Finding(diagnostic=left_out(busy)))
    if why := lacking(spec, everyone, compute):
        raise UnprovenError(
            Diagnostic(
                code="GC1173",
                severity=Severity.WARNING,
                summary=f"the AllReduce was not run: {why}",
                hint=f"gcluster smoke {spec.name}, once more nodes are idle",
            ),
            exit_code=Exit.REFUSED,
        )
    todo = launches(spec, compute, f"gcluster-smoke-{secrets.token_hex(3)}", catalog)
    if len(todo) > 1:
        report(Finding(diagnostic=describe_domains(todo)))
    began = time.monotonic()
    gate = _Gate(spec, catalog, compute, launcher, JobRunner(launcher, run_dir, limit_s), report)
    report(StageStarted(name=STAGE, total=sum(len(_sizes(launch)) for launch in todo)))
    runs = tuple(gate.run(launch) for launch in todo)
    located = {
        run.nodes: gate.locate(launch, run, session)
        for launch, run in zip(todo, runs, strict=True)
        if bisect and _is_worth(launch, run)
    }
    runs = tuple(
        each
        for launch, run in zip(todo, runs, strict=True)
        for each in (run, *gate.prove_rails(launch, run), *gate.prove_containers(launch, run))
    )
    shown = max(runs, key=lambda run: (not run.verdict.passed, run.verdict.ranks))
    result = SmokeResult(
        verdict=shown.verdict,
        log=shown.log,
        runs=runs,
        located=located,
        left_out=fold(busy),
    )
    finished = StageFinished(
        name=STAGE, ok=result.passed, summary=summary(shown), seconds=time.monotonic() - began
    )
    report(finished)
    return result


def lacking(spec: ClusterSpec, everyone: tuple[Host, ...], idle: tuple[Host, ...]) -> str:
    """Return why an AllReduce over the idle hosts can't prove the cluster; "": it can.

    A network needs two nodes for a proof, and a pool as many as its quorum. A cluster of one
    compute node has no network between nodes to prove.
    """
    if len(idle) < min(MIN_NODES, len(everyone)):
        return f"{len(idle)} of {len(everyone)} compute nodes is idle, and it takes {MIN_NODES}"
    there, free = (Counter(host.pool for host in hosts) for hosts in (everyone, idle))
    for name, pool in spec.pools.items():
        wanted = min(pool.quorum or 0, there[name])
        if free[name] < wanted:
            return f"{free[name]} nodes of pool {name} are idle, and its quorum is {pool.quorum}"
    return ""


def floor_of(
    launch: Launch, spec: ClusterSpec, catalog: Catalog, compute: tuple[Host, ...]
) -> FloorFigure:
    """Return the floor of one AllReduce: its nodes are one fabric domain."""
    taking_part = set(launch.nodes)
    return allreduce_floor(
        spec, catalog, Counter(host.pool for host in compute if host.name in taking_part)
    )


def summary(run: SmokeRun) -> str:
    """Return a run in one line, as `up` shows it."""
    verdict = run.verdict
    if not verdict.passed:
        first, *rest = verdict.reasons
        more = f" (and {len(rest)} more)" if rest else ""
        return f"{first.code}: {first.message}{more}, log: {run.log_file}"
    speed = f"{verdict.busbw:.3g} GB/s" if verdict.busbw is not None else ""
    carried = f" over {verdict.transport}" if verdict.transport else ""
    made_up = " (simulated GPUs)" if verdict.simulated else ""
    return f"all_reduce {verdict.ranks} ranks  0 wrong  {speed}{carried}{made_up}"


class _Gate:
    """What all AllReduces of one command share."""

    def __init__(  # noqa: PLR0917  # what they share
        self,
        spec: ClusterSpec,
        catalog: Catalog,
        compute: tuple[Host, ...],
        launcher: Launcher,
        runner: JobRunner,
        report: Reporter,
    ) -> None:
        self._spec, self._catalog, self._compute = spec, catalog, compute
        self._launcher, self._runner, self._report = launcher, runner, report
        self._facts = node_facts(spec, catalog)

    def run(self, launch: Launch) -> SmokeRun:
        done, total = 0, len(_sizes(launch))

        def progress(row: Row) -> None:
            nonlocal done
            done += 1
            detail = f"{row.size} B, {row.busbw:.3g} GB/s"
            self._report(StageProgress(name=STAGE, done=done, total=total, detail=detail))

        return self._runner.run(launch, self._expectation(launch), progress)

    def prove_containers(self, launch: Launch, run: SmokeRun) -> tuple[SmokeRun, ...]:
        """Run it again as jobs in containers do, where the nodes run any; () elsewhere."""
        hosts = self._hosts(launch)
        runs_there = all(self._facts[host.pool].runs_containers for host in hosts)
        if not run.verdict.passed or not runs_there or not self._launcher.reaches_nics(launch):
            return ()
        machine = machine_of(self._catalog, hosts[0])
        vendor = machine.gpu.vendor if machine and machine.gpu and launch.gpus else ""
        inside = in_container(launch, vendor)
        return (self._runner.run(inside, self._expectation(inside)),)

    def prove_rails(self, launch: Launch, run: SmokeRun) -> tuple[SmokeRun, ...]:
        """Run each rail by itself where no counter showed its traffic; () where none is needed."""
        floor = self._rail_floor(launch)
        if not run.verdict.passed or not run.verdict.rails.startswith("not proven") or not floor:
            return ()
        apart = msgspec.structs.replace(
            launch,
            job=f"{launch.job}-rails",
            label=f"{launch.label}-rails",
            min_bytes=launch.max_bytes,
            apart=True,
        )
        reason = f"{RAIL_SHARE:g} of each GPU's own NICs, derived from links, not measured"
        expected = msgspec.structs.replace(
            self._expectation(apart), rails=None, floor=floor, floor_reason=reason
        )
        alone = self._runner.run(apart, expected)
        said = (
            f"each GPU with its own NICs alone reached {alone.verdict.busbw or 0:.3g} GB/s or more"
        )
        proven = said if alone.verdict.passed else run.verdict.rails
        return (
            msgspec.structs.replace(
                alone, verdict=msgspec.structs.replace(alone.verdict, rails=proven)
            ),
        )

    def _rail_floor(self, launch: Launch) -> float | None:
        """Return the bus bandwidth of one GPU per node, in GB/s, that a dead rail can't reach."""
        host = self._hosts(launch)[0]
        machine, fabric = (
            machine_in_pool_of(self._spec, self._catalog, host),
            fabric_of(self._spec, self._catalog, host),
        )
        if machine is None or fabric is None or fabric.floor is None or not launch.can_split:
            return None
        speeds = [nic.count * (nic.gbps or 0) for nic in fabric_nics(machine, fabric)]
        # A fabric's known bandwidth must be more than what is left with a dead rail: half.
        if len(launch.nodes) < MIN_NODES or fabric.floor.factor < RAIL_SHARE or not all(speeds):
            return None
        return RAIL_SHARE * sum(speeds) / 8 / launch.gpus or None

    def locate(self, launch: Launch, failed: SmokeRun, session: SshSession) -> Located:
        hosts = self._hosts(launch)
        search = Search(launch, failed, self._runner, self._expectation)
        located = search.locate(blocks_of(hosts), self._report, STAGE)
        if self._launcher.reaches_nics(launch):
            fabric = fabric_of(self._spec, self._catalog, hosts[0])
            located = search.rails(located, hosts, session, fabric)
        self._report(Finding(diagnostic=located_fault(located, failed.nodes)))
        return located

    def _expectation(self, launch: Launch) -> Expectation:
        floor = floor_of(launch, self._spec, self._catalog, self._compute)
        unasked = launch.gpus and floor.gbytes_per_s is None
        return Expectation(
            ranks=launch.ranks,
            groups=launch.groups,
            min_bytes=launch.min_bytes,
            max_bytes=launch.max_bytes,
            nodes=launch.nodes,
            node_count=len(launch.nodes),
            gpu=self._gpu(launch),
            wire=self._wire(launch),
            rails=self._rails(launch),
            iterations=launch.iterations,
            floor=floor.gbytes_per_s,
            floor_reason=floor.reason or (_NO_FLOOR_ASKED if unasked else ""),
        )

    def _hosts(self, launch: Launch) -> tuple[Host, ...]:
        return tuple(host for host in self._compute if host.name in set(launch.nodes))

    def _gpu(self, launch: Launch) -> str:
        machine = machine_of(self._catalog, self._hosts(launch)[0])
        return machine.gpu.model if machine and machine.gpu and launch.gpus else ""

    def _rails(self, launch: Launch) -> Rails | None:
        host = self._hosts(launch)[0]
        fabric = fabric_of(self._spec, self._catalog, host)
        if not launch.gpus:
            return Rails(count=1, layer="socket")
        devices = rail_devices(self._facts[host.pool])
        machine = machine_in_pool_of(self._spec, self._catalog, host)
        if fabric is None:
            return None
        return rails_wanted(fabric, machine, len(launch.nodes), devices, simulated=False)

    def _wire(self, launch: Launch) -> Wire | None:
        """Return what must carry the messages; our own payload on processors goes over TCP."""
        if not launch.gpus:
            return Wire(fabric="ethernet", simulated=True)
        host = self._hosts(launch)[0]
        fabric = fabric_of(self._spec, self._catalog, host)
        # A class that isn't known can't be proven: no channel name fits it.
        if fabric is None:
            return Wire(fabric="an unknown fabric")
        wire = wire_of(fabric, machine_of(self._catalog, host), simulated=False)
        # A communicator with one GPU of a node has no use for the switch between them.
        return msgspec.structs.replace(wire, nvls=False) if launch.apart else wire


def _is_worth(launch: Launch, run: SmokeRun) -> bool:
    """Whether smaller AllReduces can show more: not where the counters named each bad rail."""
    causes = {reason.code for reason in run.verdict.reasons} & WORTH_SEARCHING
    return bool(causes) and run.started and len(launch.nodes) > 1


def _sizes(launch: Launch) -> tuple[int, ...]:
    return sweep(launch.min_bytes, launch.max_bytes)


def launcher_of(
    spec: ClusterSpec,
    inventory: ClusterInventory,
    session: SshSession,
    catalog: Catalog,
    report: Reporter,
) -> Launcher:
    """Return the launcher of AllReduces on the hosts of `inventory`.

    `report` is called when something of one is left.
    """
    if isinstance(spec.scheduler, NoScheduler):
        return SshLauncher(session, inventory.with_role("compute"))
    if not isinstance(spec.scheduler, KubernetesScheduler):
        return SlurmLauncher(session, inventory.with_role("controller")[0])
    facts = kubernetes_facts(spec, inventory, catalog)
    return KubernetesLauncher(kubectl_of(session, inventory), facts, report)
