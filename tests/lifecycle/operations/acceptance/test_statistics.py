"""One bad figure in many is found, healthy scatter is not, and what is better is no fault."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcluster.lifecycle.operations.acceptance.statistics import outliers, scores, summary_of

figures = st.lists(st.floats(1, 1e6), min_size=3, max_size=60)


def healthy(count: int) -> list[float]:
    """Return bandwidths that scatter by a percent, as nodes of one type do."""
    scatter = random.Random(7)  # noqa: S311  # the same scatter each time
    return [scatter.gauss(390, 3.9) for _ in range(count)]


def test_the_score_is_that_of_nists_handbook() -> None:
    # 0.6745 (x - median) / MAD: the median of these is 12, their deviations' 1.
    assert scores([10, 11, 12, 13, 40]) == pytest.approx([-1.349, -0.6745, 0, 0.6745, 18.886])


def test_one_slow_node_of_many_is_found_and_healthy_ones_are_not() -> None:
    nodes = healthy(64)
    assert outliers(nodes, "higher") == []
    nodes[17] = 340.0
    assert outliers(nodes, "higher") == [17]


def test_equal_peers_still_show_the_one_that_differs() -> None:
    assert outliers([400.0] * 20 + [360.0], "higher") == [20]


def test_of_a_few_peers_half_the_speed_is_found() -> None:
    assert outliers([10.0, 10.1, 9.9, 5.0], "higher") == [3]


def test_noise_of_a_thousandth_is_no_fault_however_equal_the_others_are() -> None:
    assert outliers([400.0] * 20 + [399.6], "higher") == []


def test_a_latency_is_worse_when_it_is_higher() -> None:
    assert outliers([2.0, 2.0, 2.1, 2.0, 9.0], "lower") == [4]
    assert outliers([2.0, 2.0, 2.1, 2.0, 0.9], "lower") == []


def test_of_two_that_differ_either_may_be_wrong() -> None:
    assert outliers([400.0, 100.0], "higher") == []


@given(figures, st.sampled_from([2.0, 1000.0]))
def test_another_unit_finds_the_same(values: list[float], factor: float) -> None:
    assert outliers([v * factor for v in values], "higher") == outliers(values, "higher")


@given(figures)
def test_the_summary_holds_all_figures_between_its_ends(values: list[float]) -> None:
    summary = summary_of(values)
    assert summary.least <= summary.median <= summary.most
    assert summary.count == len(values)
