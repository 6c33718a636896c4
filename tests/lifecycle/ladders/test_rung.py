"""Laws of the decision which rung a pool is bought on next, whatever a cloud answers."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from gcluster.lifecycle.ladders.rung import (
    Blocked,
    GiveUp,
    Hold,
    PoolLadder,
    Room,
    TakeBack,
    Try,
    at_home,
    decide,
    rungs_after,
    sorted_out,
)
from gcluster.lifecycle.state.event_types import RungOutcome, RungTried
from gcluster.lifecycle.state.rungs import Walk
from gcluster.schemas.derived.hostlist import fold
from gcluster.stacks.provider import PurchaseOption

_PRICES = st.none() | st.integers(0, 40).map(float)


@st.composite
def ladders(draw: st.DrawFn) -> PoolLadder:
    nodes = tuple(f"gpu{n:03d}" for n in range(1, draw(st.integers(1, 5)) + 1))
    offers = tuple(
        PurchaseOption(
            key=f"rung-{number}",
            market="spot",
            usd_per_hour=draw(_PRICES),
            buy_hours=draw(st.sampled_from([None, None, None, 24])),
            whole=draw(st.sampled_from(["", "", "", "in one piece"])),
        )
        for number in range(draw(st.integers(1, 5)))
    )
    return PoolLadder(
        pool="gpu",
        site="east",
        nodes=nodes,
        rungs=offers,
        mixed=draw(st.booleans()),
        quorum=draw(st.none() | st.integers(1, len(nodes))),
        elastic=draw(st.integers(0, 3)),
    )


@st.composite
def walks(draw: st.DrawFn, ladder: PoolLadder) -> Walk:
    """Return a pool that stands already, in part or whole; unless it mixes, on one rung."""
    standing = draw(st.sets(st.sampled_from(ladder.nodes)))
    keys = [rung.key for rung in ladder.rungs]
    one = draw(st.sampled_from(keys))
    where = {n: draw(st.sampled_from(keys)) if ladder.mixes else one for n in sorted(standing)}
    return Walk(site="east", standing=where)


class Story:
    """One walk to its end, against a cloud that gives what it is drawn to give."""

    def __init__(
        self,
        ladder: PoolLadder,
        walk: Walk,
        *,
        rooms: tuple[Room, ...],
        buys: bool,
        gives: Callable[[str, str], bool],
        killed: Callable[[], bool] = lambda: False,
    ) -> None:
        """Walk it; `gives` says of (rung, node) whether the node comes."""
        self.ladder, self.walk, self.before = ladder, walk, walk
        self.tries: list[str] = []
        self.stood: list[dict[str, str]] = []
        self.there = dict(walk.standing)
        """What exists in the cloud."""
        for _ in range(4 * len(ladder.rungs) + 8):
            decision = decide(ladder, self.walk, rooms=rooms, buys=buys)
            self.end = decision
            if isinstance(decision, Hold | GiveUp | Blocked):
                self._skip(decision)
                return
            self._skip(decision)
            self._make(rungs_after(ladder, self.walk, decision), gives)
            if isinstance(decision, TakeBack):
                self._step("taken-back", "", decision.nodes)
                continue
            if not self.walk.trying:
                self.tries.append(decision.rung.key)
            self._step("trying", decision.rung.key, decision.nodes)
            if killed() and (decision.rung.buy_hours is None or buys):
                continue  # what came is not recorded: the next process asks for the same
            self._answer(decision)
        raise AssertionError("the walk does not end")

    def _answer(self, decision: Try) -> None:
        key = decision.rung.key
        lacking = frozenset(n for n in decision.nodes if self.there.get(n) != key)
        if decision.rung.buy_hours is not None and not self.walk.paid:
            self._step("bought", key)
        if not lacking:
            self._step("held", key, decision.nodes)
            return
        kept, loose = sorted_out(self.ladder, self.walk, lacking)
        if kept:
            self._step("held", key, kept)
        self._step("refused", key, tuple(sorted(lacking)), loose=loose)

    def _make(self, on: dict[str, str], gives: Callable[[str, str], bool]) -> None:
        """Do what a provider does: nodes that are elsewhere go, and come where there is room."""
        for node, rung in on.items():
            if self.there.get(node, "") == rung:
                continue
            self.there.pop(node, None)
            if rung and gives(rung, node):
                self.there[node] = rung
        self.stood.append(dict(self.there))

    def _skip(self, decision: Hold | Try | TakeBack | GiveUp | Blocked) -> None:
        for skipped in getattr(decision, "skipped", ()):
            self._step("skipped", skipped.rung)

    def _step(
        self,
        outcome: RungOutcome,
        rung: str,
        nodes: tuple[str, ...] = (),
        loose: tuple[str, ...] = (),
    ) -> None:
        step = RungTried(
            site="east",
            pool="gpu",
            rung=rung,
            outcome=outcome,
            nodes=fold(nodes) if nodes else "",
            loose=fold(loose) if loose else "",
        )
        stored = msgspec.json.decode(msgspec.json.encode(step), type=RungTried)
        self.walk = self.walk.after(stored)


@st.composite
def stories(draw: st.DrawFn) -> Story:
    ladder = draw(ladders())
    walk = draw(walks(ladder))
    answers: dict[tuple[str, str], bool] = {}

    def gives(rung: str, node: str) -> bool:
        return answers.setdefault((rung, node), draw(st.booleans()))

    kills = iter(draw(st.lists(st.booleans(), max_size=3)))
    room = draw(st.none() | st.integers(0, 150).map(float))
    return Story(
        ladder,
        walk,
        rooms=() if room is None else (Room(ceiling="budget", usd_per_hour=room),),
        buys=draw(st.booleans()),
        gives=gives,
        killed=lambda: next(kills, False),
    )


@given(stories())
def test_a_walk_ends_and_asks_each_rung_at_most_once(story: Story) -> None:
    assert len(story.tries) == len(set(story.tries))
    order = [rung.key for rung in story.ladder.rungs]
    assert story.tries == sorted(story.tries, key=order.index)


@given(stories())
def test_nodes_of_several_rungs_stand_together_only_where_it_was_asked_for(story: Story) -> None:
    if not story.ladder.mixes:
        assert all(len(set(there.values())) <= 1 for there in story.stood)


@given(stories())
def test_half_a_pool_is_left_only_where_a_quorum_accepts_it(story: Story) -> None:
    new = story.there.keys() - story.before.standing.keys()
    if new and not story.walk.paid:
        assert story.ladder.suffices(len(story.there))


@given(stories())
def test_machines_that_stood_before_are_where_they_were(story: Story) -> None:
    assert story.there.items() >= story.before.standing.items()


@given(stories())
def test_what_is_recorded_is_what_is_there(story: Story) -> None:
    if not isinstance(story.end, Blocked):
        assert story.walk.standing == story.there
        assert not story.walk.loose


@given(st.data())
def test_no_machines_stand_above_a_ceiling(data: st.DataObject) -> None:
    ladder = data.draw(ladders())
    room = data.draw(st.integers(0, 150).map(float))
    story = Story(
        ladder,
        Walk(site="east"),
        rooms=(Room(ceiling="budget", usd_per_hour=room),),
        buys=True,
        gives=lambda *_: data.draw(st.booleans()),
    )
    for there in story.stood:
        costs = ladder.usd_per_hour(there, 0.0)
        assert costs is not None, "an unknown price was asked for under a ceiling"
        assert costs <= room + 0.01


@given(st.data())
def test_no_block_is_bought_that_nobody_named(data: st.DataObject) -> None:
    ladder = data.draw(ladders())
    story = Story(
        ladder,
        Walk(site="east"),
        rooms=(),
        buys=False,
        gives=lambda *_: data.draw(st.booleans()),
    )
    blocks = {rung.key for rung in ladder.rungs if rung.buy_hours is not None}
    assert not blocks & set(story.tries)


@given(st.data())
def test_where_there_is_capacity_the_first_affordable_rung_is_taken(data: st.DataObject) -> None:
    ladder = data.draw(ladders())
    story = Story(ladder, Walk(site="east"), rooms=(), buys=True, gives=lambda *_: True)
    assert isinstance(story.end, Hold)
    assert set(story.there.values()) == {ladder.rungs[0].key}


def _ladder(*keys: str, nodes: int = 2) -> PoolLadder:
    return PoolLadder(
        pool="gpu",
        site="east",
        nodes=tuple(f"gpu{n:03d}" for n in range(1, nodes + 1)),
        rungs=tuple(PurchaseOption(key=key, market="spot", usd_per_hour=1.0) for key in keys),
    )


def test_a_rung_keeps_its_nodes_wherever_the_ladder_has_it_now() -> None:
    walk = Walk(site="east", standing={"gpu001": "b", "gpu002": "b"})
    for ladder in (_ladder("a", "b"), _ladder("b", "a"), _ladder("c", "b", "a")):
        assert isinstance(decide(ladder, at_home(ladder, walk)), Hold)


def test_a_rung_that_the_ladder_lost_holds_nothing() -> None:
    ladder = _ladder("a")
    walk = at_home(ladder, Walk(site="east", standing={"gpu001": "b", "gpu002": "b"}, trying="b"))
    decision = decide(ladder, walk)
    assert isinstance(decision, Try)
    assert (decision.rung.key, decision.nodes) == ("a", ladder.nodes)


def test_an_unknown_price_is_over_a_ceiling_and_says_so() -> None:
    unknown = PurchaseOption(key="a", market="spot", usd_per_hour=None)
    ladder = msgspec.structs.replace(_ladder("b"), rungs=(unknown,))
    room = Room(ceiling="budget.max_usd_per_hour", usd_per_hour=1e9)
    assert isinstance(decide(ladder, Walk(site="east")), Try)
    ended = decide(ladder, Walk(site="east"), rooms=(room,))
    assert isinstance(ended, GiveUp)
    assert (
        ended.skipped[0].reason == "its price is unknown, and budget.max_usd_per_hour is a ceiling"
    )
