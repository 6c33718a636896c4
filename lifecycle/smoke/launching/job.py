"""Has one AllReduce run, follows its log while it is written, and judges it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from ....schemas.derived.hostlist import fold
from ..judging.judge import judge
from ..judging.verdict import Expectation, Reason, Verdict
from ..launch import WARM_UPS, Launch
from ..reading.log import AllReduceLog, Row
from ..reading.parse import LogParser
from .launcher import Ended, Launcher


class SmokeRun(msgspec.Struct, frozen=True, kw_only=True):
    """One AllReduce: where it ran, what it printed, and what that proves."""

    partition: str
    nodes: str
    """As a Slurm host range."""
    verdict: Verdict
    log: AllReduceLog
    log_file: str
    """The whole output, on the machine that runs gcluster."""
    container: str = ""
    """Image of the container in which the ranks ran; "": in none."""
    started: bool = True
    """False: it was given up while it waited in the queue."""


SLOWEST_GB_PER_S = 1.0
"""Bus bandwidth that a job is given time for where no floor is known."""
FLOOR_SHARE = 8
"""Of a floor, what a job is still given time for: it is to end and be judged, not to be cut off."""
NODE_S = 2.0
"""Seconds that each node adds: Slurm's start, PMIx, NCCL's bootstrap and its rings."""
UNTIMED = WARM_UPS + 1
"""Runs of a size that are not timed: to warm up, and the one that checks results."""


def time_limit_s(launch: Launch, floor: float | None, base_s: float) -> float:
    """Return the seconds after which a job that hasn't ended never will.

    Args:
        launch: its nodes, largest message and iterations count.
        floor: bus bandwidth in GB/s that it is to reach; None: not known.
        base_s: what the smallest job gets, in the queue and running.
    """
    slowest = SLOWEST_GB_PER_S if floor is None else max(SLOWEST_GB_PER_S, floor / FLOOR_SHARE)
    # Out of place and in place; all sizes are less than twice the largest; busbw counts double.
    moved = 2 * (launch.iterations + UNTIMED) * 2 * launch.max_bytes * 2
    return base_s + NODE_S * len(launch.nodes) + moved / 1e9 / slowest


class JobRunner:
    """Runs AllReduces; several at once where their nodes are not the same."""

    def __init__(self, launcher: Launcher, run_dir: Path, limit_s: float) -> None:
        """Keep logs under `run_dir`; give a small job up after `limit_s` seconds."""
        self._launcher = launcher
        self._run_dir = run_dir
        self._limit_s = limit_s

    def run(
        self, launch: Launch, expected: Expectation, progress: Callable[[Row], None] | None = None
    ) -> SmokeRun:
        """Run one to its end.

        Args:
            launch: what to start.
            expected: what it must prove; how the launcher ended is added.
            progress: receives each row as it comes.
        """
        path = self._run_dir / f"allreduce-{launch.label}.log"
        parser = LogParser()
        with path.open("w", encoding="utf-8", errors="replace") as copy:

            def take(line: str) -> None:
                copy.write(line)
                if (row := parser.feed(line)) and progress:
                    progress(row)

            limit_s = time_limit_s(launch, expected.floor, self._limit_s)
            ended = self._launcher.run(launch, take, limit_s)
            copy.writelines(f"# gcluster: {line}\n" for line in ended.messages)
        log = parser.result()
        verdict = judge(log, msgspec.structs.replace(expected, exit_status=ended.status))
        if ended.problem:
            verdict = _given_up(verdict, ended)
        return SmokeRun(
            partition=launch.partition,
            nodes=fold(launch.nodes),
            verdict=verdict,
            log=log,
            log_file=str(path),
            container=launch.container,
            started=ended.started,
        )


def _given_up(verdict: Verdict, ended: Ended) -> Verdict:
    """Put first why a job that gave no end was given up."""
    first = Reason(code="aborted", message=f"{ended.problem}; it was cancelled")
    others = tuple(r for r in verdict.reasons if ended.started and r.code == "missing-rank")
    return msgspec.structs.replace(verdict, verdict="fail", reasons=(first, *others))
