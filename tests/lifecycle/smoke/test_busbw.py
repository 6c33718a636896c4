"""The bandwidth formulas and the sizes of a sweep."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcluster.lifecycle.smoke.launch import algbw, busbw, busbw_factor, sweep
from gcluster.schemas.derived.floor import parse_sizes


def test_bandwidths_are_those_of_the_worked_example() -> None:
    # 1 GB in 10 ms is 100 GB/s; over 8 ranks each link carries 2 * 7/8 of the message.
    assert algbw(10**9, 0.01) == pytest.approx(100)
    assert busbw(10**9, 0.01, 8) == pytest.approx(175)


def test_one_rank_has_no_bus() -> None:
    assert busbw_factor(1) == 0


def test_sizes_are_read_with_their_units() -> None:
    assert parse_sizes("8B..64MiB") == (8, 64 * 2**20)
    assert parse_sizes("1 KiB..8GiB") == (1024, 8 * 2**30)


@pytest.mark.parametrize("text", ["", "8B", "64MiB..8B", "8..64", "2B..8B", "8B..64MB..1GB"])
def test_sizes_that_make_no_sweep_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_sizes(text)


@given(st.integers(4, 10**6), st.integers(1, 10**12), st.integers(2, 16))
def test_a_sweep_starts_at_the_least_grows_and_ends_within_the_most(
    least: int, extra: int, factor: int
) -> None:
    sizes = sweep(least, least + extra, factor)
    assert sizes[0] == least // 4 * 4
    assert all(size % 4 == 0 for size in sizes)
    assert list(sizes) == sorted(set(sizes))
    assert sizes[-1] <= least + extra
