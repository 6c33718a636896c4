"""Runs the AllReduce through Slurm on the cluster's own nodes, follows its log, and judges it."""

from __future__ import annotations

import secrets
import time
from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from gcluster.lifecycle.outcome import failure
from gcluster.lifecycle.progress import Finding, StageFinished, StageProgress, StageStarted
from gcluster.lifecycle.smoke.busbw import sweep
from gcluster.lifecycle.smoke.judge import Expectation, Reason, Verdict, judge
from gcluster.lifecycle.smoke.launch import Launch, launches
from gcluster.lifecycle.smoke.log import AllReduceLog
from gcluster.lifecycle.smoke.parse import LogParser
from gcluster.lifecycle.ssh import SshSession, Unreachable
from gcluster.schemas.diagnostics import Diagnostic, Severity
from gcluster.schemas.floor import FloorFigure, allreduce_floor
from gcluster.schemas.hostlist import fold

if TYPE_CHECKING:
    from pathlib import Path

    from gcluster.inventory.hosts import ClusterInventory, Host
    from gcluster.lifecycle.progress import Reporter
    from gcluster.schemas.catalog import Catalog
    from gcluster.schemas.spec import ClusterSpec

STAGE = "smoke"

LIMIT_S = 300.0
"""Seconds for waiting in the queue and running. Seen: 3 s on 4 local nodes, 43 s on 1,008."""


class SmokeRun(msgspec.Struct, frozen=True, kw_only=True):
    """One AllReduce: where it ran, what it printed, and what that proves."""

    partition: str
    nodes: str
    """As a Slurm host range."""
    verdict: Verdict
    log: AllReduceLog
    log_file: str
    """The whole output, on the machine that runs gcluster."""


class SmokeResult(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `gcluster smoke`. `verdict` and `log` are those of the run that counts most."""

    verdict: Verdict
    log: AllReduceLog
    runs: tuple[SmokeRun, ...]

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
) -> SmokeResult:
    """Run the AllReduce over all compute hosts of `inventory`, one rank a host.

    Args:
        spec: says the message sizes, the iterations and the floor.
        inventory: the hosts to test, and the controller to start the job from.
        session: reaches the controller.
        run_dir: where the log is kept.
        report: told of every message size.
        catalog: says what the fabrics of the machine types reach, for an automatic floor.
        limit_s: seconds until a job is cancelled.

    Raises:
        LifecycleError: there is no controller, or no compute host to test.
    """
    controllers = inventory.with_role("controller")
    compute = inventory.with_role("compute")
    if not controllers or not compute:
        raise failure(
            "GC931",
            "the AllReduce needs a controller and a compute node that work",
            hint=f"gcluster status {spec.name} says what is wrong with the others",
        )
    todo = launches(spec, compute, f"gcluster-smoke-{secrets.token_hex(3)}")
    if len(todo) > 1:
        report(Finding(diagnostic=_in_parts(todo)))
    began = time.monotonic()
    report(StageStarted(name=STAGE, total=sum(len(_sizes(launch)) for launch in todo)))
    runs = tuple(
        _Follower(controllers[0], session, run_dir, report, limit_s).run(
            launch, floor_of(launch, spec, catalog, compute)
        )
        for launch in todo
    )
    shown = max(runs, key=lambda run: (not run.verdict.passed, run.verdict.ranks))
    result = SmokeResult(verdict=shown.verdict, log=shown.log, runs=runs)
    report(
        StageFinished(
            name=STAGE,
            ok=result.passed,
            summary=summary(shown),
            seconds=time.monotonic() - began,
        )
    )
    return result


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
        more = f" (and {len(verdict.reasons) - 1} more)" if len(verdict.reasons) > 1 else ""
        return f"{verdict.reasons[0].code}: {verdict.reasons[0].message}{more}"
    speed = f"{verdict.busbw:.3g} GB/s" if verdict.busbw is not None else ""
    carried = f" over {verdict.transport}" if verdict.transport else ""
    made_up = " (simulated GPUs)" if verdict.simulated else ""
    return f"all_reduce {verdict.ranks} ranks  0 wrong  {speed}{carried}{made_up}"


class _Follower:
    """Starts one job, follows its output, and cancels it when it takes too long."""

    def __init__(
        self,
        controller: Host,
        session: SshSession,
        run_dir: Path,
        report: Reporter,
        limit_s: float,
    ) -> None:
        self._controller = controller
        self._session = session
        self._run_dir = run_dir
        self._report = report
        self._limit_s = limit_s

    def run(self, launch: Launch, floor: FloorFigure) -> SmokeRun:
        path = self._run_dir / f"allreduce-{launch.partition}.log"
        parser, done, total = LogParser(), 0, len(_sizes(launch))
        ended = False
        with path.open("w", encoding="utf-8", errors="replace") as copy:

            def take(line: str) -> None:
                nonlocal done
                copy.write(line)
                if row := parser.feed(line):
                    done += 1
                    detail = f"{row.size} B, {row.busbw:.3g} GB/s"
                    self._report(StageProgress(name=STAGE, done=done, total=total, detail=detail))

            try:
                answer = self._session.stream(
                    self._controller, launch.command(), take, timeout_s=self._limit_s
                )
                ended = not isinstance(answer, Unreachable)
            finally:
                state = "" if ended else self._cancel(launch)
        log = parser.result()
        if isinstance(answer, Unreachable):
            verdict = _not_ended(judge(log, _expectation(launch, floor, 1)), answer.reason, state)
        else:
            verdict = judge(log, _expectation(launch, floor, answer.returncode))
        nodes = fold(launch.nodes)
        return SmokeRun(
            partition=launch.partition, nodes=nodes, verdict=verdict, log=log, log_file=str(path)
        )

    def _cancel(self, launch: Launch) -> str:
        """Cancel the job; return its last state and Slurm's reason, "" when it isn't known."""
        command = f"{launch.ask()}; {launch.cancel()}"
        answer = self._session.run(self._controller, command, timeout_s=20)
        return "" if isinstance(answer, Unreachable) else answer.stdout.strip()


def _not_ended(verdict: Verdict, reason: str, state: str) -> Verdict:
    """Put first why a job that gave no end was given up."""
    waited = state.startswith("PENDING")
    what = f"the job did not start ({state.partition(' ')[2]})" if waited else reason
    if state and not waited:
        what += f"; Slurm said {state}"
    first = Reason(code="aborted", message=f"{what}; it was cancelled")
    others = tuple(r for r in verdict.reasons if not waited and r.code == "missing-rank")
    return msgspec.structs.replace(verdict, verdict="fail", reasons=(first, *others))


def _expectation(launch: Launch, floor: FloorFigure, exit_status: int) -> Expectation:
    return Expectation(
        ranks=len(launch.nodes),
        min_bytes=launch.min_bytes,
        max_bytes=launch.max_bytes,
        nodes=launch.nodes,
        floor=floor.gbytes_per_s,
        floor_reason=floor.reason,
        exit_status=exit_status,
    )


def _sizes(launch: Launch) -> tuple[int, ...]:
    return sweep(launch.min_bytes, launch.max_bytes)


def _in_parts(todo: tuple[Launch, ...]) -> Diagnostic:
    named = ", ".join(f"{launch.partition} ({fold(launch.nodes)})" for launch in todo)
    return Diagnostic(
        code="GC932",
        severity=Severity.NOTE,
        summary="no partition holds all compute pools: the AllReduce runs once per partition",
        detail=named,
        hint="a partition with all pools lets one AllReduce test them together",
    )
