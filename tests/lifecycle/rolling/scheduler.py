"""The double of a scheduler: nodes, jobs that end by the clock, and a log of the calls."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from gcluster.lifecycle.operations.rolling.roll import Clock
from gcluster.lifecycle.scheduler.base import NodeUse, SchedulerSilent

Work = Callable[[Collection[str]], Mapping[str, str]]


class SchedulerDouble:
    """Keeps Slurm's rules: a drained node takes no job, and its running ones go on."""

    def __init__(
        self, ends: Mapping[str, float], *, drained: Mapping[str, str] | None = None
    ) -> None:
        """Take node -> when its job ends (0: it has none), and drained node -> reason."""
        self.ends = dict(ends)
        self.reasons = dict(drained or {})
        self.time = 0.0
        self.silent_from = float("inf")
        self.answers_from: dict[str, float] = {}
        self.worked_on_busy: list[str] = []
        self.most_out = 0
        self.visited: list[str] = []
        self.requeued: list[str] = []
        self.asking: dict[str, dict[str, str]] = {}
        """Node -> jobs that request it by name -> their state."""
        self.asking_from = 0.0

    @property
    def clock(self) -> Clock:
        """Time that passes only during sleeps."""
        return Clock(lambda: self.time, self._sleep)

    def _sleep(self, seconds: float) -> None:
        self.time += seconds

    def nodes(self, nodes: Collection[str]) -> Mapping[str, NodeUse]:
        """Return the use of each known node."""
        self._answer()
        return {
            node: NodeUse(
                out=node in self.reasons,
                jobs=(f"job-{node}",) if self.busy(node) else (),
                reason=self.reasons.get(node, ""),
                silent=self.answers_from.get(node, 0.0) > self.time,
            )
            for node in nodes
            if node in self.ends
        }

    def drain(self, nodes: Collection[str], reason: str) -> None:
        """Take nodes out."""
        self._answer()
        self.reasons |= dict.fromkeys(nodes, reason)
        self.most_out = max(self.most_out, len(self.reasons))

    def resume(self, nodes: Collection[str]) -> None:
        """Take nodes back in; one that is not out is a mistake of the caller."""
        self._answer()
        for node in nodes:
            del self.reasons[node]

    def requeue(self, jobs: Collection[str]) -> None:
        """End the jobs."""
        self._answer()
        self.requeued += jobs
        for job in jobs:
            self.ends[job.removeprefix("job-")] = 0.0

    def pinned(self, nodes: Collection[str]) -> Mapping[str, str]:
        """Return the jobs that request a node by name; they run as long as they hold it."""
        self._answer()
        if self.time < self.asking_from:
            return {}
        return {
            job: state if state == "PENDING" or self.busy(node) else "COMPLETED"
            for node in nodes
            for job, state in self.asking.get(node, {}).items()
        }

    def busy(self, node: str) -> bool:
        """Say whether a job holds the node now."""
        return self.ends[node] > self.time

    def work(self, failing: Collection[str] = ()) -> Work:
        """Return what changes nodes; those in `failing` fail."""

        def change(nodes: Collection[str]) -> Mapping[str, str]:
            self.visited += nodes
            self.worked_on_busy += [n for n in nodes if self.busy(n) or n not in self.reasons]
            return {node: "it broke" for node in nodes if node in failing}

        return change

    def _answer(self) -> None:
        if self.time >= self.silent_from:
            raise SchedulerSilent("connection refused")
