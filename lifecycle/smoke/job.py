"""Starts one AllReduce through Slurm, follows its log while it is written, and judges it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gcluster.lifecycle.smoke.judging.judge import judge
from gcluster.lifecycle.smoke.judging.verdict import Expectation, Reason, Verdict
from gcluster.lifecycle.smoke.reading.log import AllReduceLog, Row
from gcluster.lifecycle.smoke.reading.parse import LogParser
from gcluster.lifecycle.ssh import SshSession, Unreachable
from gcluster.schemas.hostlist import fold

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gcluster.inventory.hosts import Host
    from gcluster.lifecycle.smoke.launch import Launch


class SmokeRun(msgspec.Struct, frozen=True, kw_only=True):
    """One AllReduce: where it ran, what it printed, and what that proves."""

    partition: str
    nodes: str
    """As a Slurm host range."""
    verdict: Verdict
    log: AllReduceLog
    log_file: str
    """The whole output, on the machine that runs gcluster."""
    started: bool = True
    """False: it was given up while it waited in the queue."""


class JobRunner:
    """Runs AllReduces from one controller; several at once where their nodes are not the same."""

    def __init__(
        self, controller: Host, session: SshSession, run_dir: Path, limit_s: float
    ) -> None:
        """Keep logs under `run_dir`; give a job up after `limit_s` seconds."""
        self._controller = controller
        self._session = session
        self._run_dir = run_dir
        self._limit_s = limit_s

    def run(
        self, launch: Launch, expected: Expectation, progress: Callable[[Row], None] | None = None
    ) -> SmokeRun:
        """Run one to its end.

        Args:
            launch: what to start.
            expected: what it must prove; how the launcher ended is added.
            progress: told of each row as it comes.
        """
        path = self._run_dir / f"allreduce-{launch.label}.log"
        parser, ended = LogParser(), False
        with path.open("w", encoding="utf-8", errors="replace") as copy:

            def take(line: str) -> None:
                copy.write(line)
                if (row := parser.feed(line)) and progress:
                    progress(row)

            try:
                answer = self._session.stream(
                    self._controller, launch.command(), take, timeout_s=self._limit_s
                )
                ended = not isinstance(answer, Unreachable)
            finally:
                state = "" if ended else self._cancel(launch)
        log = parser.result()
        status = 1 if isinstance(answer, Unreachable) else answer.returncode
        verdict = judge(log, msgspec.structs.replace(expected, exit_status=status))
        if isinstance(answer, Unreachable):
            verdict = _not_ended(verdict, answer.reason, state)
        return SmokeRun(
            partition=launch.partition,
            nodes=fold(launch.nodes),
            verdict=verdict,
            log=log,
            log_file=str(path),
            started=ended or not state.startswith("PENDING"),
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
