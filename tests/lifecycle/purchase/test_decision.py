"""Laws of the decision which option a pool is bought on next, whatever a cloud answers."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from gcluster.lifecycle.planning.purchase.decision import (
    Attempt,
    Blocked,
    Complete,
    Exhausted,
    Headroom,
    PoolFallback,
    PurchaseProgress,
    Release,
    decide,
    keep_or_release,
    options_after,
    prune_to_spec,
)
from gcluster.lifecycle.state.event_types import PurchaseAttempted, PurchaseOutcome
from gcluster.schemas.derived.hostlist import fold
from gcluster.stacks.provider import PurchaseOption

_PRICES = st.none() | st.integers(0, 40).map(float)


@st.composite
def fallbacks(draw: st.DrawFn) -> PoolFallback:
    nodes = tuple(f"gpu{n:03d}" for n in range(1, draw(st.integers(1, 5)) + 1))
    offers = tuple(
        PurchaseOption(
            key=f"option-{number}",
            market="spot",
            usd_per_hour=draw(_PRICES),
            buy_hours=draw(st.sampled_from([None, None, None, 24])),
            whole=draw(st.sampled_from(["", "", "", "in one piece"])),
        )
        for number in range(draw(st.integers(1, 5)))
    )
    return PoolFallback(
        pool="gpu",
        site="east",
        nodes=nodes,
        options=offers,
        mixed=draw(st.booleans()),
        quorum=draw(st.none() | st.integers(1, len(nodes))),
        elastic=draw(st.integers(0, 3)),
    )


@st.composite
def progress_by_pool(draw: st.DrawFn, fallback: PoolFallback) -> PurchaseProgress:
    """Return a pool that exists already, in part or whole; unless it mixes, on one option."""
    held = draw(st.sets(st.sampled_from(fallback.nodes)))
    keys = [option.key for option in fallback.options]
    one = draw(st.sampled_from(keys))
    where = {n: draw(st.sampled_from(keys)) if fallback.mixes else one for n in sorted(held)}
    return PurchaseProgress(site="east", held=where)


class PurchaseRun:
    """One progress to its end, against a cloud that gives what it is drawn to give."""

    def __init__(
        self,
        fallback: PoolFallback,
        progress: PurchaseProgress,
        *,
        headroom: tuple[Headroom, ...],
        buys: bool,
        gives: Callable[[str, str], bool],
        killed: Callable[[], bool] = lambda: False,
    ) -> None:
        """PurchaseProgress it; `gives` says of (option, node) whether the node comes."""
        self.fallback, self.progress, self.before = fallback, progress, progress
        self.tries: list[str] = []
        self.stood: list[dict[str, str]] = []
        self.there = dict(progress.held)
        """What exists in the cloud."""
        for _ in range(4 * len(fallback.options) + 8):
            decision = decide(fallback, self.progress, headroom=headroom, buys=buys)
            self.end = decision
            if isinstance(decision, Complete | Exhausted | Blocked):
                self._skip(decision)
                return
            self._skip(decision)
            self._make(options_after(fallback, self.progress, decision), gives)
            if isinstance(decision, Release):
                self._step("taken-back", "", decision.nodes)
                continue
            if not self.progress.trying:
                self.tries.append(decision.option.key)
            self._step("trying", decision.option.key, decision.nodes)
            if killed() and (decision.option.buy_hours is None or buys):
                continue  # what came is not recorded: the next process requests the same
            self._answer(decision)
        raise AssertionError("the progress does not end")

    def _answer(self, decision: Attempt) -> None:
        key = decision.option.key
        lacking = frozenset(n for n in decision.nodes if self.there.get(n) != key)
        if decision.option.buy_hours is not None and not self.progress.paid:
            self._step("bought", key)
        if not lacking:
            self._step("held", key, decision.nodes)
            return
        kept, loose = keep_or_release(self.fallback, self.progress, lacking)
        if kept:
            self._step("held", key, kept)
        self._step("refused", key, tuple(sorted(lacking)), loose=loose)

    def _make(self, on: dict[str, str], gives: Callable[[str, str], bool]) -> None:
        """Do what a provider does: nodes that are elsewhere go, and come where there is room."""
        for node, option in on.items():
            if self.there.get(node, "") == option:
                continue
            self.there.pop(node, None)
            if option and gives(option, node):
                self.there[node] = option
        self.stood.append(dict(self.there))

    def _skip(self, decision: Complete | Attempt | Release | Exhausted | Blocked) -> None:
        for skipped in getattr(decision, "skipped", ()):
            self._step("skipped", skipped.option)

    def _step(
        self,
        outcome: PurchaseOutcome,
        option: str,
        nodes: tuple[str, ...] = (),
        loose: tuple[str, ...] = (),
    ) -> None:
        step = PurchaseAttempted(
            site="east",
            pool="gpu",
            option=option,
            outcome=outcome,
            nodes=fold(nodes) if nodes else "",
            loose=fold(loose) if loose else "",
        )
        stored = msgspec.json.decode(msgspec.json.encode(step), type=PurchaseAttempted)
        self.progress = self.progress.after(stored)


@st.composite
def runs(draw: st.DrawFn) -> PurchaseRun:
    fallback = draw(fallbacks())
    progress = draw(progress_by_pool(fallback))
    answers: dict[tuple[str, str], bool] = {}

    def gives(option: str, node: str) -> bool:
        return answers.setdefault((option, node), draw(st.booleans()))

    kills = iter(draw(st.lists(st.booleans(), max_size=3)))
    room = draw(st.none() | st.integers(0, 150).map(float))
    return PurchaseRun(
        fallback,
        progress,
        headroom=() if room is None else (Headroom(ceiling="budget", usd_per_hour=room),),
        buys=draw(st.booleans()),
        gives=gives,
        killed=lambda: next(kills, False),
    )


@given(runs())
def test_a_purchase_ends_and_queries_each_option_at_most_once(run: PurchaseRun) -> None:
    assert len(run.tries) == len(set(run.tries))
    order = [option.key for option in run.fallback.options]
    assert run.tries == sorted(run.tries, key=order.index)


@given(runs())
def test_nodes_of_several_options_share_a_pool_only_where_it_is_allowed(run: PurchaseRun) -> None:
    if not run.fallback.mixes:
        assert all(len(set(there.values())) <= 1 for there in run.stood)


@given(runs())
def test_half_a_pool_is_left_only_where_a_quorum_accepts_it(run: PurchaseRun) -> None:
    new = run.there.keys() - run.before.held.keys()
    if new and not run.progress.paid:
        assert run.fallback.suffices(len(run.there))


@given(runs())
def test_machines_that_existed_before_are_where_they_were(run: PurchaseRun) -> None:
    assert run.there.items() >= run.before.held.items()


@given(runs())
def test_what_is_recorded_is_what_is_there(run: PurchaseRun) -> None:
    if not isinstance(run.end, Blocked):
        assert run.progress.held == run.there
        assert not run.progress.loose


@given(st.data())
def test_no_machines_exist_above_a_ceiling(data: st.DataObject) -> None:
    fallback = data.draw(fallbacks())
    room = data.draw(st.integers(0, 150).map(float))
    run = PurchaseRun(
        fallback,
        PurchaseProgress(site="east"),
        headroom=(Headroom(ceiling="budget", usd_per_hour=room),),
        buys=True,
        gives=lambda *_: data.draw(st.booleans()),
    )
    for there in run.stood:
        costs = fallback.usd_per_hour(there, 0.0)
        assert costs is not None, "an unknown price was asked for under a ceiling"
        assert costs <= room + 0.01


@given(st.data())
def test_no_block_is_bought_that_was_not_named(data: st.DataObject) -> None:
    fallback = data.draw(fallbacks())
    run = PurchaseRun(
        fallback,
        PurchaseProgress(site="east"),
        headroom=(),
        buys=False,
        gives=lambda *_: data.draw(st.booleans()),
    )
    blocks = {option.key for option in fallback.options if option.buy_hours is not None}
    assert not blocks & set(run.tries)


@given(st.data())
def test_where_there_is_capacity_the_first_affordable_option_is_taken(data: st.DataObject) -> None:
    fallback = data.draw(fallbacks())
    run = PurchaseRun(
        fallback, PurchaseProgress(site="east"), headroom=(), buys=True, gives=lambda *_: True
    )
    assert isinstance(run.end, Complete)
    assert set(run.there.values()) == {fallback.options[0].key}


def _fallback_list(*keys: str, nodes: int = 2) -> PoolFallback:
    return PoolFallback(
        pool="gpu",
        site="east",
        nodes=tuple(f"gpu{n:03d}" for n in range(1, nodes + 1)),
        options=tuple(PurchaseOption(key=key, market="spot", usd_per_hour=1.0) for key in keys),
    )


def test_a_option_keeps_its_nodes_wherever_the_fallback_list_has_it_now() -> None:
    progress = PurchaseProgress(site="east", held={"gpu001": "b", "gpu002": "b"})
    for fallback in (
        _fallback_list("a", "b"),
        _fallback_list("b", "a"),
        _fallback_list("c", "b", "a"),
    ):
        assert isinstance(decide(fallback, prune_to_spec(fallback, progress)), Complete)


def test_a_option_that_the_fallback_list_lost_holds_nothing() -> None:
    fallback = _fallback_list("a")
    progress = prune_to_spec(
        fallback, PurchaseProgress(site="east", held={"gpu001": "b", "gpu002": "b"}, trying="b")
    )
    decision = decide(fallback, progress)
    assert isinstance(decision, Attempt)
    assert (decision.option.key, decision.nodes) == ("a", fallback.nodes)


def test_an_unknown_price_is_over_a_ceiling_and_reports_it() -> None:
    unknown = PurchaseOption(key="a", market="spot", usd_per_hour=None)
    fallback = msgspec.structs.replace(_fallback_list("b"), options=(unknown,))
    room = Headroom(ceiling="budget.max_usd_per_hour", usd_per_hour=1e9)
    assert isinstance(decide(fallback, PurchaseProgress(site="east")), Attempt)
    ended = decide(fallback, PurchaseProgress(site="east"), headroom=(room,))
    assert isinstance(ended, Exhausted)
    assert (
        ended.skipped[0].reason == "its price is unknown, and budget.max_usd_per_hour is a ceiling"
    )
