"""How a job that is followed gets on: how busy its GPUs are, and what it has cost so far.

How busy GPUs are is known from the cluster's Prometheus, where its spec has monitoring, and from
nothing else. It is queried while the job is followed, which waits for no answer.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Thread

import msgspec

from ...cluster.outcome import LifecycleError
from ...status.waste.prometheus import QueryPrometheus, instant
from .account import Price
from .jobs import JobState

FIRST_S, LONGEST_S = 60.0, 600.0
"""From its start to the first report; the time between two doubles from one to the other."""
_PATIENCE_S = 20.0
"""How long a report waits for Prometheus."""


class GpuUse(msgspec.Struct, frozen=True):
    """GPUs of a job, as its cluster's metrics have them now."""

    gpus: float
    """That metrics name as the job's."""
    active: float
    """Share of the time that their SMs were active, 0 to 1; AMD's: that a kernel ran."""
    simulated: bool = False
    """A double made the figures up."""


class Progress(msgspec.Struct, frozen=True):
    """A running job at one time."""

    state: JobState
    price: Price
    use: GpuUse | None = None
    """None: it has no GPUs that are measured, or nothing measures them."""
    problem: str = ""
    """Why Prometheus gives no answer; only of the first time that it doesn't."""


ReadUse = Callable[[JobState], "GpuUse | None"]


def use_of(query: QueryPrometheus, state: JobState, at: float) -> GpuUse | None:
    """Return how busy a job's GPUs are at a time, in s since 1970; None: no metric names one.

    Raises:
        LifecycleError: Prometheus doesn't answer (GC1198).
    """
    if state.pods_of:  # of Kubernetes: all labels are names that Kubernetes takes, without quotes
        space = state.id.partition("/")[0]
        owners = "|".join(state.pods_of)
        of = f'{{namespace="{space}",owner_kind="Job",owner_name=~"{owners}"}}'
        held, active = f"gcluster:pod_gpus:held{of}", f"gcluster:pod_gpus:active{of}"
    else:
        of = f'{{hpc_job="{state.id}"}}'
        held, active = f"gcluster:job_gpus:held{of}", f"gcluster:job_gpus:active{of}"
    texts = {
        "held": f"sum({held})",
        "active": f"sum({active})",
        "double": "max(gcluster_dcgm_double)",
    }
    found = instant(query, texts, at)
    gpus = sum(each.value for each in found["held"])
    if not gpus or not found["active"]:
        return None
    share = sum(each.value for each in found["active"]) / gpus
    return GpuUse(gpus, min(share, 1.0), simulated=bool(found["double"]))


class Reports:
    """Reports on a job that is followed: the first a minute after its start, then fewer."""

    def __init__(
        self,
        price: Callable[[JobState], Price],
        read_use: ReadUse | None,
        report: Callable[[Progress], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Set where it is from and where it goes; nothing is queried yet.

        Args:
            price: what the job's nodes cost.
            read_use: how busy its GPUs are; raises LifecycleError. None: nothing measures them.
            report: receives each report.
            clock: time in s.
        """
        self._price, self._read_use, self._report, self._clock = price, read_use, report, clock
        self._every = FIRST_S
        self._due: float | None = None
        self._query: _Query | None = None
        self._has_problem = False

    def look(self, state: JobState) -> None:
        """Report on the job if it is time to; called at each look at its state."""
        now = self._clock()
        if state.state != "RUNNING":
            self._due, self._every, self._query = None, FIRST_S, None
            return
        if self._due is None:
            self._due = now + self._every
        if now < self._due:
            return
        if self._query is None and self._read_use is not None:
            self._query = _Query(self._read_use, state)
        if self._query is not None and not self._query.is_answered:
            if now < self._due + _PATIENCE_S:
                return
            self._query.problem = "Prometheus has not answered yet"
        self._send(state, self._query)
        self._query = None
        self._every = min(2 * self._every, LONGEST_S)
        self._due = now + self._every

    def _send(self, state: JobState, query: _Query | None) -> None:
        use, problem = (None, "") if query is None else (query.use, query.problem)
        shown = "" if self._has_problem else problem
        self._has_problem = self._has_problem or bool(problem)
        price = self._price(state)
        if use is not None or price.usd or shown:
            self._report(Progress(state, price, use, shown))


class _Query:
    """One query of Prometheus, which is answered at some time."""

    def __init__(self, read_use: ReadUse, state: JobState) -> None:
        self.use: GpuUse | None = None
        self.problem = ""
        self.is_answered = False
        # It must hold up neither the following nor the end of the verb.
        Thread(target=self._run, args=(read_use, state), daemon=True).start()

    def _run(self, read_use: ReadUse, state: JobState) -> None:
        try:
            self.use = read_use(state)
        except LifecycleError as error:
            self.problem = error.diagnostics[0].summary
        finally:
            self.is_answered = True
