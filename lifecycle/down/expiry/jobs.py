"""The jobs of a cluster and how long it has been idle, read from what Slurm prints."""

from __future__ import annotations

import re

import msgspec

BETWEEN = "---"
_BUSY = re.compile(r"\bLastBusyTime=(\d+)\b")
_WAITING = frozenset({"PENDING"})


class Jobs(msgspec.Struct, frozen=True, kw_only=True):
    """Who uses a cluster."""

    running: int = 0
    """Jobs that hold nodes: running, being started or cleaned up, suspended."""
    waiting: int = 0
    problem: str = ""
    """Why the scheduler could not be queried; then nothing is known."""
    idle_s: float | None = None
    """How long no node has had a job; None: unknown, or one has."""

    @property
    def why_not(self) -> str:
        """Why the cluster must not be removed now; "": no work would be lost."""
        if self.problem:
            return f"its scheduler can't be queried for running jobs ({self.problem})"
        return f"{self.running} {'job runs' if self.running == 1 else 'jobs run'}" * bool(
            self.running
        )


def read_jobs(text: str) -> Jobs:
    """Read the states of jobs, the time there, and the nodes."""
    jobs, between, rest = text.partition(f"{BETWEEN}\n")
    clock, _, nodes = rest.partition("\n")
    if not between or not clock.isdecimal():
        return Jobs(problem="the scheduler's answer was cut short")
    states = jobs.split()
    waiting = sum(state in _WAITING for state in states)
    busy = [int(found) for found in _BUSY.findall(nodes)]
    known = busy and len(busy) == nodes.count("NodeName=")
    idle = max(0.0, float(clock) - max(busy)) if known and not states else None
    return Jobs(running=len(states) - waiting, waiting=waiting, idle_s=idle)
