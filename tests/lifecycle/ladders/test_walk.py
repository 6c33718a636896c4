"""`up` walks a pool's ladder where a cloud has no capacity; the cloud here is a double."""

from __future__ import annotations

from contextlib import suppress

import pytest
from tests.lifecycle.cloud_double import EC2_SAID, NEXT, NODES, SPOT, Killed, WalkTrial, kill_at

from gcluster.lifecycle.ladders.standing import Wishes
from gcluster.lifecycle.outcome import Exit
from gcluster.lifecycle.progress import Finding, Progress
from gcluster.lifecycle.state import RunStarted
from gcluster.stacks.provider import ProviderError, SiteContext


def test_the_first_rung_is_taken_where_it_has_capacity(walk: WalkTrial) -> None:
    assert walk.up().exit_code is Exit.OK
    assert walk.cloud.on(SPOT) == NODES
    assert walk.steps() == [(SPOT, "trying", "gpu[001-002]"), (SPOT, "held", "gpu[001-002]")]


def test_the_next_rung_is_taken_where_the_first_has_none(walk: WalkTrial) -> None:
    walk.cloud.stock[SPOT] = 0
    told: list[Progress] = []
    assert walk.up(told.append).exit_code is Exit.OK
    assert walk.cloud.on(NEXT) == NODES
    [later] = [t.diagnostic for t in told if isinstance(t, Finding)]
    assert (later.code, later.summary) == (
        "GC954", f"pool gpu is bought on {NEXT}, not on its first rung",
    )  # fmt: skip
    assert EC2_SAID in later.detail


def test_nodes_of_two_rungs_never_stand_together(walk: WalkTrial) -> None:
    walk.cloud.stock[SPOT] = 1
    walk.up()
    assert walk.cloud.on(NEXT) == NODES
    assert walk.cloud.on(SPOT) == []
    gpus = [{rung for node, rung in asked.items() if node in NODES} for asked in walk.cloud.asked]
    assert gpus == [{SPOT}, {""}, {NEXT}], "what came was taken back before the next rung"


def test_mixed_keeps_what_came_and_asks_the_next_rung_for_the_rest(walk: WalkTrial) -> None:
    walk.write(pool=", mixed: true")
    walk.cloud.stock[SPOT] = 1
    assert walk.up().exit_code is Exit.OK
    assert (walk.cloud.on(SPOT), walk.cloud.on(NEXT)) == (["gpu001"], ["gpu002"])


def test_a_second_up_changes_nothing_and_does_not_go_back(walk: WalkTrial) -> None:
    walk.cloud.stock[SPOT] = 0
    walk.up()
    walk.cloud.stock.clear()
    asked, steps = len(walk.cloud.asked), walk.steps()
    assert not walk.up().changed
    assert (len(walk.cloud.asked), walk.steps()) == (asked, steps)
    assert walk.cloud.on(NEXT) == NODES


def test_a_rung_that_is_put_behind_replaces_nothing(walk: WalkTrial) -> None:
    walk.cloud.stock[SPOT] = 0
    walk.up()
    walk.write("spot, on-demand, {reservation: cr-0abc}")
    walk.cloud.stock.clear()
    walk.up()
    assert walk.cloud.on(NEXT) == NODES


def test_a_rung_that_the_spec_drops_is_left_for_the_first(walk: WalkTrial) -> None:
    walk.cloud.stock[SPOT] = 0
    walk.up()
    walk.write("{reservation: cr-0abc}, spot")
    walk.up(allow="pool:gpu")
    assert walk.cloud.on(NEXT) == []
    assert {r.partition("-")[0] for n, r in walk.cloud.machines.items() if n in NODES} == {
        "reservation"
    }


def test_the_first_rung_is_bought_again_only_when_the_pool_is_named(walk: WalkTrial) -> None:
    walk.cloud.stock[SPOT] = 0
    walk.up()
    walk.cloud.stock.clear()
    walk.up(wishes=Wishes(again=frozenset({"gpu"})))
    assert walk.cloud.on(SPOT) == NODES


def test_where_all_rungs_end_nothing_is_left_and_each_is_told_in_the_clouds_words(
    walk: WalkTrial,
) -> None:
    walk.cloud.stock = {SPOT: 1, NEXT: 1}
    result = walk.up()
    assert result.exit_code is Exit.FAILED
    assert set(walk.cloud.machines) == {"head"}
    [short] = [d for d in result.diagnostics if d.code == "GC953"]
    assert short.summary.endswith("has gpu[001-002]; none of it is left behind")
    assert short.detail.splitlines() == [f"{rung}: refused: {EC2_SAID}" for rung in (SPOT, NEXT)]
    assert "gcluster up" in short.hint


def test_a_later_up_begins_with_the_first_rung_again(walk: WalkTrial) -> None:
    walk.cloud.stock = {SPOT: 0, NEXT: 0}
    walk.up()
    walk.cloud.stock.clear()
    assert walk.up().exit_code is Exit.OK
    assert walk.cloud.on(SPOT) == NODES


