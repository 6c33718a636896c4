"""`up` takes the next purchase option where a cloud has no capacity; the cloud is a double."""

from __future__ import annotations

from contextlib import suppress

import pytest
from tests.lifecycle.cloud_double import (
    EC2_MESSAGE,
    NEXT,
    NODES,
    SPOT,
    Killed,
    PurchaseScenario,
    kill_at,
)

from gcluster.lifecycle.cluster.outcome import Exit, LifecycleError
from gcluster.lifecycle.cluster.progress import Finding, Progress
from gcluster.lifecycle.planning.purchase.decision import OptionOverrides
from gcluster.lifecycle.state import RunStarted
from gcluster.stacks.provider import ProviderError, SiteContext


def test_the_first_option_is_taken_where_it_has_capacity(purchase: PurchaseScenario) -> None:
    assert purchase.up().exit_code is Exit.OK
    assert purchase.cloud.on(SPOT) == NODES
    assert purchase.steps() == [(SPOT, "trying", "gpu[001-002]"), (SPOT, "held", "gpu[001-002]")]


def test_the_next_option_is_taken_where_the_first_has_none(purchase: PurchaseScenario) -> None:
    purchase.cloud.stock[SPOT] = 0
    attempts_text: list[Progress] = []
    assert purchase.up(attempts_text.append).exit_code is Exit.OK
    assert purchase.cloud.on(NEXT) == NODES
    [later] = [t.diagnostic for t in attempts_text if isinstance(t, Finding)]
    assert (later.code, later.summary) == (
        "GC954", f"pool gpu is bought on {NEXT}, not on its first option",
    )  # fmt: skip
    assert EC2_MESSAGE in later.detail


def test_nodes_of_two_options_never_share_a_pool(purchase: PurchaseScenario) -> None:
    purchase.cloud.stock[SPOT] = 1
    purchase.up()
    assert purchase.cloud.on(NEXT) == NODES
    assert purchase.cloud.on(SPOT) == []
    gpus = [
        {option for node, option in calls.items() if node in NODES}
        for calls in purchase.cloud.calls
    ]
    assert gpus == [{SPOT}, {""}, {NEXT}], "what came was taken back before the next option"


def test_mixed_keeps_what_came_and_queries_the_next_option_for_the_rest(
    purchase: PurchaseScenario,
) -> None:
    purchase.write(pool=", mixed: true")
    purchase.cloud.stock[SPOT] = 1
    assert purchase.up().exit_code is Exit.OK
    assert (purchase.cloud.on(SPOT), purchase.cloud.on(NEXT)) == (["gpu001"], ["gpu002"])


def test_a_second_up_changes_nothing_and_does_not_go_back(purchase: PurchaseScenario) -> None:
    purchase.cloud.stock[SPOT] = 0
    purchase.up()
    purchase.cloud.stock.clear()
    calls, steps = len(purchase.cloud.calls), purchase.steps()
    assert not purchase.up().changed
    assert (len(purchase.cloud.calls), purchase.steps()) == (calls, steps)
    assert purchase.cloud.on(NEXT) == NODES


def test_a_option_that_is_put_behind_replaces_nothing(purchase: PurchaseScenario) -> None:
    purchase.cloud.stock[SPOT] = 0
    purchase.up()
    purchase.write("spot, on-demand, {reservation: cr-0abc}")
    purchase.cloud.stock.clear()
    purchase.up()
    assert purchase.cloud.on(NEXT) == NODES


def test_a_option_that_the_spec_drops_is_left_for_the_first(purchase: PurchaseScenario) -> None:
    purchase.cloud.stock[SPOT] = 0
    purchase.up()
    purchase.write("{reservation: cr-0abc}, spot")
    purchase.up(allow="pool:gpu")
    assert purchase.cloud.on(NEXT) == []
    assert {r.partition("-")[0] for n, r in purchase.cloud.machines.items() if n in NODES} == {
        "reservation"
    }


def test_the_first_option_is_bought_again_only_when_the_pool_is_named(
    purchase: PurchaseScenario,
) -> None:
    purchase.cloud.stock[SPOT] = 0
    purchase.up()
    purchase.cloud.stock.clear()
    purchase.up(wishes=OptionOverrides(again=frozenset({"gpu"})))
    assert purchase.cloud.on(SPOT) == NODES


def test_where_all_options_end_nothing_is_left_and_each_is_reported_in_the_clouds_message(
    purchase: PurchaseScenario,
) -> None:
    purchase.cloud.stock = {SPOT: 1, NEXT: 1}
    result = purchase.up()
    assert result.exit_code is Exit.FAILED
    assert set(purchase.cloud.machines) == {"head"}
    [short] = [d for d in result.diagnostics if d.code == "GC953"]
    assert short.summary.endswith("has gpu[001-002]; none of it is left behind")
    assert short.detail.splitlines() == [
        f"{option}: refused: {EC2_MESSAGE}" for option in (SPOT, NEXT)
    ]
    assert "gcluster up" in short.hint


