"""Failures, checkpoints and goodput by Young, Daly and published rates."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcluster.inventory.size.reliability import daly_s, reliability, young_s

PARAMETERS = 405_853_388_800


def test_a_job_of_16384_gpus_fails_as_llama_3_did() -> None:
    # 419 unexpected interruptions in 54 days: one in 3.09 h
    found = reliability(PARAMETERS, 16384, 8)
    assert found.hours_between == pytest.approx(3.09, abs=0.01)
    assert found.failures_per_day == pytest.approx(419 / 54)


@pytest.mark.parametrize(("checkpoint_s", "interval_s"), [(30, 817), (60, 1156), (300, 2585)])
def test_youngs_interval_is_the_root_of_twice_the_product(
    checkpoint_s: float, interval_s: float
) -> None:
    assert young_s(checkpoint_s, 3.093 * 3600) == pytest.approx(interval_s, rel=0.001)


def test_dalys_interval_is_youngs_less_the_checkpoint_where_failures_are_rare() -> None:
    assert daly_s(60, 1e9) == pytest.approx(young_s(60, 1e9) - 60, rel=1e-3)


def test_dalys_interval_is_the_time_between_failures_where_a_checkpoint_takes_twice_that() -> None:
    assert daly_s(200, 100) == 100


def test_a_checkpoint_of_405b_is_of_the_published_size() -> None:
    # 12 to 16 bytes a parameter: 4.9 to 6.5 TB
    assert 4.9e12 <= reliability(PARAMETERS, 1024, 8).checkpoint_bytes <= 6.5e12


@given(st.integers(1, 10_000), st.integers(2, 8))
def test_a_larger_job_fails_more_often_and_gets_less_done(nodes: int, factor: int) -> None:
    small, large = (reliability(PARAMETERS, 8 * count, 8) for count in (nodes, nodes * factor))
    assert large.failures_per_day > small.failures_per_day
    assert large.goodput < small.goodput <= 1
    assert large.spare_nodes >= small.spare_nodes
    assert large.interval_s < small.interval_s
