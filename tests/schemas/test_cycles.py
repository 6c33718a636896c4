"""Circles are found when there are some, and only then."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

from hypothesis import given
from hypothesis import strategies as st

from gcluster.schemas.derived.graph import cycles

_NAMES = st.sampled_from("abcdef")
_EDGES = st.dictionaries(_NAMES, st.lists(_NAMES, max_size=4), max_size=6)


@given(_EDGES)
def test_what_is_yielded_is_a_circle_and_starts_with_its_first_name(
    edges: dict[str, list[str]],
) -> None:
    order = list(edges)
    for circle in cycles(edges):
        assert len(set(circle)) == len(circle)
        assert all(b in edges[a] for a, b in zip(circle, [*circle[1:], circle[0]], strict=True))
        assert circle[0] == min(circle, key=order.index)


@given(_EDGES)
def test_a_circle_is_found_exactly_where_the_standard_library_finds_one(
    edges: dict[str, list[str]],
) -> None:
    try:
        TopologicalSorter(edges).prepare()
        circular = False
    except CycleError:
        circular = True
    assert (next(cycles(edges), None) is not None) == circular


def test_a_chain_of_ten_thousand_is_no_matter() -> None:
    chain = {str(n): [str(n + 1)] for n in range(10_000)}
    assert list(cycles(chain)) == []
    assert len(next(cycles({**chain, "10000": ["0"]}))) == 10_001
