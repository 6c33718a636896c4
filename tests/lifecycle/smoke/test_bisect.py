"""The search names what is at fault, and nothing else, whatever is at fault."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcluster.lifecycle.smoke.bisect import Bisection, Fault

Pair = frozenset[str]


def names(count: int) -> list[str]:
    return [f"n{number:03d}" for number in range(count)]


def blocks_of(nodes: list[str], size: int) -> list[list[str]]:
    return [nodes[start : start + size] for start in range(0, len(nodes), size)]


def search(
    nodes: list[str],
    bad: Iterable[str] = (),
    links: Iterable[Pair] = (),
    blocks: Iterable[Iterable[str]] = (),
) -> tuple[tuple[Fault, ...], int]:
    """Run the search against an oracle; return what it named and how many rounds it took."""
    bad_nodes, bad_links = set(bad), set(links)
    plan, rounds = Bisection(nodes, blocks), 0
    while tests := plan.next_round():
        rounds += 1
        assert len({name for test in tests for name in test}) == sum(map(len, tests)), "disjoint"
        plan.learn(
            {
                test: not test & bad_nodes and not any(link <= test for link in bad_links)
                for test in tests
            }
        )
    return plan.faults, rounds


def named(faults: Iterable[Fault], kind: str) -> set[Pair]:
    return {frozenset(fault.nodes) for fault in faults if fault.kind == kind}


@given(st.data(), st.integers(4, 64), st.integers(1, 16))
def test_bad_nodes_are_named_and_no_others(data: st.DataObject, count: int, size: int) -> None:
    nodes = names(count)
    most = (count - 1) // 2 - 1
    bad = data.draw(st.sets(st.sampled_from(nodes), min_size=1, max_size=max(1, min(5, most))))
    faults, _ = search(nodes, bad, blocks=blocks_of(nodes, size))
    assert {fault.kind for fault in faults} == {"node"}
    assert named(faults, "node") == {frozenset({name}) for name in bad}


@given(st.data(), st.integers(3, 48), st.integers(1, 16))
def test_a_bad_link_is_named_by_its_ends(data: st.DataObject, count: int, size: int) -> None:
    nodes = names(count)
    link = frozenset(data.draw(st.permutations(nodes))[:2])
    faults, _ = search(nodes, links=[link], blocks=blocks_of(nodes, size))
    assert [(fault.kind, frozenset(fault.nodes)) for fault in faults] == [("link", link)]


@given(st.data(), st.integers(6, 32), st.integers(2, 16))
def test_what_is_named_is_at_fault_and_explains_every_failure(
    data: st.DataObject, count: int, size: int
) -> None:
    nodes = names(count)
    pairs = [frozenset(pair) for pair in combinations(nodes, 2)]
    bad = data.draw(st.sets(st.sampled_from(nodes), max_size=2))
    links = data.draw(st.sets(st.sampled_from(pairs), max_size=2))
    if not bad | {name for link in links for name in link}:
        return
    faults, _ = search(nodes, bad, links, blocks_of(nodes, size))
    answer = {next(iter(node)) for node in named(faults, "node")}
    ends = [name for link in links for name in link]
    assert answer - bad <= {name for name in ends if ends.count(name) > 1 or set(ends) & bad}
    assert named(faults, "link") <= links
    if not named(faults, "undecided"):
        assert bad <= answer
        blocked = named(faults, "blocks")
        assert all(link & answer or link in named(faults, "link") or blocked for link in links)


def test_what_connects_two_blocks_is_named_by_a_node_of_each() -> None:
    nodes = names(32)
    first, second, *others = blocks_of(nodes, 8)
    links = {frozenset({one, other}) for one in first for other in second}
    faults, _ = search(nodes, links=links, blocks=[first, second, *others])
    assert [fault.kind for fault in faults] == ["blocks"]
    one, other = faults[0].nodes
    assert (one in first, other in second) == (True, True)


@pytest.mark.parametrize("bad", [["n000"], ["n001"], ["n000", "n001"]])
def test_of_two_nodes_it_can_not_be_decided_which(bad: list[str]) -> None:
    faults, rounds = search(names(2), bad)
    assert (faults, rounds) == ((Fault(kind="undecided", nodes=("n000", "n001")),), 0)


def test_when_every_pair_fails_all_are_reported_and_the_search_ends() -> None:
    nodes = names(6)
    faults, rounds = search(nodes, nodes)
    assert {fault.kind for fault in faults} == {"undecided"}
    assert {name for fault in faults for name in fault.nodes} == set(nodes)
    assert rounds <= 40


def test_a_failure_that_never_comes_back_is_undecided_among_all() -> None:
    faults, _ = search(names(8))
    assert faults == (Fault(kind="undecided", nodes=tuple(names(8))),)


@pytest.mark.parametrize("count", [8, 64, 512, 1024])
def test_rounds_grow_with_the_logarithm_of_the_nodes(count: int) -> None:
    nodes = names(count)
    blocks = blocks_of(nodes, 32)
    _, rounds = search(nodes, [nodes[count // 3]], blocks=blocks)
    assert rounds <= 10
    _, rounds = search(nodes, links=[frozenset({nodes[1], nodes[-2]})], blocks=blocks)
    assert rounds <= 6 + 2 * count.bit_length()
