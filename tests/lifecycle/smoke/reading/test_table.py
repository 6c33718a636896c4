"""The layout of a table comes from its head, and rows are put together again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcluster.lifecycle.smoke.reading.table import Damaged, Layout, RowReader, layout_of, read_row

NEW = "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong"  # noqa: E501
OLD = NEW.replace("    root", "").replace("#wrong", "error")
ROW = "8 2 float sum -1 10.0 0.00 0.01 0 11.0 0.00 0.01 0"
HALF = ("time", "algbw", "busbw", "#wrong")
HEAD = ("size", "count", "type", "redop", "root")
LAYOUT = Layout(columns=(*HEAD, *HALF, *HALF), halves=(5, 9))


def test_the_head_has_the_layout() -> None:
    assert layout_of(NEW) == LAYOUT
    old = layout_of(OLD)
    assert old is not None
    assert (old.width, old.halves) == (12, (4, 8))
    stamped = layout_of(NEW + "  timestamp")
    assert stamped is not None
    assert stamped.width == LAYOUT.width + 2
    assert layout_of("#        (B)    (elements)") is None
    assert layout_of(NEW.lstrip("#")) is None


@pytest.mark.parametrize("swapped", [("algbw", "busbw"), ("#wrong", "moon"), ("time", "date")])
def test_columns_in_another_order_or_of_other_names_are_no_layout(swapped: tuple[str, str]) -> None:
    one, other = swapped
    assert layout_of(NEW.replace(one, "x").replace(other, one).replace("x", other)) is None


def test_what_columns_a_version_or_a_fork_adds_are_passed_over() -> None:
    more = "i_min   i_max   i_p99   i_cv%"
    named = NEW.replace("#wrong", f"#wrong #bitdiff {more}") + " timestamp"
    layout = layout_of(named)
    assert layout is not None
    plus = "0 1 2 3 4"
    tokens = f"8 2 float sum -1 10.0 0.00 0.01 0 {plus} 11.0 0.00 0.02 3 {plus} 2026-01-15 02:30:52"
    row = read_row(tokens.split(), layout)
    assert (row.out_of_place.busbw, row.in_place.wrong) == (0.01, 3)


def test_the_processor_s_time_is_no_time_of_the_message() -> None:
    layout = layout_of(NEW.replace("time", "cputime"))
    assert layout is not None
    assert read_row(ROW.split(), layout).in_place.time_us is None


@given(st.lists(st.integers(5, len(ROW.split()) - 1), max_size=3, unique=True).map(sorted))
def test_a_row_cut_between_its_columns_is_put_together(cuts: list[int]) -> None:
    tokens, reader, rows = ROW.split(), RowReader(LAYOUT), []
    for start, end in zip([0, *cuts], [*cuts, len(tokens)], strict=True):
        rows.append(reader.feed(" ".join(tokens[start:end])))
        rows.append(reader.feed("n1:5:6 [0] NCCL INFO something else"))
    assert [row for row in rows if row] == [read_row(tokens, LAYOUT)]
    assert reader.damaged == ()


def test_a_row_that_another_one_interrupts_is_damaged_and_the_other_is_read() -> None:
    reader = RowReader(LAYOUT)
    assert reader.feed("8 2 float sum -1 10.0") is None
    assert reader.feed(ROW) is not None
    assert reader.damaged == ("8 2 float sum -1 10.0",)


@pytest.mark.parametrize("bad", ["nan", "inf", "-1.0", "x", "N/A"])
def test_a_time_that_is_no_finite_number_is_damage(bad: str) -> None:
    with pytest.raises(Damaged):
        read_row(ROW.replace("10.0", bad).split(), LAYOUT)


def test_a_long_line_of_digits_is_read_at_once() -> None:
    reader = RowReader(LAYOUT)
    reader.feed("8 2 float sum -1")
    assert reader.feed("1" * 100_000 + "x") is None
