"""How often a job should save its state, and the figures that this is drawn from."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcluster.schemas.catalog.figures import ObservedFailures, reliability
from gcluster.schemas.derived.storage import daly_interval_s, mtbf_s, waste

_TIMES = st.floats(min_value=1.0, max_value=1e7)


def test_failures_are_those_that_were_published() -> None:
    training, fleet = reliability().failures

    assert training.per_gpu_hour == pytest.approx(1.97e-5, rel=0.01)
    assert mtbf_s(16_384, training.per_gpu_hour) / 3600 == pytest.approx(3.09, rel=0.01)
    assert fleet.per_gpu_hour == pytest.approx(6.5 / 1000 / 24 / 8)


def test_an_observation_without_a_count_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing to divide"):
        _ = ObservedFailures(name="a", gpus=8, source="b", date="2026-11").per_gpu_hour


def test_short_writes_take_youngs_interval() -> None:
    assert daly_interval_s(1, 1e6) == pytest.approx(math.sqrt(2e6), rel=0.001)


def test_a_write_longer_than_two_failures_takes_the_time_between_failures() -> None:
    assert daly_interval_s(200, 100) == 100
    assert daly_interval_s(1000, 100) == 100


@given(_TIMES, _TIMES, st.floats(min_value=1.5, max_value=20))
def test_no_other_interval_wastes_noticeably_less(delta: float, m: float, factor: float) -> None:
    if delta > m / 100:
        return  # the estimate is for writes that are short compared with the time between failures
    best = daly_interval_s(delta, m)
    least = waste(best, delta, m)

    assert waste(best * factor, delta, m) >= least * 0.999 or least == 1
    assert waste(best / factor, delta, m) >= least * 0.999 or least == 1