def test_a_later_up_begins_with_the_first_option_again(purchase: PurchaseScenario) -> None:
    purchase.cloud.stock = {SPOT: 0, NEXT: 0}
    purchase.up()
    purchase.cloud.stock.clear()
    assert purchase.up().exit_code is Exit.OK
    assert purchase.cloud.on(SPOT) == NODES


def test_a_quorum_keeps_what_one_option_gave(purchase: PurchaseScenario) -> None:
    purchase.write(count=3, pool=", quorum: 2")
    purchase.cloud.stock[SPOT] = 2
    result = purchase.up()
    assert result.exit_code is Exit.OK
    assert purchase.cloud.on(SPOT) == NODES
    assert purchase.cloud.on(NEXT) == []
    assert [d.severity for d in result.diagnostics if d.code == "GC953"] == ["warning"]


def test_growing_a_pool_replaces_no_machine_that_exists(purchase: PurchaseScenario) -> None:
    purchase.up()
    purchase.cloud.stock[SPOT] = 1
    purchase.write(count=4)
    result = purchase.up()
    assert purchase.cloud.on(SPOT) == NODES, "the third came and was taken back"
    assert purchase.cloud.on(NEXT) == []
    [short] = [d for d in result.diagnostics if d.code == "GC953"]
    assert short.summary.endswith("has gpu[003-004]; 2 of 4 nodes exist")
    assert "--from-first-option gpu" in short.hint


def test_spot_nodes_that_are_all_gone_continue_to_the_next_option(
    purchase: PurchaseScenario,
) -> None:
    purchase.up()
    purchase.cloud.put({"head": NEXT})  # the cloud took them back
    purchase.cloud.stock[SPOT] = 0
    assert purchase.up().exit_code is Exit.OK
    assert purchase.cloud.on(NEXT) == NODES


def test_a_option_dearer_than_the_budget_leaves_is_skipped(purchase: PurchaseScenario) -> None:
    purchase.write("spot, {spot_max_usd_per_hour: 20}", more="budget: {max_usd_per_hour: 50}")
    loaded = purchase.open().spec  # a bound above the ceiling is a warning: it may be cheaper
    assert loaded.budget is not None
    assert purchase.up().exit_code is Exit.OK
    assert purchase.cloud.most <= 50
    [skipped] = [step for step in purchase.steps() if step[1] == "skipped"]
    assert skipped[0] == SPOT
    [spot, limited] = next(
        x for x in purchase.plan().fallback_lists if x.pool == "gpu"
    ).purchase_options
    assert "budget.max_usd_per_hour leaves $49.19/h" in spot.reason
    assert limited.state == "stands"


@pytest.mark.parametrize("number", range(1, 6))
def test_killed_in_the_middle_it_continues_and_queries_no_option_twice(
    purchase: PurchaseScenario, number: int
) -> None:
    purchase.cloud.stock[SPOT] = 1
    kill_at(purchase, number)
    with suppress(Killed):
        purchase.up()
    assert purchase.up().exit_code is Exit.OK
    assert (purchase.cloud.on(SPOT), purchase.cloud.on(NEXT)) == ([], NODES)
    outcomes = [(option, outcome) for option, outcome, _ in purchase.steps()]
    assert outcomes.count((SPOT, "refused")) == 1
    assert outcomes.count((SPOT, "trying")) == 1


def test_after_it_was_taken_down_nothing_exists_any_more(purchase: PurchaseScenario) -> None:
    purchase.cloud.stock[SPOT] = 0
    purchase.up()
    purchase.open().events.append(RunStarted(command="down", spec_hash=""))
    purchase.cloud.put({})
    purchase.cloud.stock.clear()
    purchase.up()
    assert purchase.cloud.on(SPOT) == NODES


def test_the_plan_shows_where_a_pool_is_and_what_comes_after(
    purchase: PurchaseScenario,
) -> None:
    [view] = [x for x in purchase.plan().fallback_lists if x.pool == "gpu"]
    assert [(r.key, r.state, r.nodes) for r in view.purchase_options] == [
        (SPOT, "next", "gpu[001-002]"), (NEXT, "after", ""),
    ]  # fmt: skip
    assert view.purchase_options[1].usd_per_hour == pytest.approx(2 * 55.04)
    purchase.cloud.stock[SPOT] = 0
    purchase.up()
    [view] = [x for x in purchase.plan().fallback_lists if x.pool == "gpu"]
    assert [r.state for r in view.purchase_options] == ["after", "stands"]


def test_the_plan_s_costs_are_those_of_the_option_that_was_taken(
    purchase: PurchaseScenario,
) -> None:
    purchase.write("{spot_max_usd_per_hour: 20}, on-demand")
    spot = purchase.plan().fallback_lists[1].purchase_options[0].key
    head = 0.8064
    assert purchase.plan().usd_per_hour == pytest.approx(head + 2 * 20)
    purchase.cloud.stock[spot] = 0
    purchase.up()
    assert purchase.plan().usd_per_hour == pytest.approx(head + 2 * 55.04)


