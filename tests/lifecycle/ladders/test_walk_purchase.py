"""A capacity block is bought by `up` only for a pool that is named, and once."""

from __future__ import annotations

import pytest
from tests.lifecycle.cloud_double import NEXT, NODES, Killed, WalkTrial, kill_at

from gcluster.lifecycle.ladders.standing import Wishes
from gcluster.lifecycle.outcome import Exit, LifecycleError

BLOCK = "buy-24h-use1-az4"
BUY = "{buy_capacity_block: 24h}"


def test_a_block_is_skipped_unless_it_is_asked_for_by_name(walk: WalkTrial) -> None:
    walk.write(f"{BUY}, on-demand")
    walk.up()
    assert walk.cloud.bought == []
    assert walk.cloud.on(NEXT) == NODES
    [view] = [x for x in walk.plan().ladders if x.pool == "gpu"]
    assert "only with --buy-capacity-block gpu" in view.rungs[0].reason
    assert view.rungs[0].usd_at_once == pytest.approx(
        24 * 2 * (view.rungs[0].usd_per_hour or 0) / 2
    )


def test_a_block_is_bought_once_when_it_is_asked_for_by_name(walk: WalkTrial) -> None:
    walk.write(f"{BUY}, on-demand")
    walk.up(wishes=Wishes(buy=frozenset({"gpu"})))
    assert walk.cloud.bought == [BLOCK]
    assert walk.cloud.on(BLOCK) == NODES
    assert not walk.up().changed
    assert walk.cloud.bought == [BLOCK]


def test_a_pool_whose_block_is_paid_is_not_moved_to_another_rung(walk: WalkTrial) -> None:
    walk.write(f"{BUY}, on-demand")
    walk.cloud.stock[BLOCK] = 1
    result = walk.up(wishes=Wishes(buy=frozenset({"gpu"})))
    assert result.exit_code is Exit.FAILED
    assert (walk.cloud.on(BLOCK), walk.cloud.on(NEXT)) == (["gpu001"], [])
    walk.cloud.stock.clear()
    assert walk.up().exit_code is Exit.OK, "no second purchase is needed"
    assert walk.cloud.bought == [BLOCK]


def test_a_purchase_that_was_killed_is_not_made_again_unasked(walk: WalkTrial) -> None:
    walk.write(f"{BUY}, on-demand")
    kill_at(walk, 3)
    with pytest.raises(Killed):
        walk.up(wishes=Wishes(buy=frozenset({"gpu"})))
    with pytest.raises(LifecycleError) as error:
        walk.up()
    assert [d.code for d in error.value.diagnostics] == ["GC955"]
    assert walk.cloud.bought == [BLOCK]


@pytest.mark.parametrize(
    ("wishes", "why"),
    [
        (Wishes(buy=frozenset({"gpu"})), "buys no capacity block"),
        (Wishes(buy=frozenset({"gpus"})), "buys no capacity block"),
        (Wishes(again=frozenset({"gpus"})), "is no pool of a cloud"),
    ],
)
def test_a_pool_that_has_no_such_ladder_is_refused_by_name(
    wishes: Wishes, why: str, walk: WalkTrial
) -> None:
    with pytest.raises(LifecycleError) as error:
        walk.up(wishes=wishes)
    assert error.value.exit_code is Exit.REFUSED
    assert why in error.value.diagnostics[0].summary
    assert walk.cloud.asked == []
