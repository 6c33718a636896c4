"""What the scheduler refuses is reported and blocks nothing else; of many jobs some are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from gcluster.lifecycle.operations.burst.agent import loop
from gcluster.lifecycle.operations.burst.agent.scheduler import SchedulerRefused

from .controller_double import ControllerState, DoubleJob
from .harness import Harness


@pytest.fixture
def folder(own_places: Path) -> Path:
    return own_places / "here"


def test_a_move_that_is_refused_is_reported_and_not_tried_in_each_round(folder: Path) -> None:
    harness = Harness(folder)
    harness.submit("a")
    harness.submit("b", partition="spill")

    def refuse(*_: str) -> None:
        raise SchedulerRefused("head: Invalid account or account/partition combination")

    harness.controller.move = refuse  # type: ignore[method-assign]  # a fault
    agent = harness.agent(harness.cluster())
    for _ in range(10):
        agent.round()

    answer = harness.controller.load().jobs["a"].answer
    assert answer.startswith("stays: its move to spill was refused: head: Invalid account")
    assert _steps(harness).count("not-moved") == 1
    assert "joined" in _steps(harness)


def test_one_item_that_the_scheduler_refuses_stops_nothing_else(folder: Path) -> None:
    harness = Harness(folder)

    def mark_down(answer: ControllerState) -> None:
        answer.nodes["spill001"].state, answer.nodes["spill001"].reason = "down", "Not responding"

    harness.change(mark_down)
    harness.submit("a", nodes=3, partition="spill")

    def refuse(_: object) -> None:
        raise SchedulerRefused("head: Invalid node state specified")

    harness.controller.forget = refuse  # type: ignore[method-assign]  # a fault
    agent = harness.agent(harness.cluster())
    for _ in range(8):
        agent.round()

    assert "not-done" in _steps(harness)
    assert harness.controller.load().jobs["a"].started is not None


def test_of_very_many_jobs_those_are_reported_first_that_have_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "LOGGED_AT_ONCE", 2)
    harness = Harness(folder)
    for name in ("a", "b", "c"):
        harness.submit(name, partition="train", nodes=9)
    agent = harness.agent(harness.cluster())

    agent.round()
    assert [bool(job.answer) for job in _waiting(harness)] == [True, True, False]
    agent.round()

    assert all(job.answer for job in _waiting(harness))


def _waiting(harness: Harness) -> list[DoubleJob]:
    return [job for key, job in harness.controller.load().jobs.items() if key != "home"]


def _steps(harness: Harness) -> list[str]:
    return [each.what for each in harness.events]