def test_an_error_other_than_capacity_tries_no_fallback_option(
    purchase: PurchaseScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    purchase.cloud.stock[SPOT] = 0
    purchase.cloud.message_of = lambda _: "VcpuLimitExceeded: You have requested more vCPU capacity"
    original = purchase.cloud.apply

    def refuse(context: SiteContext) -> None:
        try:
            original(context)
        except ProviderError as error:
            raise ProviderError(*error.diagnostics) from error

    monkeypatch.setattr(purchase.cloud, "apply", refuse)
    result = purchase.up()
    assert len(purchase.cloud.calls) == 1
    assert "GC961" in {d.code for d in result.diagnostics}


BLOCK = "buy-24h-use1-az4"
BUY = "{buy_capacity_block: 24h}"


def test_a_block_is_skipped_unless_it_is_requested_by_name(purchase: PurchaseScenario) -> None:
    purchase.write(f"{BUY}, on-demand")
    purchase.up()
    assert purchase.cloud.bought == []
    assert purchase.cloud.on(NEXT) == NODES
    [view] = [x for x in purchase.plan().fallback_lists if x.pool == "gpu"]
    assert "only with --buy-capacity-block gpu" in view.purchase_options[0].reason
    assert view.purchase_options[0].usd_at_once == pytest.approx(
        24 * 2 * (view.purchase_options[0].usd_per_hour or 0) / 2
    )


def test_a_block_is_bought_once_when_it_is_requested_by_name(purchase: PurchaseScenario) -> None:
    purchase.write(f"{BUY}, on-demand")
    purchase.up(wishes=OptionOverrides(buy=frozenset({"gpu"})))
    assert purchase.cloud.bought == [BLOCK]
    assert purchase.cloud.on(BLOCK) == NODES
    assert not purchase.up().changed
    assert purchase.cloud.bought == [BLOCK]


def test_the_block_that_is_bought_is_the_one_that_the_plan_showed(
    purchase: PurchaseScenario,
) -> None:
    purchase.write(f"{BUY}, on-demand")
    purchase.up(wishes=OptionOverrides(buy=frozenset({"gpu"})))
    assert purchase.shown is not None
    [view] = [x for x in purchase.shown.fallback_lists if x.pool == "gpu"]
    block, later = view.purchase_options
    assert (block.offering, block.usd_at_once) == ("cb-0abc in use1-az4", 2641.92)
    assert later.offering == ""
    assert purchase.cloud.offered == [("gpu", BLOCK)]


def test_a_pool_that_buys_nothing_has_the_cloud_requested_no_block(
    purchase: PurchaseScenario,
) -> None:
    purchase.write(f"{BUY}, on-demand")
    purchase.up()
    assert purchase.cloud.offered == []


def test_a_pool_whose_block_is_paid_is_not_moved_to_another_option(
    purchase: PurchaseScenario,
) -> None:
    purchase.write(f"{BUY}, on-demand")
    purchase.cloud.stock[BLOCK] = 1
    result = purchase.up(wishes=OptionOverrides(buy=frozenset({"gpu"})))
    assert result.exit_code is Exit.FAILED
    assert (purchase.cloud.on(BLOCK), purchase.cloud.on(NEXT)) == (["gpu001"], [])
    purchase.cloud.stock.clear()
    assert purchase.up().exit_code is Exit.OK, "no second purchase is needed"
    assert purchase.cloud.bought == [BLOCK]


def test_a_purchase_that_was_killed_is_not_recreated_unasked(purchase: PurchaseScenario) -> None:
    purchase.write(f"{BUY}, on-demand")
    kill_at(purchase, 3)
    with pytest.raises(Killed):
        purchase.up(wishes=OptionOverrides(buy=frozenset({"gpu"})))
    with pytest.raises(LifecycleError) as error:
        purchase.up()
    assert [d.code for d in error.value.diagnostics] == ["GC955"]
    assert purchase.cloud.bought == [BLOCK]


@pytest.mark.parametrize(
    ("wishes", "why"),
    [
        (OptionOverrides(buy=frozenset({"gpu"})), "buys no capacity block"),
        (OptionOverrides(buy=frozenset({"gpus"})), "buys no capacity block"),
        (OptionOverrides(again=frozenset({"gpus"})), "is no pool of a cloud"),
    ],
)
def test_a_pool_that_has_no_such_fallback_list_is_refused_by_name(
    wishes: OptionOverrides, why: str, purchase: PurchaseScenario
) -> None:
    with pytest.raises(LifecycleError) as error:
        purchase.up(wishes=wishes)
    assert error.value.exit_code is Exit.REFUSED
    assert why in error.value.diagnostics[0].summary
    assert purchase.cloud.calls == []
