"""What a stream can show."""

from __future__ import annotations

import io
import os
import pty
from typing import Any, TextIO

import pytest

from gcluster.cli.console import PIPE_WIDTH, Console, console_of


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
    assert console_of(terminal) == Console(width=93, colour=True, unicode=True, live=True)


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


def test_a_pipe_has_a_constant_width_whatever_the_environment_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    assert console_of(stream) == Console(width=PIPE_WIDTH)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_another_encoding_than_utf_8_gets_plain_marks(encoding: str) -> None:
    console = console_of(io.TextIOWrapper(io.BytesIO(), encoding=encoding))
    assert console.plain("✔ 3 → 4 · more …") == "ok 3 -> 4 | more ..."


def test_paint_adds_nothing_where_there_is_no_colour() -> None:
    assert Console().paint("error", "x") == "x"
    assert Console(colour=True).paint("error", "x") == "\x1b[1;31mx\x1b[0m"
    assert Console(colour=True).paint("error", "") == ""
