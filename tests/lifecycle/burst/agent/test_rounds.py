"""The agent's rounds: nodes come when jobs need them, go when idle, and faults are reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from gcluster.lifecycle.operations.burst.agent.scheduler import SchedulerSilent

from .controller_double import ControllerState, DoubleNode
from .harness import Harness


@pytest.fixture
def folder(own_places: Path) -> Path:
    return own_places / "here"


def steps(harness: Harness) -> list[str]:
    return [each.what for each in harness.events]


def test_a_job_that_waited_spills_runs_and_all_is_given_back(folder: Path) -> None:
    harness = Harness(folder)
    harness.submit("a", nodes=2)

    harness.run()

    assert [w for w in steps(harness) if w != "let-go"] == [
        "moved", "requested", "made", "joined", "leaving", "gone"
    ]  # fmt: skip
    assert harness.controller.load().jobs["a"].answer.startswith("spills to spill: it has waited")
    assert harness.tally() == {
        "intents": 2, "created": 2, "failed": 0, "deleted": 2,
        "open": 0, "existing": 0, "leftovers": 0, "live": 0,
    }  # fmt: skip


def test_a_job_that_has_not_waited_shows_why_it_stays(folder: Path) -> None:
    harness = Harness(folder)
    harness.submit("a")

    harness.agent(harness.cluster()).round()

    assert (
        harness.controller.load()
        .jobs["a"]
        .answer.startswith("stays (wait): it has waited less than a minute")
    )
    assert harness.controller.load().jobs["a"].partition == "train"


def test_nodes_of_one_round_are_requested_in_one_call(folder: Path) -> None:
    harness = Harness(folder)
    for name in ("a", "b", "c"):
        harness.submit(name, partition="spill")

    harness.run()

    assert [each.nodes for each in harness.events if each.what == "requested"] == ["spill[001-003]"]


def test_jobs_that_were_refused_together_are_requested_one_by_one(folder: Path) -> None:
    harness = Harness(folder, cloud=", max_nodes: 2")
    for name in ("a", "b", "c"):
        harness.submit(name, partition="spill")

    agent = harness.agent(harness.cluster())
    for _ in range(3):
        agent.round()

    requested = [each.nodes for each in harness.events if each.what == "requested"]
    assert requested == ["spill[001-003]", "spill003"]
    assert {r.nodes for r in harness.events if r.what == "made"} == {"spill[001-002]"}


def test_capacity_that_is_refused_is_given_up_and_tried_again_after_a_while(folder: Path) -> None:
    harness = Harness(folder, cloud=", max_nodes: 0")
    harness.submit("a", partition="spill")

    agent = harness.agent(harness.cluster())
    for _ in range(100):
        agent.round()

    answer = harness.controller.load()
    assert 2 <= steps(harness).count("requested") <= 3
    assert answer.jobs["a"].requeued == steps(harness).count("gave-up")
    assert harness.tally()["leftovers"] == 0


def test_a_job_comes_home_when_nothing_can_be_had(folder: Path) -> None:
    harness = Harness(folder, cloud=", max_nodes: 0")
    harness.submit("a")

    agent = harness.agent(harness.cluster())
    for _ in range(12):
        agent.round()

    job = harness.controller.load().jobs["a"]
    assert job.partition == "train"
    assert [e.pool for e in harness.events if e.what == "moved"] == ["spill", "train"]


def test_a_node_that_boots_and_never_joins_is_given_back(folder: Path) -> None:
    harness = Harness(folder)
    harness.change(lambda answer: setattr(answer, "mute", frozenset({"spill001"})))
    harness.submit("a", partition="spill")

    harness.run()

    assert "never" not in harness.controller.load().jobs["a"].answer
    assert harness.controller.load().jobs["a"].requeued == 1
    left = [e for e in harness.events if e.what == "leaving" and e.nodes == "spill001"]
    assert left[0].reason == "ResumeTimeout reached"
    assert harness.tally()["leftovers"] == 0


def test_the_agent_gives_a_node_up_that_the_scheduler_would_wait_longer_for(folder: Path) -> None:
    harness = Harness(folder)

    def patient(answer: ControllerState) -> None:
        answer.mute, answer.resume_timeout = frozenset({"spill001"}), 1e9

    harness.change(patient)
    harness.submit("a", partition="spill")

    harness.run()

    assert any(
        "took no jobs within 30 min" in e.reason for e in harness.events if e.what == "gave-up"
    )


def test_a_job_goes_home_when_home_has_room_before_it_started(folder: Path) -> None:
    harness = Harness(folder)
    harness.change(
        lambda answer: answer.nodes.update({n: _down(answer, n, "in repair") for n in _SPILL})
    )
    harness.submit("a")
    agent = harness.agent(harness.cluster())
    for _ in range(8):
        agent.round()
    assert harness.controller.load().jobs["a"].partition == "spill"

    harness.change(_finish_home)
    agent.round()
    agent.round()

    assert harness.controller.load().jobs["a"].partition == "train"
    assert harness.controller.load().jobs["a"].answer == "went back to train: it has room there"


def test_a_rented_node_that_failed_is_given_back(folder: Path) -> None:
    harness = Harness(folder)
    harness.submit("a", partition="spill", run_s=2000)
    agent = harness.agent(harness.cluster())
    for _ in range(4):
        agent.round()
    harness.change(lambda answer: answer.nodes.update({"spill001": _down(answer, "spill001")}))

    agent.round()

    assert [e.reason for e in harness.events if e.what == "gone"] == ["Not responding"]


def test_the_name_of_a_rented_node_that_failed_is_used_again(folder: Path) -> None:
    harness = Harness(folder)
    harness.submit("a", partition="spill", run_s=2000)
    agent = harness.agent(harness.cluster())
    for _ in range(4):
        agent.round()
    harness.change(lambda answer: answer.nodes.update({"spill001": _down(answer, "spill001")}))

    for _ in range(4):
        agent.round()

    assert [e.nodes for e in harness.events if e.what == "may-come-again"] == ["spill001"]


def test_a_node_that_was_set_down_by_hand_is_left_down(folder: Path) -> None:
    harness = Harness(folder)

    def by_hand(answer: ControllerState) -> None:
        answer.nodes["spill001"].state, answer.nodes["spill001"].reason = "down", "smells of smoke"

    harness.change(by_hand)

    agent = harness.agent(harness.cluster())
    for _ in range(4):
        agent.round()

    assert harness.controller.load().nodes["spill001"].state == "down"


def test_a_router_between_the_sites_is_not_taken_for_the_node(folder: Path) -> None:
    harness = Harness(folder)
    harness.change(lambda answer: setattr(answer, "router", "10.0.0.1"))
    harness.submit("a", partition="spill", run_s=2000)
    agent = harness.agent(harness.cluster())
    for _ in range(6):
        agent.round()
    placed = harness.controller.load().nodes["spill001"].address

    harness.change(lambda answer: setattr(answer.nodes["spill001"], "address", "10.0.0.1"))
    again = harness.agent(harness.cluster())
    for _ in range(3):
        again.round()

    assert placed not in {"", "10.0.0.1"}
    assert harness.controller.load().nodes["spill001"].address == placed


def test_a_job_is_reported_when_its_nodes_do_not_come(folder: Path) -> None:
    harness = Harness(folder, cloud=", max_nodes: 0")
    harness.submit("a", partition="spill")

    agent = harness.agent(harness.cluster())
    for _ in range(3):
        agent.round()

    assert harness.controller.load().jobs["a"].answer.startswith("its nodes don't come: ")


def test_a_scheduler_that_is_silent_moves_nothing(folder: Path) -> None:
    harness = Harness(folder)
    harness.submit("a", partition="spill")
    agent = harness.agent(harness.cluster())
    agent.round()

    def silent() -> None:
        raise SchedulerSilent("no route to host")

    harness.controller.observe = silent  # type: ignore[method-assign,assignment]  # a fault
    agent.round()

    assert steps(harness)[-1] == "silent"
    assert harness.tally()["leftovers"] == 1
    with pytest.raises(SchedulerSilent):
        agent.once()


_SPILL = ("spill001", "spill002", "spill003", "spill004")


def _down(answer: ControllerState, name: str, reason: str = "Not responding") -> DoubleNode:
    node = answer.nodes[name]
    node.state, node.reason = "down", reason
    return node


def _finish_home(answer: ControllerState) -> None:
    answer.jobs["home"].run_s = 0
