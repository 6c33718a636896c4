"""A scheduler that is away for a moment is queried again; one that stays away holds every node."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from gcluster.lifecycle.operations.rolling import Rolled, Window, roll
from gcluster.lifecycle.operations.rolling.roll import SILENCE_S, Patient
from gcluster.lifecycle.scheduler.base import NodeUse, SchedulerSilent
from gcluster.schemas.spec import Update

from .scheduler import SchedulerDouble

NODES = ("gpu001", "gpu002")


class Away(SchedulerDouble):
    """Gives no answer to the looks between two times."""

    def __init__(self, since: float, until: float) -> None:
        """Begin with idle nodes; the times are seconds."""
        super().__init__(dict.fromkeys(NODES, 0.0))
        self.since, self.until = since, until

    def nodes(self, nodes: Collection[str]) -> Mapping[str, NodeUse]:
        """Return the use of each node, unless it is away."""
        if self.since <= self.time < self.until:
            raise SchedulerSilent("the connection was refused")
        return super().nodes(nodes)


def change(scheduler: Away) -> Rolled:
    window = Window(NODES, Update(max_unavailable=1), pool_size=2)
    return roll(
        (window,),
        Patient(scheduler, scheduler.clock),
        scheduler.work(frozenset()),
        why="run 1",
        emit=lambda _: None,
        clock=scheduler.clock,
    )


def test_a_scheduler_that_comes_back_is_waited_for() -> None:
    rolled = change(Away(0, SILENCE_S - 1))
    assert (set(rolled.changed), rolled.held) == (set(NODES), {})


def test_one_that_stays_away_holds_every_node_as_it_was() -> None:
    scheduler = Away(0, float("inf"))
    rolled = change(scheduler)
    assert rolled.held == dict.fromkeys(
        NODES, "the scheduler does not answer: the connection was refused"
    )
    assert (scheduler.reasons, rolled.changed) == ({}, ())
