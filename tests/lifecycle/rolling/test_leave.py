"""No job is lost with a node that leaves: it ends first, is requeued, or is named."""

from __future__ import annotations

import pytest

from gcluster.lifecycle.cluster.outcome import Exit, LifecycleError
from gcluster.lifecycle.cluster.progress import Progress, StageProgress
from gcluster.lifecycle.operations.rolling.leave import WHY, leave
from gcluster.lifecycle.planning.changes import RemovedNode
from gcluster.schemas.load import load_text

from .scheduler import SchedulerDouble

SPEC = """\
apiVersion: gcluster/v1
name: demo
sites: {here: {provider: local}}
pools:
  head: {site: here, role: controller}
  gpu: {site: here, machine: sim.h100x8, count: 2, update: {drain_timeout: 10m}}
scheduler: {type: slurm}
"""


def leaving(
    scheduler: SchedulerDouble,
    *nodes: str,
    requeue: bool = False,
    allow: frozenset[str] = frozenset(),
    staying: tuple[str, ...] = (),
) -> list[str]:
    """Have nodes of the pool leave; return the messages meanwhile."""
    answer: list[str] = []

    def report(event: Progress) -> None:
        if isinstance(event, StageProgress):
            answer.append(event.detail)

    spec = load_text(SPEC, file="spec.yaml").spec
    assert spec is not None
    gone = [RemovedNode(name=node, pool="gpu", replaced=False) for node in nodes]
    leave(
        spec, gone, scheduler, report,
        requeue=requeue, allow=allow, staying=staying, clock=scheduler.clock,
    )  # fmt: skip
    return answer


def test_an_idle_node_is_drained_before_it_goes() -> None:
    scheduler = SchedulerDouble({"gpu003": 0.0})
    assert leaving(scheduler, "gpu003") == []
    assert scheduler.reasons == {"gpu003": WHY}


def test_a_running_job_is_waited_for() -> None:
    scheduler = SchedulerDouble({"gpu003": 300.0, "gpu004": 0.0})
    answer = leaving(scheduler, "gpu003", "gpu004")
    assert scheduler.time >= 300.0
    assert set(answer) == {"waiting for gpu003 (job job-gpu003)"}
    assert set(scheduler.reasons) == {"gpu003", "gpu004"}


def test_a_job_that_outlasts_the_patience_is_named_and_all_nodes_serve_again() -> None:
    scheduler = SchedulerDouble({"gpu003": 1e9, "gpu004": 0.0}, drained={"gpu004": "broken fan"})
    with pytest.raises(LifecycleError) as refused:
        leaving(scheduler, "gpu003", "gpu004")
    (message,) = refused.value.diagnostics
    assert (message.code, refused.value.exit_code) == ("GC1171", Exit.REFUSED)
    assert "gpu003: job job-gpu003" in message.summary
    assert scheduler.reasons == {"gpu004": "broken fan"}


def test_an_idle_node_of_the_pool_is_named_with_what_the_spec_has_to_have_it_go_instead() -> None:
    scheduler = SchedulerDouble({"gpu001": 0.0, "gpu002": 1e9, "gpu003": 1e9})
    with pytest.raises(LifecycleError) as refused:
        leaving(scheduler, "gpu003", staying=("gpu001", "gpu002"))
    assert "gpu001 idle" in refused.value.diagnostics[0].detail
    assert "pools.gpu.skip: gpu001" in refused.value.diagnostics[0].detail


def test_jobs_are_put_back_in_line_where_that_was_requested() -> None:
    scheduler = SchedulerDouble({"gpu003": 1e9})
    leaving(scheduler, "gpu003", requeue=True)
    assert scheduler.requeued == ["job-gpu003"]


@pytest.mark.parametrize(
    ("ends", "asking", "requeue"),
    [(0.0, "PENDING", False), (300.0, "PENDING", False), (1e9, "RUNNING", True)],
)
def test_a_job_in_line_that_requests_the_node_by_name_is_named_and_the_node_serves_again(
    ends: float, asking: str, requeue: bool
) -> None:
    """Slurm would end it with NODE_FAIL as soon as its configuration lacks the node."""
    scheduler = SchedulerDouble({"gpu003": ends, "gpu004": 0.0})
    scheduler.asking = {"gpu003": {"job-gpu003" if requeue else "77": asking}}
    with pytest.raises(LifecycleError, match="request by name") as refused:
        leaving(scheduler, "gpu003", "gpu004", requeue=requeue)
    (message,) = refused.value.diagnostics
    assert (message.code, refused.value.exit_code) == ("GC1171", Exit.REFUSED)
    assert "scontrol update JobId=" in message.hint
    assert (scheduler.reasons, scheduler.requeued) == ({}, [])


def test_a_job_that_requests_the_node_and_comes_while_another_is_waited_for_is_named() -> None:
    scheduler = SchedulerDouble({"gpu003": 300.0})
    scheduler.asking, scheduler.asking_from = {"gpu003": {"78": "PENDING"}}, 100.0
    with pytest.raises(LifecycleError, match=r"gpu003\): 78"):
        leaving(scheduler, "gpu003")
    assert scheduler.reasons == {}


def test_a_job_that_runs_on_the_node_it_requests_is_waited_for_as_any_other() -> None:
    scheduler = SchedulerDouble({"gpu003": 300.0})
    scheduler.asking = {"gpu003": {"job-gpu003": "RUNNING"}}
    leaving(scheduler, "gpu003")
    assert scheduler.time >= 300.0


def test_a_job_that_requests_a_node_that_is_recreated_waits_for_it() -> None:
    scheduler = SchedulerDouble({"gpu003": 0.0})
    scheduler.asking = {"gpu003": {"77": "PENDING"}}
    spec = load_text(SPEC, file="spec.yaml").spec
    assert spec is not None
    gone = [RemovedNode(name="gpu003", pool="gpu", replaced=True)]
    leave(spec, gone, scheduler, lambda _: None, requeue=False, allow=(), clock=scheduler.clock)
    assert scheduler.reasons == {"gpu003": WHY}


def test_a_node_that_the_scheduler_waits_for_holds_nothing_up() -> None:
    scheduler = SchedulerDouble({"gpu003": 1e9})
    scheduler.answers_from["gpu003"] = 1e9
    leaving(scheduler, "gpu003")
    assert scheduler.time == 0.0


def test_a_silent_scheduler_is_a_refusal_unless_the_pool_was_named() -> None:
    scheduler = SchedulerDouble({"gpu003": 1e9})
    scheduler.silent_from = 0.0
    with pytest.raises(LifecycleError, match="the jobs there are unknown") as refused:
        leaving(scheduler, "gpu003")
    assert "--allow pool:gpu" in refused.value.diagnostics[0].hint
    leaving(scheduler, "gpu003", allow={"pool:gpu"})
