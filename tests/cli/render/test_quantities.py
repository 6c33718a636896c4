"""Numbers with their units."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcluster.cli.render.quantities import bandwidth, counts, duration, plural, size, usd_per_hour


@pytest.mark.parametrize(
    ("seconds", "says"),
    [
        (0.04, "0.0 s"),
        (6.24, "6.2 s"),
        (9.96, "10 s"),
        (21.4, "21 s"),
        (125, "2 min 5 s"),
        (1800, "30 min"),
        (12_000, "3 h 20 min"),
        (187_200, "2 d 4 h"),
        (-1, "0.0 s"),
    ],
)
def test_a_duration_has_at_most_two_units(seconds: float, says: str) -> None:
    assert duration(seconds) == says


@given(st.floats(min_value=0, max_value=1e9))
def test_every_duration_can_be_expressed(seconds: float) -> None:
    assert duration(seconds)[0].isdigit()


def test_an_unknown_price_is_never_nought() -> None:
    assert usd_per_hour(None) == "price unknown"
    assert usd_per_hour(1200) == "$1,200.00/h"


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (8, "8 B"),
        (65_536, "64 KiB"),
        (1.5 * 2**30, "1.5 GiB"),
        (2**33, "8 GiB"),
        (2**50, "1024 TiB"),
    ],
)
def test_sizes_are_binary(value: float, says: str) -> None:
    assert size(value) == says


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (0.0, "0 B/s"),
        (9.09e-8, "90.9 B/s"),
        (0.0051, "5.1 MB/s"),
        (0.5734, "573 MB/s"),
        (1.876, "1.88 GB/s"),
        (36.44, "36.4 GB/s"),
        (480.4, "480 GB/s"),
        (1800, "1,800 GB/s"),
    ],
)
def test_bandwidth_has_three_figures(value: float, says: str) -> None:
    assert bandwidth(value) == says


def test_counts_name_the_most_numerous_first() -> None:
    assert counts({"network": 1, "node": 5, "key": 1}) == "5 nodes, 1 key, 1 network"
    assert plural(2, "copy") == "2 copies"
    assert plural(2, "key") == "2 keys"
