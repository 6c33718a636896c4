"""A rolling change never works on a busy node, never takes out too many, and always ends."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcluster.lifecycle.operations.rolling import Rolled, Window, roll
from gcluster.schemas.spec import Update
from gcluster.schemas.spec.units import Duration

from .scheduler import SchedulerDouble

NODES = tuple(f"gpu{number:03d}" for number in range(1, 9))
OURS = "gcluster up: an earlier run"


def change(
    scheduler: SchedulerDouble, policy: Update, failing: frozenset[str] = frozenset()
) -> Rolled:
    """Change every node that the scheduler knows, as one pool."""
    window = Window(scheduler.ends, policy, pool_size=len(scheduler.ends))
    return roll(
        (window,),
        scheduler,
        scheduler.work(failing),
        why="run 1",
        emit=lambda _: None,
        clock=scheduler.clock,
    )


def idle(nodes: tuple[str, ...] = NODES) -> dict[str, float]:
    return dict.fromkeys(nodes, 0.0)


def test_idle_nodes_are_changed_a_few_at_a_time_and_given_back() -> None:
    scheduler = SchedulerDouble(idle())
    rolled = change(scheduler, Update(max_unavailable=3))
    assert sorted(rolled.changed) == list(NODES)
    assert scheduler.most_out == 3
    assert scheduler.reasons == {}


def test_a_tenth_of_the_pool_and_at_least_one_node_is_out_by_default() -> None:
    assert [Update().at_once(nodes) for nodes in (1, 9, 64, 10_000)] == [1, 1, 6, 1000]


def test_a_node_with_a_long_job_does_not_hold_up_the_others() -> None:
    scheduler = SchedulerDouble(idle() | {"gpu001": 600.0})
    rolled = change(scheduler, Update(max_unavailable=2))
    assert scheduler.visited[-1] == "gpu001"
    assert set(rolled.changed) == set(NODES)
    assert not scheduler.worked_on_busy


def test_a_node_whose_job_outlasts_the_patience_goes_back_unchanged_with_the_job_named() -> None:
    scheduler = SchedulerDouble(idle() | {"gpu005": 1e9})
    rolled = change(scheduler, Update(drain_timeout=Duration.parse("10m")))
    assert rolled.held == {"gpu005": "job job-gpu005 still runs there after 600 s"}
    assert "gpu005" not in scheduler.visited
    assert scheduler.reasons == {}


def test_jobs_are_requeued_only_where_the_spec_allows_it() -> None:
    scheduler = SchedulerDouble(idle() | {"gpu005": 1e9})
    rolled = change(scheduler, Update(jobs="requeue"))
    assert scheduler.requeued == ["job-gpu005"]
    assert "gpu005" in rolled.changed


def test_a_failed_node_stays_out_with_the_reason_and_the_rest_serves_on_unchanged() -> None:
    scheduler = SchedulerDouble(idle())
    rolled = change(scheduler, Update(max_unavailable=2), failing=frozenset({"gpu002"}))
    assert rolled.failed == {"gpu002": "it broke"}
    assert rolled.changed == ("gpu001",)
    assert set(rolled.held.values()) == {"stopped: gpu002 failed"}
    assert scheduler.reasons == {"gpu002": "gcluster up: run 1: failed: it broke"}


def test_as_many_nodes_may_fail_as_in_the_spec() -> None:
    scheduler = SchedulerDouble(idle())
    rolled = change(scheduler, Update(max_failed=1), failing=frozenset({"gpu002"}))
    assert len(rolled.changed) == 7
    assert rolled.held == {}


def test_a_node_that_was_drained_by_others_is_changed_and_stays_drained() -> None:
    scheduler = SchedulerDouble(idle(), drained={"gpu003": "RMA 4711"})
    rolled = change(scheduler, Update())
    assert "gpu003" in rolled.changed
    assert scheduler.reasons == {"gpu003": "RMA 4711"}


def test_nodes_that_a_killed_run_took_out_come_first_and_are_given_back() -> None:
    scheduler = SchedulerDouble(idle(), drained={"gpu007": OURS})
    change(scheduler, Update(max_unavailable=1))
    assert scheduler.visited[0] == "gpu007"
    assert scheduler.reasons == {}


def test_nothing_is_touched_when_the_scheduler_does_not_answer() -> None:
    scheduler = SchedulerDouble(idle())
    scheduler.silent_from = 0.0
    rolled = change(scheduler, Update())
    assert scheduler.visited == []
    assert set(rolled.held.values()) == {"the scheduler does not answer: connection refused"}


@pytest.mark.parametrize("moment", [3.0, 6.0])
def test_a_scheduler_that_falls_silent_ends_the_change_with_every_node_accounted_for(
    moment: float,
) -> None:
    scheduler = SchedulerDouble(dict.fromkeys(NODES, 5.0))
    scheduler.silent_from = moment
    rolled = change(scheduler, Update(max_unavailable=4))
    assert not scheduler.worked_on_busy
    assert {*rolled.changed, *rolled.failed, *rolled.held} == set(NODES)


@given(
    ends=st.dictionaries(st.sampled_from(NODES), st.floats(0, 5000), min_size=1),
    others=st.sets(st.sampled_from(NODES)),
    ours=st.sets(st.sampled_from(NODES)),
    failing=st.frozensets(st.sampled_from(NODES)),
    at_once=st.integers(1, 4),
    max_failed=st.integers(0, 4),
    requeue=st.booleans(),
)
def test_whatever_happens_no_job_is_ended_and_no_limit_is_exceeded(  # noqa: PLR0917  # the space
    ends: dict[str, float],
    others: set[str],
    ours: set[str],
    failing: frozenset[str],
    at_once: int,
    max_failed: int,
    *,
    requeue: bool,
) -> None:
    drained = dict.fromkeys(others & ends.keys(), "by hand")
    drained |= dict.fromkeys((ours - others) & ends.keys(), OURS)
    scheduler = SchedulerDouble(ends, drained=drained)
    policy = Update(
        max_unavailable=at_once, max_failed=max_failed, jobs="requeue" if requeue else "wait"
    )
    rolled = change(scheduler, policy, failing)
    assert not scheduler.worked_on_busy
    assert {*rolled.changed, *rolled.failed, *rolled.held} == ends.keys()
    assert len(scheduler.visited) == len(set(scheduler.visited))
    assert scheduler.most_out <= len(drained) + at_once + len(rolled.failed)
    assert len(rolled.failed) <= max_failed + at_once
    by_hand = {node for node, why in drained.items() if why == "by hand"}
    assert by_hand <= scheduler.reasons.keys()
    assert {n for n, why in scheduler.reasons.items() if why != "by hand"} <= rolled.failed.keys()
    assert requeue or not scheduler.requeued
