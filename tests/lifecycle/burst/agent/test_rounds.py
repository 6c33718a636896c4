"""The agent's rounds: nodes come when jobs need them, go when idle, and faults are told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gcluster.lifecycle.burst.agent.scheduler import SchedulerSilent

from .rig import Rig

if TYPE_CHECKING:
    from pathlib import Path

    from .controller_double import DoubleNode, Told


@pytest.fixture
def folder(own_places: Path) -> Path:
    return own_places / "here"


def steps(rig: Rig) -> list[str]:
    return [each.what for each in rig.said]


def test_a_job_that_waited_spills_runs_and_all_is_given_back(folder: Path) -> None:
    rig = Rig(folder)
    rig.submit("a", nodes=2)

    rig.run()

    assert [w for w in steps(rig) if w != "let-go"] == [
        "moved", "asked", "made", "joined", "leaving", "gone"
    ]  # fmt: skip
    assert rig.controller.load().jobs["a"].told.startswith("spills to spill: it has waited")
    assert rig.tally() == {
        "intents": 2, "created": 2, "failed": 0, "deleted": 2,
        "open": 0, "existing": 0, "leftovers": 0, "live": 0,
    }  # fmt: skip


def test_a_job_that_has_not_waited_is_told_why_it_stays(folder: Path) -> None:
    rig = Rig(folder)
    rig.submit("a")

    rig.agent(rig.cluster()).round()

    assert (
        rig.controller.load()
        .jobs["a"]
        .told.startswith("stays (wait): it has waited less than a minute")
    )
    assert rig.controller.load().jobs["a"].partition == "train"


def test_nodes_of_one_round_are_asked_for_in_one_call(folder: Path) -> None:
    rig = Rig(folder)
    for name in ("a", "b", "c"):
        rig.submit(name, partition="spill")

    rig.run()

    assert [each.nodes for each in rig.said if each.what == "asked"] == ["spill[001-003]"]


def test_jobs_that_were_refused_together_are_asked_for_one_by_one(folder: Path) -> None:
    rig = Rig(folder, cloud=", max_nodes: 2")
    for name in ("a", "b", "c"):
        rig.submit(name, partition="spill")

    agent = rig.agent(rig.cluster())
    for _ in range(3):
        agent.round()

    asked = [each.nodes for each in rig.said if each.what == "asked"]
    assert asked == ["spill[001-003]", "spill003"]
    assert {r.nodes for r in rig.said if r.what == "made"} == {"spill[001-002]"}


def test_capacity_that_is_refused_is_given_up_and_tried_again_after_a_while(folder: Path) -> None:
    rig = Rig(folder, cloud=", max_nodes: 0")
    rig.submit("a", partition="spill")

    agent = rig.agent(rig.cluster())
    for _ in range(100):
        agent.round()

    told = rig.controller.load()
    assert 2 <= steps(rig).count("asked") <= 3
    assert told.jobs["a"].requeued == steps(rig).count("gave-up")
    assert rig.tally()["leftovers"] == 0


def test_a_job_comes_home_when_nothing_can_be_had(folder: Path) -> None:
    rig = Rig(folder, cloud=", max_nodes: 0")
    rig.submit("a")

    agent = rig.agent(rig.cluster())
    for _ in range(12):
        agent.round()

    job = rig.controller.load().jobs["a"]
    assert job.partition == "train"
    assert [e.pool for e in rig.said if e.what == "moved"] == ["spill", "train"]


def test_a_node_that_boots_and_never_joins_is_given_back(folder: Path) -> None:
    rig = Rig(folder)
    rig.change(lambda told: setattr(told, "mute", frozenset({"spill001"})))
    rig.submit("a", partition="spill")

    rig.run()

    assert "never" not in rig.controller.load().jobs["a"].told
    assert rig.controller.load().jobs["a"].requeued == 1
    left = [e for e in rig.said if e.what == "leaving" and e.nodes == "spill001"]
    assert left[0].reason == "ResumeTimeout reached"
    assert rig.tally()["leftovers"] == 0


def test_the_agent_gives_a_node_up_that_the_scheduler_would_wait_longer_for(folder: Path) -> None:
    rig = Rig(folder)

    def patient(told: Told) -> None:
        told.mute, told.resume_timeout = frozenset({"spill001"}), 1e9

    rig.change(patient)
    rig.submit("a", partition="spill")

    rig.run()

    assert any("took no jobs within 30 min" in e.reason for e in rig.said if e.what == "gave-up")


def test_a_job_goes_home_when_home_has_room_before_it_started(folder: Path) -> None:
    rig = Rig(folder)
    rig.change(lambda told: told.nodes.update({n: _down(told, n, "in repair") for n in _SPILL}))
    rig.submit("a")
    agent = rig.agent(rig.cluster())
    for _ in range(8):
        agent.round()
    assert rig.controller.load().jobs["a"].partition == "spill"

    rig.change(_finish_home)
    agent.round()
    agent.round()

    assert rig.controller.load().jobs["a"].partition == "train"
    assert rig.controller.load().jobs["a"].told == "went back to train: it has room there"


def test_a_rented_node_that_died_is_given_back(folder: Path) -> None:
    rig = Rig(folder)
    rig.submit("a", partition="spill", run_s=2000)
    agent = rig.agent(rig.cluster())
    for _ in range(4):
        agent.round()
    rig.change(lambda told: told.nodes.update({"spill001": _down(told, "spill001")}))

    agent.round()

    assert [e.reason for e in rig.said if e.what == "gone"] == ["Not responding"]


def test_the_name_of_a_rented_node_that_died_is_used_again(folder: Path) -> None:
    rig = Rig(folder)
    rig.submit("a", partition="spill", run_s=2000)
    agent = rig.agent(rig.cluster())
    for _ in range(4):
        agent.round()
    rig.change(lambda told: told.nodes.update({"spill001": _down(told, "spill001")}))

    for _ in range(4):
        agent.round()

    assert [e.nodes for e in rig.said if e.what == "may-come-again"] == ["spill001"]


def test_a_node_that_somebody_put_down_is_left_down(folder: Path) -> None:
    rig = Rig(folder)

    def by_hand(told: Told) -> None:
        told.nodes["spill001"].state, told.nodes["spill001"].reason = "down", "smells of smoke"

    rig.change(by_hand)

    agent = rig.agent(rig.cluster())
    for _ in range(4):
        agent.round()

    assert rig.controller.load().nodes["spill001"].state == "down"


def test_a_router_between_the_sites_is_not_taken_for_the_node(folder: Path) -> None:
    rig = Rig(folder)
    rig.change(lambda told: setattr(told, "router", "10.0.0.1"))
    rig.submit("a", partition="spill", run_s=2000)
    agent = rig.agent(rig.cluster())
    for _ in range(6):
        agent.round()
    placed = rig.controller.load().nodes["spill001"].address

    rig.change(lambda told: setattr(told.nodes["spill001"], "address", "10.0.0.1"))
    again = rig.agent(rig.cluster())
    for _ in range(3):
        again.round()

    assert placed not in {"", "10.0.0.1"}
    assert rig.controller.load().nodes["spill001"].address == placed


def test_a_job_is_told_when_its_nodes_do_not_come(folder: Path) -> None:
    rig = Rig(folder, cloud=", max_nodes: 0")
    rig.submit("a", partition="spill")

    agent = rig.agent(rig.cluster())
    for _ in range(3):
        agent.round()

    assert rig.controller.load().jobs["a"].told.startswith("its nodes don't come: ")


def test_a_scheduler_that_is_silent_moves_nothing(folder: Path) -> None:
    rig = Rig(folder)
    rig.submit("a", partition="spill")
    agent = rig.agent(rig.cluster())
    agent.round()

    def silent() -> None:
        raise SchedulerSilent("no route to host")

    rig.controller.observe = silent  # type: ignore[method-assign,assignment]  # a fault
    agent.round()

    assert steps(rig)[-1] == "silent"
    assert rig.tally()["leftovers"] == 1
    with pytest.raises(SchedulerSilent):
        agent.once()


_SPILL = ("spill001", "spill002", "spill003", "spill004")


def _down(told: Told, name: str, reason: str = "Not responding") -> DoubleNode:
    node = told.nodes[name]
    node.state, node.reason = "down", reason
    return node


def _finish_home(told: Told) -> None:
    told.jobs["home"].run_s = 0
