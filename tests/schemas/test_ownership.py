"""Owning against renting: what is summed two ways is the same, and published figures come out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcluster.schemas.cost.ownership import (
    HOURS_A_YEAR,
    Cluster,
    busy_shares,
    influences,
    mixed,
    owned,
    ownership_figures,
    rented,
)

DGX = Cluster(nodes=128, gpus_a_node=8, rated_kw=10.2, drawn=0.76, pue=1.56)
VALUES = {each.name: each.value for each in ownership_figures().inputs} | {"node_price": 310e3}
BOUNDS = {each.name: (each.low, each.high) for each in ownership_figures().inputs}
ON_DEMAND = 55.04


def _values() -> st.SearchStrategy[dict[str, float]]:
    """Draw inputs within their bounds."""
    ranges = {name: st.floats(low, high) for name, (low, high) in BOUNDS.items()}
    return st.fixed_dictionaries(ranges | {"node_price": st.floats(1e4, 1e6)})


@given(values=_values())
def test_items_and_months_are_the_same_sum(values: dict[str, float]) -> None:
    found = owned(DGX, values)
    assert found.total == pytest.approx(found.month * 12 * values["years"], rel=1e-9)


@given(values=_values())
def test_at_the_break_even_use_both_cost_the_same(values: dict[str, float]) -> None:
    way = rented(DGX, values, option="on-demand", usd_per_hour=ON_DEMAND, gpus_a_node=8)
    if way.break_even_use is None:
        dear = owned(DGX, {**values, "use": 1.0}).total
        assert dear >= ON_DEMAND * 128 * HOURS_A_YEAR * values["years"] * (1 - 1e-9)
    else:
        at = {**values, "use": way.break_even_use}
        rent = rented(DGX, at, option="on-demand", usd_per_hour=ON_DEMAND, gpus_a_node=8).total
        assert owned(DGX, at).total == pytest.approx(rent, rel=1e-9)


@given(values=_values(), name=st.sampled_from(["node_price", "electricity", "space", "interest"]))
def test_cost_grows_with_each_price(values: dict[str, float], name: str) -> None:
    dearer = {**values, name: values[name] * 1.1}
    assert owned(DGX, dearer).total >= owned(DGX, values).total


@given(
    spans=st.lists(
        st.tuples(st.integers(0, 10**6), st.integers(1, 10**5), st.integers(1, 40)), min_size=1
    )
)
def test_the_load_of_a_trace_has_the_node_hours_of_its_jobs(
    spans: list[tuple[int, int, int]],
) -> None:
    jobs = [(float(begin), float(begin + length), nodes) for begin, length, nodes in spans]
    whole = max(end for _, end, _ in jobs) - min(begin for begin, _, _ in jobs)
    shares = busy_shares(jobs)
    assert shares == sorted(shares, reverse=True)
    worked = sum((end - begin) * nodes for begin, end, nodes in jobs)
    assert sum(shares) * whole == pytest.approx(worked)


@given(shares=st.lists(st.floats(0, 1), min_size=1, max_size=60), values=_values())
def test_no_other_split_of_base_and_spill_is_cheaper(
    shares: list[float], values: dict[str, float]
) -> None:
    one = Cluster(nodes=1, gpus_a_node=8, rated_kw=10.2, drawn=0.76, pue=1.56)
    falling = sorted(shares, reverse=True)
    found = mixed(one, values, falling, ON_DEMAND)
    rent = ON_DEMAND * values["years"] * HOURS_A_YEAR
    own = [owned(one, {**values, "use": share}).total for share in falling]
    splits = [
        sum(own[:count]) + sum(rent * share for share in falling[count:])
        for count in range(len(falling) + 1)
    ]
    assert found.total == pytest.approx(min(splits), rel=1e-9)


def test_the_purchase_of_128_nodes_is_what_the_cost_sheet_adds_up_to() -> None:
    """$39.68 M of nodes, $1.728 M of switches, $2.621 M of cables: 44.03 M without storage."""
    found = owned(DGX, {**VALUES, "storage": 0.0})
    assert found.purchase == pytest.approx(44.03e6, rel=0.01)


def test_a_bought_node_pays_back_in_the_months_that_are_published() -> None:
    """14 to 18 months of high use against prices of large clouds, for an 8-GPU H100 node."""
    values = {**VALUES, "use": 0.8}
    way = rented(DGX, values, option="on-demand", usd_per_hour=ON_DEMAND, gpus_a_node=8)
    assert way.payback_months is not None
    assert 11 <= way.payback_months <= 18


def test_three_years_of_a_node_cost_what_is_published() -> None:
    """$450 k to $650 k for three years of an 8-GPU H100 node (purchase, power, colocation)."""
    plain = {"storage": 0.0, "support": 0.0, "staff_usd": 0.0, "interest": 0.0, "residual": 0.0}
    one = Cluster(nodes=1, gpus_a_node=8, rated_kw=10.2, drawn=0.76, pue=1.56)
    found = owned(one, {**VALUES, **plain, "years": 3.0})
    assert 430e3 <= found.total <= 650e3


def test_an_option_that_is_paid_whole_has_no_break_even_use() -> None:
    way = rented(DGX, VALUES, option="reservation", usd_per_hour=30, gpus_a_node=8)
    assert way.break_even_use is None
    assert way.total == pytest.approx(128 * 30 * 5 * HOURS_A_YEAR)


def test_lost_work_on_spot_is_paid_twice() -> None:
    spot = rented(DGX, VALUES, option="spot", usd_per_hour=20, gpus_a_node=8)
    same = rented(DGX, VALUES, option="on-demand", usd_per_hour=20, gpus_a_node=8)
    assert spot.total == pytest.approx(1.1 * same.total)


def test_what_moves_the_result_most_comes_first_and_what_does_not_is_left_out() -> None:
    found = influences(DGX, VALUES, BOUNDS, ON_DEMAND, 8)
    assert found[0].name == "use"
    assert "lead_weeks" not in {each.name for each in found}
    spans = [max(abs(each.usd_at_low), abs(each.usd_at_high)) for each in found]
    assert spans == sorted(spans, reverse=True)


def test_every_default_is_within_its_bounds() -> None:
    figures = ownership_figures()
    assert all(each.low <= each.value <= each.high for each in figures.inputs)
    assert all(each.low <= each.usd <= each.high for each in figures.node_prices)