def test_a_quorum_keeps_what_one_rung_gave(walk: WalkTrial) -> None:
    walk.write(count=3, pool=", quorum: 2")
    walk.cloud.stock[SPOT] = 2
    result = walk.up()
    assert result.exit_code is Exit.OK
    assert walk.cloud.on(SPOT) == NODES
    assert walk.cloud.on(NEXT) == []
    assert [d.severity for d in result.diagnostics if d.code == "GC953"] == ["warning"]


def test_growing_a_pool_replaces_no_machine_that_stands(walk: WalkTrial) -> None:
    walk.up()
    walk.cloud.stock[SPOT] = 1
    walk.write(count=4)
    result = walk.up()
    assert walk.cloud.on(SPOT) == NODES, "the third came and was taken back"
    assert walk.cloud.on(NEXT) == []
    [short] = [d for d in result.diagnostics if d.code == "GC953"]
    assert short.summary.endswith("has gpu[003-004]; 2 of 4 nodes stand")
    assert "--first-rung gpu" in short.hint


def test_spot_nodes_that_are_all_gone_go_on_to_the_next_rung(walk: WalkTrial) -> None:
    walk.up()
    walk.cloud.put({"head": NEXT})  # the cloud took them back
    walk.cloud.stock[SPOT] = 0
    assert walk.up().exit_code is Exit.OK
    assert walk.cloud.on(NEXT) == NODES


def test_a_rung_dearer_than_the_budget_leaves_is_skipped(walk: WalkTrial) -> None:
    walk.write("spot, {spot_max_usd_per_hour: 20}", more="budget: {max_usd_per_hour: 50}")
    loaded = walk.open().spec  # a bound above the ceiling is a warning: it may be cheaper
    assert loaded.budget is not None
    assert walk.up().exit_code is Exit.OK
    assert walk.cloud.most <= 50
    [skipped] = [step for step in walk.steps() if step[1] == "skipped"]
    assert skipped[0] == SPOT
    [spot, limited] = next(x for x in walk.plan().ladders if x.pool == "gpu").rungs
    assert "budget.max_usd_per_hour leaves $49.19/h" in spot.reason
    assert limited.state == "stands"


@pytest.mark.parametrize("number", range(1, 6))
def test_killed_in_the_middle_it_goes_on_and_asks_no_rung_twice(
    walk: WalkTrial, number: int
) -> None:
    walk.cloud.stock[SPOT] = 1
    kill_at(walk, number)
    with suppress(Killed):
        walk.up()
    assert walk.up().exit_code is Exit.OK
    assert (walk.cloud.on(SPOT), walk.cloud.on(NEXT)) == ([], NODES)
    outcomes = [(rung, outcome) for rung, outcome, _ in walk.steps()]
    assert outcomes.count((SPOT, "refused")) == 1
    assert outcomes.count((SPOT, "trying")) == 1


def test_after_it_was_taken_down_nothing_stands_any_more(walk: WalkTrial) -> None:
    walk.cloud.stock[SPOT] = 0
    walk.up()
    walk.open().events.append(RunStarted(command="down", spec_hash=""))
    walk.cloud.put({})
    walk.cloud.stock.clear()
    walk.up()
    assert walk.cloud.on(SPOT) == NODES


def test_the_plan_shows_where_a_pool_stands_and_what_comes_after(walk: WalkTrial) -> None:
    [view] = [x for x in walk.plan().ladders if x.pool == "gpu"]
    assert [(r.key, r.state, r.nodes) for r in view.rungs] == [
        (SPOT, "next", "gpu[001-002]"), (NEXT, "after", ""),
    ]  # fmt: skip
    assert view.rungs[1].usd_per_hour == pytest.approx(2 * 55.04)
    walk.cloud.stock[SPOT] = 0
    walk.up()
    [view] = [x for x in walk.plan().ladders if x.pool == "gpu"]
    assert [r.state for r in view.rungs] == ["after", "stands"]


def test_the_plans_money_is_that_of_the_rung_that_was_taken(walk: WalkTrial) -> None:
    walk.write("{spot_max_usd_per_hour: 20}, on-demand")
    spot = walk.plan().ladders[1].rungs[0].key
    head = 0.8064
    assert walk.plan().usd_per_hour == pytest.approx(head + 2 * 20)
    walk.cloud.stock[spot] = 0
    walk.up()
    assert walk.plan().usd_per_hour == pytest.approx(head + 2 * 55.04)


def test_what_is_no_lack_of_capacity_walks_no_ladder(
    walk: WalkTrial, monkeypatch: pytest.MonkeyPatch
) -> None:
    walk.cloud.stock[SPOT] = 0
    walk.cloud.says = lambda _: "VcpuLimitExceeded: You have requested more vCPU capacity"
    original = walk.cloud.apply

    def refuse(context: SiteContext) -> None:
        try:
            original(context)
        except ProviderError as error:
            raise ProviderError(*error.diagnostics) from error

    monkeypatch.setattr(walk.cloud, "apply", refuse)
    result = walk.up()
    assert len(walk.cloud.asked) == 1
    assert "GC961" in {d.code for d in result.diagnostics}
