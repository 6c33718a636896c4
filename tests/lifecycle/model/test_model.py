"""Some random runs of the model in every run of the tests; `make test-model` makes ten thousand."""

from __future__ import annotations

import pytest

from gcluster.lifecycle.cluster.outcome import Exit

from .faults import LATEST, Fault
from .machine import Runs
from .mutate import MUTATIONS, found_without
from .search import emit

RUNS = 60


def test_whatever_befalls_a_cluster_nothing_is_orphaned_made_twice_or_lost() -> None:
    counts = emit(RUNS, 0)
    assert counts["runs"] >= RUNS
    assert counts["killed"] > RUNS // 4
    assert counts["paused"] > 0


@pytest.mark.parametrize(
    "what", ["the write of intents before a call", "the sweep at the end of down"]
)
def test_the_model_notices_when_a_part_is_missing(what: str) -> None:
    assert found_without(MUTATIONS[what], runs=200)


def _calm(*, lag: int = 0) -> Runs:
    """Begin a run in which nothing goes wrong by itself."""
    run = Runs()
    run.begin(
        seed=0, refused=0.0, lost=0.0, dead=0.0, undeleted=0.0, throttled=0.0, lag=lag, latency=0,
        room=None,
    )  # fmt: skip
    return run


def test_a_cluster_that_others_took_down_while_up_waited_gets_keys_that_open() -> None:
    """They delete the identity that this `up` had read: it is not to wrap a data key for that."""
    run = _calm()
    assert run.world.up(1) is Exit.OK
    run.world.down(Fault(at=1, wrong="killed", then_up=None))
    run.world.up(1, Fault(at=1, wrong="paused", then_up=None))
    run.teardown()


def test_a_node_that_an_agent_requested_too_late_is_there_for_down_to_find() -> None:
    """Paused between intent and call while others end the cluster: only a list can know of it."""
    run = _calm()
    assert run.world.up(1) is Exit.OK
    run.world.grow(["spill001"], Fault(at=6, wrong="paused", then_up=None))
    assert "spill001" in run.world.machines.nodes
    run.teardown()
    assert not run.world.machines.nodes


def test_a_node_that_was_requested_too_late_may_be_requested_again_until_a_list_has_it() -> None:
    """The call of an `up` was on its way when its lock was broken: it is not on record yet."""
    run = _calm(lag=20)
    run.world.up(1, Fault(at=14, wrong="paused", then_up=None))
    assert "head" in run.world.machines.nodes
    run.teardown()
    assert not run.world.machines.nodes


def test_a_node_that_an_agent_has_just_made_stays_on_record_though_no_list_has_it_yet() -> None:
    """The agent works concurrently with `up`, and what it made doesn't count as gone."""
    run = _calm(lag=20)
    assert run.world.up(2) is Exit.OK
    run.world.grow(["spill001"], Fault(at=10, wrong="killed", then_up=None))
    assert "spill001" in run.world.machines.nodes
    run.teardown()
    assert not run.world.machines.nodes


@pytest.mark.parametrize("at", range(1, LATEST + 1))
def test_a_down_that_continues_when_others_broke_its_lock_deletes_no_key_of_theirs(at: int) -> None:
    """They may have begun again long before it is at its last deletion."""
    run = _calm()
    assert run.world.up(2) is Exit.OK
    run.world.down(Fault(at=at, wrong="paused", then_up=1))
    assert run.world.up(2) is Exit.OK
    run.world.down(Fault(at=at, wrong="killed", then_up=None))
    assert run.world.up(1) is Exit.OK
    run.teardown()
