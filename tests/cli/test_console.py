"""What a stream can show."""

from __future__ import annotations

import io
import os
import pty
from typing import Any, TextIO

import pytest

from gcluster.cli.console import Console, console_of, shorten, width


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "93")
    monkeypatch.delenv("NO_COLOR", raising=False)
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w", encoding="utf-8") as stream:
        yield stream
    os.close(ours)


def test_a_terminal_shows_colour_and_live_bars(terminal: TextIO) -> None:
    assert console_of(terminal) == Console(
        width=93, colour=True, unicode=True, live=True, terminal=True
    )


def test_no_color_takes_the_colour_and_leaves_the_bars(
    terminal: TextIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    console = console_of(terminal)
    assert (console.colour, console.live) == (False, True)


def test_a_dumb_terminal_is_written_to_as_a_pipe_is(
    terminal: TextIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    console = console_of(terminal)
    assert (console.colour, console.live) == (False, False)


def test_a_pipe_has_a_constant_width_whatever_the_environment_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    assert console_of(stream) == Console(width=100)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_another_encoding_than_utf_8_gets_plain_marks(encoding: str) -> None:
    console = console_of(io.TextIOWrapper(io.BytesIO(), encoding=encoding))
    assert console.plain("✔ 3 → 4 · more …") == "ok 3 -> 4 | more ..."


def test_paint_adds_nothing_where_there_is_no_colour() -> None:
    assert Console().paint("error", "x") == "x"
    assert Console(colour=True).paint("error", "x") == "\x1b[1;31mx\x1b[0m"
    assert Console(colour=True).paint("error", "") == ""


def test_a_line_continues_where_its_last_column_begins() -> None:
    console = Console(width=30, terminal=True)
    line = "  ✔ converge   all of the steps were run on every node"
    assert console.fit(line).splitlines() == [
        "  ✔ converge   all of the",
        "               steps were run",
        "               on every node",
    ]
    assert Console(width=30).fit(line) == line


def test_a_tone_ends_with_its_line_and_begins_again() -> None:
    console = Console(width=24, terminal=True, colour=True)
    fitted = console.fit(console.paint("error", "nothing of this could be made"))
    assert fitted.splitlines() == [
        "\x1b[1;31mnothing of this could be\x1b[0m",
        "  \x1b[1;31mmade\x1b[0m",
    ]


def test_a_word_that_is_wider_than_the_terminal_stays_whole() -> None:
    console = Console(width=24, terminal=True)
    path = "/a/path/that/is/longer/than/the/terminal"
    assert console.fit(f"wrote {path} now").splitlines() == ["wrote", f"  {path}", "  now"]


def test_a_name_is_cut_in_its_middle_by_cells() -> None:
    assert shorten("p5.48xlarge", 11) == "p5.48xlarge"
    assert shorten("standard-nd96isr-h200-v5", 13) == "standa…200-v5"
    assert width(shorten("機械の名前がとても長い", 10)) <= 10
