"""Pauses grow with each failure, up to an hour, and no two controllers come at once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gcluster.lifecycle.operations.gitops.act import FIRST_S, JITTER, MOST_S, pause_s

CHANCE = st.floats(0, 1)


def test_pauses_double_up_to_an_hour() -> None:
    assert [pause_s(n, 0.5) for n in range(9)] == [0, 30, 60, 120, 240, 480, 960, 1920, 3600]


@given(st.integers(1, 10**9), CHANCE)
def test_a_pause_is_never_shorter_than_the_first_nor_longer_than_an_hour_by_more_than_the_jitter(
    failures: int, chance: float
) -> None:
    assert FIRST_S * (1 - JITTER) <= pause_s(failures, chance) <= MOST_S * (1 + JITTER) + 1e-6


@given(st.integers(1, 60), CHANCE)
def test_one_more_failure_makes_no_shorter_pause(failures: int, chance: float) -> None:
    assert pause_s(failures + 1, chance) >= pause_s(failures, chance)
