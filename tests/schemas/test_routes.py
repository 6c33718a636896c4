"""Sites that links join."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gcluster.schemas.derived.links import Routes, first_links
from gcluster.schemas.spec import Link
from gcluster.schemas.spec.units import Duration


def test_a_chain_of_links_joins_its_ends_and_nothing_else() -> None:
    routes = Routes([Link(between=["a", "b"]), Link(between=["c", "b"]), Link(between=["d", "e"])])

    assert routes.joins("a", "c")
    assert routes.joins("e", "d")
    assert routes.joins("f", "f")
    assert not routes.joins("a", "d")
    assert not routes.joins("a", "f")


def test_the_latency_is_that_of_the_link_either_way_round() -> None:
    routes = Routes([Link(between=["a", "b"], latency=Duration(0.03)), Link(between=["b", "c"])])

    assert routes.latency("b", "a") == 0.03
    assert routes.latency("b", "c") is None
    assert routes.latency("a", "c") is None


def path(links: list[Link], start: str, end: str) -> list[str]:
    """Go from site to site, each by its own first link, as packets do."""
    passed = [start]
    while passed[-1] != end:
        between = links[first_links(links, passed[-1])[end]].between
        passed.append(between[1] if between[0] == passed[-1] else between[0])
        assert len(passed) <= 6, "packets go round"
    return passed


SITES = "abcde"


@given(
    st.lists(
        st.tuples(st.sampled_from(SITES), st.sampled_from(SITES)).filter(lambda p: p[0] != p[1]),
        unique_by=frozenset,
        max_size=10,
    )
)
def test_packets_go_the_shortest_way_and_answers_come_back_the_same_way(
    pairs: list[tuple[str, str]],
) -> None:
    links = [Link(between=list(pair)) for pair in pairs]
    routes = Routes(links)
    for one in SITES:
        reached = first_links(links, one)
        assert set(reached) == {
            other for other in SITES if other != one and routes.joins(one, other)
        }
        for other in reached:
            there = path(links, one, other)
            assert there == path(links, other, one)[::-1]
            if {one, other} in map(set, pairs):
                assert there == [one, other]
