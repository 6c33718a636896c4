"""Jobs as text: the queue as a table, a job's states as lines, what it prints as it is."""

from __future__ import annotations

from collections.abc import Sequence

from ....lifecycle.scheduler.workloads.jobs import Job, JobState
from ...console import emit


def jobs_text(jobs: Sequence[Job]) -> str:
    """Return the queue as a table."""
    if not jobs:
        return "no jobs"
    head = ("JOB", "NAME", "USER", "STATE", "TIME", "NODES", "WHERE OR WHY")
    rows = [
        (job.id, job.name, job.user, job.state.lower(), job.elapsed, job.nodes, job.reason)
        for job in jobs
    ]
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in (head, *rows))
    return "\n".join(lines)


def state_line(state: JobState) -> str:
    """Return one line for a state of a job."""
    words = [f"job {state.id}: {state.state.lower()}"]
    if state.state == "PENDING" and state.reason not in {"", "None"}:
        words.append(f"({state.reason})")
    if state.batch_host and not state.is_over and state.state != "PENDING":
        words.append(f"on {state.nodes} node{'s' * (state.nodes != 1)} from {state.batch_host}")
    if state.is_over:
        words.append(f"after {state.elapsed}, exit code {state.exit_code}")
    if state.restarts:
        words.append(f"- started again {state.restarts} time{'s' * (state.restarts != 1)}")
    return " ".join(words)


def printed(text: str) -> None:
    """Write what a job printed."""
    emit(text.rstrip("\n"))
