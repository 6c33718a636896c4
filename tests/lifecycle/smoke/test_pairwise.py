"""Slow nodes and links are found by differences among pairs; the bandwidths are made up."""

from __future__ import annotations

from collections.abc import Collection
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcluster.lifecycle.smoke.bisect import Fault
from gcluster.lifecycle.smoke.pairwise import PARTNERS, Pair, pair_rounds, slow_parts, suspects

HEALTHY, HALF = 48.0, 24.0


def names(count: int) -> list[str]:
    return [f"n{number:03d}" for number in range(count)]


def measured(
    nodes: list[str], bad: Collection[str] = (), links: Collection[frozenset[str]] = ()
) -> dict[Pair, float]:
    """Return what the pairs reach: half where a rail is dead, and a few percent apart."""
    pairs = [pair for pairs in pair_rounds(nodes) for pair in pairs]
    return {
        pair: (HALF if set(pair) & set(bad) or frozenset(pair) in links else HEALTHY)
        * (1 - 0.03 * (number % 7) / 7)
        for number, pair in enumerate(pairs)
    }


@given(st.integers(2, 130))
def test_each_node_meets_others_once_and_is_in_one_pair_at_a_time(count: int) -> None:
    rounds = pair_rounds(names(count))
    met = [frozenset(pair) for pairs in rounds for pair in pairs]
    assert len(met) == len(set(met))
    assert len(rounds) == min(PARTNERS, count - 1 + count % 2)
    for pairs in rounds:
        assert len({node for pair in pairs for node in pair}) == 2 * len(pairs) == count - count % 2


@given(st.data(), st.integers(5, 80))
def test_the_nodes_common_to_slow_pairs_are_named_and_no_others(
    data: st.DataObject, count: int
) -> None:
    nodes = names(count)
    bad = data.draw(st.sets(st.sampled_from(nodes), max_size=min(2, count // 4)))
    speeds = measured(nodes, bad)
    assert slow_parts(speeds) == tuple(Fault(kind="node", nodes=(node,)) for node in sorted(bad))


def test_a_link_between_two_good_nodes_is_named_and_not_the_nodes() -> None:
    nodes = names(16)
    link = pair_rounds(nodes)[1][3]
    assert slow_parts(measured(nodes, links=[frozenset(link)])) == (Fault(kind="link", nodes=link),)


def test_what_joins_two_blocks_is_named_once() -> None:
    nodes = names(16)
    left, right = set(nodes[:8]), set(nodes[8:])
    slow = {frozenset({a, b}) for a in left for b in right}
    speeds = {p: HALF if frozenset(p) in slow else HEALTHY for p in combinations(nodes, 2)}
    (fault,) = slow_parts(speeds, [left, right])
    assert (fault.kind, len(left & set(fault.nodes))) == ("blocks", 1)


def test_two_nodes_alone_blame_none_and_where_all_differ_much_none_is_an_outlier() -> None:
    assert slow_parts({("a", "b"): HALF}) == ()
    noisy = {("a", "b"): 1.0, ("c", "d"): 1.4, ("a", "c"): 0.8, ("b", "d"): 1.2}
    assert suspects(noisy) == ()


@pytest.mark.parametrize("speed", [0.0, 30.0])
def test_a_pair_that_failed_counts_as_the_slowest(speed: float) -> None:
    nodes = names(6)
    speeds = {p: speed if "n002" in p else HEALTHY for p in combinations(nodes, 2)}
    assert slow_parts(speeds) == (Fault(kind="node", nodes=("n002",)),)
