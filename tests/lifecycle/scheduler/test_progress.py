"""How a job that is followed gets on: seldom, in one line, and without waiting for Prometheus."""

from __future__ import annotations

from threading import Event
from time import sleep

import msgspec
import pytest
from tests.lifecycle.scheduler.test_account import STATE

from gcluster.cli.render.operate.jobs import progress_line
from gcluster.lifecycle.cluster.outcome import failure
from gcluster.lifecycle.scheduler.workloads.account import Price
from gcluster.lifecycle.scheduler.workloads.jobs import JobState
from gcluster.lifecycle.scheduler.workloads.progress import (
    GpuUse,
    Progress,
    ReadUse,
    Reports,
)

FREE, PAID = Price(0.0, 0.0), Price(196.64, 3.277)
BUSY = GpuUse(16, 0.871)


class Followed:
    """A job that is looked at every 2 s by a clock of the test."""

    def __init__(self, price: Price, read_use: ReadUse | None) -> None:
        """Begin at 0 s."""
        self.now, self.said = 0.0, list[tuple[float, Progress]]()
        self._reports = Reports(
            lambda _: price,
            read_use,
            lambda progress: self.said.append((self.now, progress)),
            lambda: self.now,
        )

    def until(self, end: float, state: JobState = STATE) -> None:
        """Look at it until a time."""
        while self.now < end:
            self.now += 2
            self._reports.look(state)

    def times(self) -> list[float]:
        """Return when something was said."""
        return [at for at, _ in self.said]


def test_reports_come_after_a_minute_then_more_rarely_and_start_again_after_a_restart() -> None:
    job = Followed(PAID, None)
    job.until(2400)
    first = [62, 182, 422, 902, 1502, 2102]
    assert job.times() == first
    job.until(2410, msgspec.structs.replace(STATE, state="PENDING"))
    job.until(2500)
    assert job.times() == [*first, 2472]


def test_a_job_without_price_and_metrics_has_no_reports() -> None:
    job = Followed(FREE, None)
    job.until(600)
    assert job.said == []


def eventually(job: Followed, end: float, number: int) -> None:
    """Look on until so many reports are there: an answer comes from a thread of its own."""
    for _ in range(500):
        job.until(min(job.now + 2, end))
        if len(job.said) == number:
            return
        job.now -= 2
        sleep(0.01)
    raise AssertionError(job.said)


def test_the_use_of_gpus_is_in_the_report() -> None:
    job = Followed(FREE, lambda _: BUSY)
    job.until(60)
    eventually(job, 80, 1)
    ((_, progress),) = job.said
    assert (progress.use, progress.problem) == (BUSY, "")


def test_a_prometheus_that_does_not_answer_holds_up_nothing_and_is_named_once() -> None:
    held = Event()

    def read_use(_: JobState) -> GpuUse:
        held.wait()
        return BUSY

    job = Followed(PAID, read_use)
    job.until(400)  # 200 looks, none of which waits
    held.set()
    assert job.times() == [82, 222]
    assert [progress.problem for _, progress in job.said] == [
        "Prometheus has not answered yet",
        "",
    ]


def test_a_prometheus_that_refuses_is_named_once_in_its_words() -> None:
    def read_use(_: JobState) -> GpuUse:
        raise failure("GC1198", "Prometheus on head doesn't answer: Connection refused")

    job = Followed(FREE, read_use)
    job.until(60)
    eventually(job, 80, 1)
    job.until(2000)
    ((_, progress),) = job.said  # later there is nothing to say: it is free
    assert progress_line(progress).endswith(
        "use of GPUs isn't known: Prometheus on head doesn't answer: Connection refused"
    )


@pytest.mark.parametrize(
    ("progress", "line"),
    [
        (
            Progress(STATE, PAID, BUSY),
            "job 8: runs for 1-02:30:00, 16 GPUs 87% active, $3.28 so far",
        ),
        (
            Progress(STATE, FREE, GpuUse(1, 0.05, simulated=True)),
            "job 8: runs for 1-02:30:00, 1 GPU 5% active (simulated)",
        ),
        (Progress(STATE, PAID), "job 8: runs for 1-02:30:00, $3.28 so far"),
    ],
)
def test_a_report_is_one_line(progress: Progress, line: str) -> None:
    assert progress_line(progress) == line
