"""Columns on a terminal, and text made safe to show there."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcluster.cli.console import columns, pad, printable, width


@pytest.mark.parametrize(
    ("text", "columns_taken"), [("abc", 3), ("日本", 4), ("e\u0301", 1), ("", 0), ("\uff37", 2)]
)
def test_width_is_what_a_terminal_takes(text: str, columns_taken: int) -> None:
    assert width(text) == columns_taken


def test_padding_counts_columns_not_characters() -> None:
    assert pad("日", 4) == "日  "


@given(st.text())
def test_printable_text_holds_nothing_that_moves_a_cursor(text: str) -> None:
    assert printable(text).isprintable()


@given(st.text(st.characters(exclude_categories=["C", "Z"])))
def test_printable_text_is_left_as_it_is(text: str) -> None:
    assert printable(text) == text


def test_tabs_are_filled_up_to_their_stops() -> None:
    assert columns("a\tb\t") == ["a", "   ", "b", "   "]


def test_without_unicode_characters_are_shown_as_escapes() -> None:
    assert columns("é", unicode=False) == ["\\xe9"]
