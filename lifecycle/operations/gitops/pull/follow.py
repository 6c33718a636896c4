"""`up` while nodes converge themselves: polls their reports until each has ended."""

from __future__ import annotations

import time
from collections.abc import (
    Callable,  # msgspec reads it
    Mapping,
)

import msgspec

from .....inventory.hosts import Host
from .....schemas.spec import ClusterSpec
from ....cluster.progress import Reporter, StageProgress
from ....nodes.converge.watch import StepFailure
from ....nodes.ssh import Unreachable
from .reports import NOTHING, Report, Reports

POLL_S = 2.0
"""Seconds between two polls; each is one SSH exec on the controller."""
SILENT_S = 300.0
"""Seconds after which a node that has not fetched the published bundle counts as silent: it polls
every minute."""
CHANGING_S = 3600.0
"""Seconds that a node may take for its steps, in addition to its wait for running jobs."""


class Followed(msgspec.Struct, frozen=True, kw_only=True):
    """The result, node by node; a node in no field matches the spec."""

    failures: dict[str, StepFailure]
    held: dict[str, str]
    """Node -> why it continues unchanged; its change is made when it is free."""


class Ask(msgspec.Struct, frozen=True):
    """Clock and sleep of the follower; tests replace them."""

    observe: Callable[[], Reports | Unreachable]
    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


def follow(  # noqa: PLR0917  # what is followed, and how
    hosts: Mapping[str, Host],
    spec: ClusterSpec,
    serial: int,
    published: int,
    observe: Callable[[], Reports | Unreachable],
    report: Reporter,
) -> Followed:
    """Follow the nodes until each has converged, failed, or is given up.

    Args:
        hosts: node -> host, those with something to do.
        spec: has the time to wait for jobs.
        serial: what they are to reach.
        published: when, in seconds since 1970 by the controller's clock.
        observe: reads the reports.
        report: called when another node has ended, or with what is waited for.
    """
    return Follow(hosts, spec, serial, published, Ask(observe), report).through()


class Follow:
    """The nodes that are followed, and how those ended that have."""

    def __init__(  # noqa: PLR0917  # as `follow`
        self,
        hosts: Mapping[str, Host],
        spec: ClusterSpec,
        serial: int,
        published: int,
        ask: Ask,
        report: Reporter,
    ) -> None:
        """Start; nothing is queried yet."""
        self._hosts = hosts
        self._spec = spec
        self._serial = serial
        self._published = published
        self._ask = ask
        self._report = report
        self._open = set(hosts)
        self._failures: dict[str, StepFailure] = {}
        self._held: dict[str, str] = {}
        self._began = ask.now()
        self._why: dict[str, str] = {}
        """Node -> what it waits for."""
        self._silent = ""
        """Why no waiting node gets its turn; "" where the collector can drain nodes."""
        self._reported = ""

    def through(self) -> Followed:
        """Poll until no node is open any more."""
        while self._open:
            answer = self._ask.observe()
            late = self._ask.now() - self._began
            reason = answer.reason if isinstance(answer, Unreachable) else ""
            seen = NOTHING if isinstance(answer, Unreachable) else answer
            self._silent = seen.silent and f"Slurm is not queried for it: {seen.silent}"
            for name in sorted(self._open):
                report = seen.nodes.get(name)
                stopped = seen.stopped.get(self._pool(name))
                if stopped is not None and stopped.serial == self._serial and report is not None:
                    self._stop(name, report, stopped.failed)
                if name in self._open:
                    self._judge(name, report, late, reason)
            self._emit()
            if self._open:
                self._ask.sleep(POLL_S)
        return Followed(failures=self._failures, held=self._held)

    def _pool(self, name: str) -> str:
        return self._hosts[name].pool

    def _judge(self, name: str, report: Report | None, late: float, unreachable: str) -> None:
        """Remove a node from the list when its report has a result, or it is too late."""
        self._why.pop(name, None)
        if report is None or report.received < self._published or report.serial < self._serial:
            if (
                report is not None
                and report.received >= self._published
                and report.state == "refused"
            ):
                self._fail(name, report.step or "self_converge.verify", report.task, report.reason)
            elif late > SILENT_S:
                why = unreachable or "it did not look at what was published"
                if report is not None and report.state == "away" and not unreachable:
                    why = report.reason
                self._fail(name, "self_converge.verify", "", f"never reported: {why}")
        elif report.state == "converged":
            self._open.discard(name)
        elif report.state in {"failed", "refused", "blocked"}:
            self._fail(name, report.step, report.task or report.step, report.reason)
        elif report.state == "waiting":
            self._why[name] = self._silent or report.reason
            patience = self._spec.pools[self._pool(name)].update.wait_s
            if late > patience:
                self._hold(name, f"{self._why[name]}; after {patience:.0f} s it is left to itself")
        elif late > self._spec.pools[self._pool(name)].update.wait_s + CHANGING_S:
            self._fail(name, report.step, "", f"no end within {late:.0f} s")

    def _stop(self, name: str, report: Report, failed: tuple[str, ...]) -> None:
        if report.state == "waiting":
            self._hold(name, f"stopped: {', '.join(failed)} failed")

    def _fail(self, name: str, step: str, task: str, message: str) -> None:
        self._open.discard(name)
        self._failures[name] = StepFailure(host=name, step=step, task=task, message=message)

    def _hold(self, name: str, reason: str) -> None:
        self._open.discard(name)
        self._held[name] = reason

    def _emit(self) -> None:
        done, total = len(self._hosts) - len(self._open), len(self._hosts)
        some = [
            f"{name} ({self._why[name]})" if name in self._why else name
            for name in sorted(self._open, key=lambda name: (name not in self._why, name))[:3]
        ]
        rest = f" and {len(self._open) - len(some)} more" if len(self._open) > len(some) else ""
        detail = f"nodes converge themselves: {', '.join(some)}{rest} to go" if some else "all told"
        if detail != self._reported:
            self._reported = detail
            self._report(StageProgress(name="converge", done=done, total=total, detail=detail))
