"""Diffs of what is fixed."""

from __future__ import annotations

from gcluster.cli.console import Console
from gcluster.cli.render.spec.diff import diff_text

BEFORE = "a: 1\nb: 2  # keep\nc: 3\nd: 4\ne: 5\n"
AFTER = BEFORE.replace("c:", "cc:")


def test_a_diff_shows_the_line_before_and_after_with_its_neighbours() -> None:
    assert diff_text("x.yaml", BEFORE, AFTER, Console()).splitlines() == [
        "--- x.yaml", "+++ x.yaml", "@@ -1,5 +1,5 @@",
        " a: 1", " b: 2  # keep", "-c: 3", "+cc: 3", " d: 4", " e: 5",
    ]  # fmt: skip


def test_colour_marks_what_goes_and_what_comes() -> None:
    text = diff_text("x.yaml", BEFORE, AFTER, Console(colour=True))
    assert "\x1b[1;31m-c: 3\x1b[0m" in text
    assert "\x1b[32m+cc: 3\x1b[0m" in text


def test_texts_that_are_equal_have_no_diff() -> None:
    assert diff_text("x.yaml", BEFORE, BEFORE, Console()) == ""


def test_control_characters_are_shown_and_line_ends_are_not() -> None:
    text = diff_text("x.yaml", "a: \x1b[31m\r\n", "b: \x1b[31m\r\n", Console())
    assert text.splitlines()[-3:] == ["-a: \\x1b[31m", "+b: \\x1b[31m", " "]
