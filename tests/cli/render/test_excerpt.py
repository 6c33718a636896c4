"""The laws of an excerpt: no exception, never wider than requested, the caret meets its mark."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from gcluster.cli.console import Console, width
from gcluster.cli.render.diagnostics import excerpt, source_lines
from gcluster.schemas.diagnostics import Span

numbers = st.integers(min_value=-3, max_value=300)
spans = st.builds(Span, line=numbers, column=numbers, end_line=numbers, end_column=numbers)
texts = st.text(st.characters() | st.sampled_from("\t\r\n日é\u0301\u200b\x1b"), max_size=400)
consoles = st.builds(
    Console,
    width=st.integers(min_value=20, max_value=120),
    unicode=st.booleans(),
    colour=st.just(False),
    live=st.just(False),
)


@given(texts, spans, consoles)
@example("", Span(line=1, column=1, end_line=1, end_column=1), Console())
@example("\t" * 300, Span(line=1, column=200, end_line=1, end_column=201), Console(width=20))
@example("日" * 300, Span(line=1, column=150, end_line=1, end_column=290), Console(width=21))
@example("\u0301" * 300, Span(line=1, column=299, end_line=1, end_column=300), Console(width=20))
def test_any_text_and_any_span_give_lines_that_fit(text: str, span: Span, console: Console) -> None:
    lines = excerpt(source_lines(text), span, console, "error")
    assert len(lines) in {0, 3}
    assert all(line.isprintable() for line in lines)
    assert all(width(line) <= console.width for line in lines)
    if lines:
        assert lines[2].count("^") >= 1
    if not console.unicode:
        assert all(line.isascii() for line in lines)


words = st.text(st.sampled_from("abc: {}日é-"), min_size=0, max_size=120)


@given(words, words, consoles.filter(lambda console: console.unicode))
def test_the_caret_is_under_the_start_of_its_mark(
    before: str, after: str, console: Console
) -> None:
    line = f"{before}X{after}"
    at = len(before) + 1
    span = Span(line=1, column=at, end_line=1, end_column=at + 1)
    _, code, caret = excerpt([line], span, console, "error")
    column = caret.index("^")
    reached, under = 0, ""
    for character in code:
        if reached == column:
            under = character
            break
        reached += width(character)
    assert under == "X"


def test_a_line_of_megabytes_is_checked_near_its_caret_only() -> None:
    line = "a" * 8_000_000
    span = Span(line=1, column=4_000_000, end_line=1, end_column=4_000_001)
    for _ in range(300):
        shown = excerpt([line], span, Console(width=80), "error")
    assert len(shown[1]) <= 80


def test_lines_are_counted_as_the_loader_counts_them() -> None:
    assert source_lines("a\r\nb\rc\nd\u2028e") == ["a", "b", "c", "d\u2028e"]
