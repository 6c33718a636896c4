"""What Ansible's events mean: steps done, steps failed, and the lines that say why."""

from __future__ import annotations

from typing import Any

import pytest

from gcluster.lifecycle.cluster.progress import Progress, StageProgress
from gcluster.lifecycle.nodes.converge.pending import pending_steps
from gcluster.lifecycle.nodes.converge.run import ConvergeResult
from gcluster.lifecycle.nodes.converge.watch import Watch, findings, reasons

from .compiled import SMALL


@pytest.fixture
def answer() -> list[Progress]:
    """Give a list for what is reported."""
    return []


@pytest.fixture
def watch(answer: list[Progress]) -> Watch:
    """Follow the convergence of a new cluster of three hosts."""
    return Watch(pending_steps(SMALL, {}, {}), answer.append)


def event(kind: str, host: str, task: str, **result: Any) -> dict[str, Any]:
    return {"event": kind, "event_data": {"host": host, "task": task, "res": result}}


def failed(watch: Watch, **result: Any) -> None:
    watch.handle(event("runner_on_ok", "gpu1", "stamp base.install"))
    watch.handle(event("runner_on_failed", "gpu1", "gcluster.cluster.munge : Write it", **result))


def test_a_step_is_done_when_its_stamp_is_written(watch: Watch, answer: list[Progress]) -> None:
    watch.handle(event("runner_on_start", "gpu1", "gcluster.cluster.base : Install"))
    watch.handle(event("runner_on_ok", "gpu1", "gcluster.cluster.base : Install"))
    assert watch.done_count == 0
    watch.handle(event("runner_on_ok", "gpu1", "stamp base.install"))
    assert watch.done["gpu1"] == ["base.install"]
    last = answer[-1]
    assert isinstance(last, StageProgress)
    assert (last.done, last.total, last.detail) == (1, 14, "gpu1 base.install")


def test_a_failure_names_host_step_task_and_the_last_lines(watch: Watch) -> None:
    failed(watch, msg="non-zero return code", rc=1, stderr="first\n\nlast")
    failure = watch.failures["gpu1"]
    assert (failure.host, failure.step) == ("gpu1", "munge.configure")
    assert failure.message == "non-zero return code"
    assert failure.lines == ("first", "last")


def test_the_failing_item_of_a_loop_uses_for_the_task(watch: Watch) -> None:
    results = [{"msg": "fine"}, {"failed": True, "msg": "bad\nbecause"}]
    failed(watch, msg="One or more items failed", results=results)
    assert watch.failures["gpu1"].message == "bad"
    assert watch.failures["gpu1"].lines == ("because",)


def test_an_ignored_failure_is_none(watch: Watch) -> None:
    ignored = event("runner_on_failed", "gpu1", "x", msg="no")
    ignored["event_data"]["ignore_errors"] = True
    watch.handle(ignored)
    assert watch.failures == {}


def test_a_lost_host_is_not_a_failed_task(watch: Watch) -> None:
    watch.handle(event("runner_on_unreachable", "gpu2", "x", msg="Failed to connect"))
    assert watch.failures["gpu2"].task == ""


def test_only_the_events_that_explain_a_failure_are_kept(watch: Watch) -> None:
    assert watch.handle(event("runner_on_failed", "gpu1", "x", msg="no"))
    assert not watch.handle(event("runner_on_ok", "gpu1", "x"))


@pytest.mark.parametrize(
    "message",
    [
        "E: You don't have enough free space in /var/cache/apt/archives/.",
        "  - At least 214MB more space needed on the / filesystem.",
        "cp: error writing '/usr/lib/x': No space left on device",
        "[Errno 28] No space left on device: '/var/lib/gcluster/stamps'",
    ],
)
def test_a_full_disk_is_called_one(watch: Watch, message: str) -> None:
    """As apt (apt-private/private-download.cc), rpm (lib/rpmprob.c) and libc say it."""
    failed(watch, msg="non-zero return code", stderr=f"Reading lists\n{message}")
    result = ConvergeResult(done={}, failures=tuple(watch.failures.values()), waiting=())
    (finding,) = findings(result, "gcluster up demo.yaml")
    assert finding.summary.endswith("non-zero return code; its disk is full")
    assert finding.hint.startswith("give it a larger disk (disk of its pool) or make room, then")
    assert reasons(result)["gpu1"].endswith("its disk is full")


def test_findings_name_the_node_the_step_the_task_and_the_way_on(watch: Watch) -> None:
    failed(watch, msg="no space left", stderr="on device")
    result = ConvergeResult(done={}, failures=tuple(watch.failures.values()), waiting=("gpu2",))
    (finding,) = findings(result, "gcluster up demo.yaml")
    assert finding.code == "GC920"
    assert finding.summary == 'gpu1: munge.configure failed in "Write it": no space left'
    assert "on device" in finding.detail
    assert "gcluster up demo.yaml" in finding.hint
    assert reasons(result)["gpu2"] == "not tried: gpu1 failed first"
