"""Sites that links join."""

from __future__ import annotations

from gcluster.schemas.routes import Routes
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
