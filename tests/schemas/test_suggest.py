"""Did you mean: close words are found, far ones are not."""

from __future__ import annotations

import pytest

from gcluster.schemas.diagnostics import closest, listing


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("maxTime", "max_time"),
        ("max-time", "max_time"),
        ("machin", "machine"),
        ("zebra", None),
        ("", None),
    ],
)
def test_the_closest_word_is_found(word: str, meant: str | None) -> None:
    assert closest(word, ["max_time", "machine", "pools"]) == meant


def test_a_long_listing_reports_how_many_there_are() -> None:
    assert listing(["b", "a"]) == "a, b"
    assert listing(map(str, range(10, 40)), limit=2) == "10, 11 ... (30 in all)"
