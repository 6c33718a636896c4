"""What became of each job of a replay."""

from __future__ import annotations

from collections import Counter
from enum import IntEnum


class Outcome(IntEnum):
    """Where a job is in its life."""

    WAITS = 0
    HOME = 1
    CLOUD = 2
    REFUSED = 3


class Outcomes:
    """Lists by the jobs' places in the trace; times are seconds since the epoch."""

    def __init__(self, jobs: int) -> None:
        """Start with no job started."""
        self.eligible = [0.0] * jobs
        """When it could have started."""
        self.started = [0.0] * jobs
        self.ended = [0.0] * jobs
        self.where = [Outcome.WAITS] * jobs
        self.refused: Counter[str] = Counter()
        """Jobs that could run nowhere, by reason."""

    def start(self, job: int, now: float, where: Outcome) -> None:
        """Note that a job runs."""
        self.started[job], self.where[job] = now, where

    def end(self, job: int, now: float) -> None:
        """Note that a job has ended."""
        self.ended[job] = now

    def refuse(self, job: int, word: str) -> None:
        """Note that a job can run nowhere."""
        if self.where[job] != Outcome.REFUSED:
            self.where[job] = Outcome.REFUSED
            self.refused[word] += 1

    def waits(self, job: int) -> bool:
        """Return whether a job has not started and still may."""
        return self.where[job] == Outcome.WAITS

    def is_over(self, job: int) -> bool:
        """Return whether a job has ended, or never will run."""
        return self.where[job] == Outcome.REFUSED or self.ended[job] > 0

    def wait(self, job: int) -> float:
        """Return how long a job that ran has waited, in seconds."""
        return self.started[job] - self.eligible[job]

    def ran(self, *where: Outcome) -> list[int]:
        """Return the jobs that ran there, in the order of the trace."""
        return [job for job, found in enumerate(self.where) if found in where]
