"""Calls run concurrently with rounds: one may end, or emit an event, in the middle of a round."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

from gcluster.lifecycle.operations.burst.agent.ledger import BurstFold, NodeRecord
from gcluster.lifecycle.operations.burst.agent.operations import Places
from gcluster.lifecycle.operations.burst.agent.scheduler import NodeSeen, Seen

from .harness import BEGIN, Harness


class EndsWhenLookedAt:
    """A thread pool whose calls end in the next round, just before it lists the running ones."""

    def __init__(self) -> None:
        """Have no call."""
        self.calls: list[tuple[frozenset[str], Callable[[], object]]] = []
        self.new: list[tuple[frozenset[str], Callable[[], object]]] = []

    def start(self, nodes: Collection[str], call: Callable[[], object]) -> None:
        """Keep the call."""
        self.new.append((frozenset(nodes), call))

    def busy(self) -> frozenset[str]:
        """Let the calls end that were listed before."""
        ending, self.calls, self.new = self.calls, self.new, []
        for _, call in ending:
            call()
        return frozenset[str]().union(*(nodes for nodes, _ in self.calls))

    def raise_failures(self) -> None:
        """Raise nothing: errors come out of `busy`."""


def test_a_call_that_ends_in_the_middle_of_a_round_is_not_recreated(own_places: Path) -> None:
    harness = Harness(own_places / "here")
    harness.submit("a", partition="spill", run_s=30)
    agent = harness.agent(harness.cluster(), EndsWhenLookedAt())

    for _ in range(60):
        agent.round()
        if harness.is_over() and harness.events[-1].what == "gone":
            break

    assert [e.what for e in harness.events] == ["requested", "made", "joined", "leaving", "gone"]


def test_an_address_that_comes_while_others_are_checked_stops_no_round() -> None:
    places, fold = Places(), BurstFold()
    fold.nodes = {name: _joined(name) for name in ("spill001", "spill002")}
    places.learn([fold.nodes["spill001"]], {"spill001": "10.1.0.1"})

    class Meanwhile(dict[str, NodeSeen]):
        def get(self, name: str, default: object = None) -> NodeSeen | None:  # type: ignore[override]
            del default
            places.learn([fold.nodes["spill002"]], {"spill002": "10.1.0.2"})
            return self[name]

    here = NodeSeen(state="here", address="10.0.0.1")
    seen = Seen(now=BEGIN, nodes=Meanwhile(spill001=here, spill002=here))

    assert places.wrong(fold, seen) == {"spill001": "10.1.0.1"}


def test_a_name_that_is_used_again_is_queried_again() -> None:
    places, fold = Places(), BurstFold()
    fold.nodes = {"spill001": _joined("spill001")}
    places.learn([fold.nodes["spill001"]], {"spill001": "10.1.0.1"})
    assert places.unknown(fold) == ()

    fold.nodes = {"spill001": _joined("spill001", burst="two")}

    assert [each.node for each in places.unknown(fold)] == ["spill001"]


def _joined(node: str, burst: str = "one") -> NodeRecord:
    return NodeRecord(
        node=node, site="cloud", pool="spill", step="joined", burst=burst, option="",
        usd_per_hour=0, requested=BEGIN, until=None,
    )  # fmt: skip
