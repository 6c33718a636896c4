"""What was rented is given back when the spec has it no more, and is paid for until then."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from gcluster.inventory.compile.slurm.elastic import elastic_nodes
from gcluster.lifecycle.operations.burst.agent.ledger import BurstFold
from gcluster.lifecycle.operations.burst.agent.work import with_room_for
from gcluster.lifecycle.state import BurstStepped, RunStarted
from gcluster.lifecycle.state.event_types import Known
from gcluster.lifecycle.state.events import Event
from gcluster.schemas.load import load_text

from .harness import BEGIN, SPEC, Harness


@pytest.mark.parametrize(
    ("count", "left"),
    [("{min: 0, max: 1}", {"spill002"}), ("{min: 2, max: 4}", set())],
)
def test_nodes_beyond_the_spec_are_given_back_and_those_it_always_has_are_not(
    own_places: Path, count: str, left: set[str]
) -> None:
    harness = Harness(own_places / "here")
    harness.submit("a", nodes=2, partition="spill", run_s=1e6)
    agent = harness.agent(harness.cluster())
    for _ in range(4):
        agent.round()
    harness.spec.write_text(harness.spec.read_text().replace("{min: 0, max: 4}", count))
    harness.events.clear()

    again = harness.agent(harness.cluster())
    for _ in range(2):
        again.round()

    gone = [each for each in harness.events if each.what == "gone"]
    assert {each.nodes for each in gone} == left
    assert {each.reason for each in gone} <= {"the spec has it no more"}
    assert harness.tally()["leftovers"] == 2 - len(left)


def test_a_provider_is_shown_a_pool_in_which_the_node_has_a_name() -> None:
    spec = load_text(SPEC.format(cloud="", spill="")).spec
    assert spec is not None

    larger = with_room_for(spec, ["spill009", "gpu001"])

    assert elastic_nodes(larger)["spill"][-1] == "spill009"
    assert larger.pools["gpu"] == spec.pools["gpu"]
    assert with_room_for(spec, ["spill004"]) == spec


def test_what_down_takes_has_cost_something_today() -> None:
    fold = BurstFold()
    made = BurstStepped(
        site="cloud", pool="spill", step="made", nodes="spill001", burst="one", usd_per_hour=10
    )
    fold.apply([_event(1, BEGIN, made), _event(2, BEGIN + 3600, _down())])

    assert fold.nodes == {}
    assert fold.spent_today("spill", BEGIN + 7200) == 10


def _down() -> RunStarted:
    return RunStarted(command="down", spec_hash="")


def _event(seq: int, at: float, body: Known) -> Event:
    time = datetime.fromtimestamp(at, UTC)
    return Event(seq=seq, time=time, actor="me", run="", epochs={}, body=body)
