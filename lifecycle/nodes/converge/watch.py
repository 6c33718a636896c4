"""What Ansible's events mean for hosts and steps: progress, steps done, and why a host failed.

A failure names the node, the step, the lines of output that matter, and how to resume.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from ....schemas.diagnostics import Diagnostic, Severity
from ...cluster.progress import Reporter, StageProgress
from .pending import Pending
from .playbook import STAMP_PREFIX

if TYPE_CHECKING:
    from .run import ConvergeResult

_KEPT = frozenset({"runner_on_failed", "runner_on_unreachable", "playbook_on_stats", "error"})
"""Events whose files are kept among the artifacts; each file costs milliseconds."""
_LAST_LINES = 12


class StepFailure(msgspec.Struct, frozen=True, kw_only=True):
    """A step that failed on a host. An empty task means that the host couldn't be reached."""

    host: str
    step: str
    """"slurm.configure"."""
    task: str
    message: str
    lines: tuple[str, ...] = ()
    """The last lines of what the task printed."""


class Watch:
    """Follows one convergence, over as many runs of Ansible as it takes."""

    def __init__(self, pending: Pending, report: Reporter) -> None:
        """Expect every pending step once."""
        self._expected = pending.by_host()
        self._total = pending.total
        self._report = report
        self.done: dict[str, list[str]] = {host: [] for host in self._expected}
        self.failures: dict[str, StepFailure] = {}

    @property
    def done_count(self) -> int:
        """Number of (host, step) pairs that are done."""
        return sum(len(steps) for steps in self.done.values())

    def handle(self, event: Mapping[str, Any]) -> bool:
        """Take one event of ansible-runner; return whether its file is to be kept."""
        kind = str(event.get("event", ""))
        data = event.get("event_data", {})
        host = data.get("host")
        if host in self.done:
            task = str(data.get("task", ""))
            if kind == "runner_on_start" and not task.startswith(STAMP_PREFIX):
                self._emit(f"{host} {self._current(host)}")
            elif kind == "runner_on_ok" and task.startswith(STAMP_PREFIX):
                self.failures.pop(host, None)  # a role that rescues its failed task continues
                self.done[host].append(task.removeprefix(STAMP_PREFIX))
                self._emit(f"{host} {self.done[host][-1]}")
            elif kind == "runner_on_failed" and not data.get("ignore_errors"):
                self.failures[host] = self._failure(host, task, data.get("res", {}))
            elif kind == "runner_on_unreachable":
                message = str(data.get("res", {}).get("msg", "unreachable")).strip()
                self.failures[host] = StepFailure(
                    host=host, step=self._current(host), task="", message=message
                )
        return kind in _KEPT

    def _emit(self, detail: str) -> None:
        self._report(
            StageProgress(name="converge", done=self.done_count, total=self._total, detail=detail)
        )

    def _current(self, host: str) -> str:
        """Return the step at work on a host: the first that isn't done."""
        done = set(self.done[host])
        return next((step for step in self._expected[host] if step not in done), "")

    def _failure(self, host: str, task: str, result: Mapping[str, Any]) -> StepFailure:
        return StepFailure(
            host=host,
            step=self._current(host),
            task=task,
            message=_message(result),
            lines=_last_lines(result),
        )


def _message(result: Mapping[str, Any]) -> str:
    """Return the most specific sentence of a failed task's result."""
    for item in result.get("results", []):
        if item.get("failed"):
            return _message(item)
    text = str(result.get("msg", "")).strip() or "failed"
    return text.splitlines()[0]


def _last_lines(result: Mapping[str, Any]) -> tuple[str, ...]:
    for item in result.get("results", []):
        if item.get("failed"):
            return _last_lines(item)
    texts = (
        result.get("msg"),
        result.get("module_stderr"),
        result.get("stderr"),
        result.get("stdout"),
    )
    lines = [line.rstrip() for text in texts if text for line in str(text).splitlines()]
    lines = [line for line in lines if line.strip()]
    return tuple(dict.fromkeys(lines[1:]))[-_LAST_LINES:] if len(lines) > 1 else ()


def findings(result: ConvergeResult, go_on: str) -> tuple[Diagnostic, ...]:
    """Return one diagnostic per failed host.

    Args:
        result: a convergence.
        go_on: the command that resumes.
    """
    return tuple(_finding(failure, go_on) for failure in result.failures)


def reasons(result: ConvergeResult) -> dict[str, str]:
    """Return host -> why it isn't fit, for every host that didn't finish."""
    failed = {failure.host: _sentence(failure) for failure in result.failures}
    culprits = ", ".join(sorted(failed))
    waiting = dict.fromkeys(result.waiting, f"not tried: {culprits} failed first")
    return waiting | failed


def _finding(failure: StepFailure, go_on: str) -> Diagnostic:
    reached = bool(failure.task)
    role, _, phase = failure.step.partition(".")
    fix = "give it a larger disk (disk of its pool) or make room" if _is_full(failure) else "fix it"
    return Diagnostic(
        code="GC920" if reached else "GC921",
        severity=Severity.ERROR,
        summary=f"{failure.host}: {_sentence(failure)}",
        detail="\n".join(failure.lines),
        hint=f"{fix}, then resume with: {go_on}   (role {role}, phase {phase})",
    )


def _sentence(failure: StepFailure) -> str:
    if not failure.task:
        return f"lost during {failure.step}: {failure.message}"
    task = failure.task.rpartition(" : ")[2]
    why = "; its disk is full" if _is_full(failure) else ""
    return f'{failure.step} failed in "{task}": {failure.message}{why}'


_FULL = re.compile(
    r"no space left on device|don't have enough free space|"
    r"more space needed on the \S+ filesystem",
    re.IGNORECASE,
)
"""Messages for a full file system: of the kernel, apt (apt-private/private-download.cc) and rpm
(lib/rpmprob.c, through dnf)."""


def _is_full(failure: StepFailure) -> bool:
    """Return whether a step failed because the node's disk is full."""
    return any(_FULL.search(line) for line in (failure.message, *failure.lines))
