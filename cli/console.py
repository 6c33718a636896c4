"""The console: its width, colours and characters; text fitted to it; questions."""

from __future__ import annotations

import os
import shutil
import sys
import unicodedata
from typing import Literal, NamedTuple, TextIO, TypeAlias

from ..lifecycle.outcome import Exit, failure

Tone: TypeAlias = Literal["error", "warning", "note", "good", "strong", "faint", "gutter"]

_SGR: dict[Tone, str] = {
    "error": "1;31",
    "warning": "1;33",
    "note": "1;36",
    "good": "32",
    "strong": "1",
    "faint": "2",
    "gutter": "1;34",
}
PIPE_WIDTH = 100
"""Columns assumed where no terminal says how many it has: constant, so that output is the same."""

_ASCII = str.maketrans({"✔": "ok", "✘": "!!", "…": "...", "·": "|", "→": "->"})


class Console(NamedTuple):
    """How text must be shaped for where it goes."""

    width: int = PIPE_WIDTH
    colour: bool = False
    unicode: bool = True
    live: bool = False
    """Whether lines can be drawn over: a terminal that a person looks at."""

    def paint(self, tone: Tone, text: str) -> str:
        """Return the text in its tone; unchanged where there is no colour."""
        return f"\x1b[{_SGR[tone]}m{text}\x1b[0m" if self.colour and text else text

    def plain(self, text: str) -> str:
        """Return the text with marks that this console can show."""
        return text if self.unicode else text.translate(_ASCII)


def console_of(stream: TextIO) -> Console:
    """Look at a stream and its environment (NO_COLOR, TERM, COLUMNS)."""
    terminal = stream.isatty()
    capable = terminal and os.environ.get("TERM", "") != "dumb"
    encoding = (getattr(stream, "encoding", None) or "ascii").lower().replace("-", "")
    return Console(
        width=max(20, shutil.get_terminal_size().columns) if terminal else PIPE_WIDTH,
        colour=capable and not os.environ.get("NO_COLOR"),
        unicode=encoding.startswith("utf"),
        live=capable,
    )


def stdout() -> Console:
    """Return the console of standard output."""
    return console_of(sys.stdout)


def stderr() -> Console:
    """Return the console of standard error."""
    return console_of(sys.stderr)


TAB = 4
"""Columns between tab stops in excerpts."""


def cell_width(character: str) -> int:
    """Return how many columns a printable character takes: 0, 1 or 2."""
    if character.isascii():
        return 1

    if unicodedata.category(character) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1


def width(text: str) -> int:
    """Return how many columns a printable text takes."""
    return len(text) if text.isascii() else sum(map(cell_width, text))


def pad(text: str, columns: int) -> str:
    """Fill up with spaces on the right; longer text stays as it is."""
    return text + " " * (columns - width(text))


def printable(text: str) -> str:
    """Return the text with control characters shown as escapes, so that none reaches a terminal.

    What people write into a spec is quoted in messages: it must not move the cursor or the colour.
    """
    return text if text.isprintable() else "".join(map(_shown, text))


def _shown(character: str, *, unicode: bool = True) -> str:
    if character.isprintable() and (unicode or character.isascii()):
        return character
    if character == "\t":
        return " " * TAB
    return character.encode("unicode_escape", "replace").decode("ascii")


def columns(line: str, *, unicode: bool = True) -> list[str]:
    """Split a source line into one shown string per character, tabs filled up to their stops.

    Without Unicode other characters are shown as escapes, so that a caret still meets its mark.
    """
    shown: list[str] = []
    at = 0
    for character in line:
        text = " " * (TAB - at % TAB) if character == "\t" else _shown(character, unicode=unicode)
        shown.append(text)
        at += width(text)
    return shown


def say(text: str) -> None:
    """Write a text and end its line, at once: progress and results share one order.

    typer's echo would write UTF-8 to a terminal that said it knows only ASCII.
    """
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def can_ask() -> bool:
    """Return whether a person sees what is written and can answer."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def ask_name(question: str, name: str, *, possible: bool = True) -> bool:
    """Ask on the terminal for a name to be typed; anything else is a no. Raises as `ask`."""
    return _answer(f"{question}\ntype {name} to do it: ", possible=possible) == name


def ask(question: str, *, possible: bool = True) -> bool:
    """Ask on the terminal; anything but a yes is a no.

    Args:
        question: what to ask.
        possible: False where an answer could not be given, e.g. when a program reads the output.

    Raises:
        LifecycleError: there is nobody to ask (exit code REFUSED).
    """
    return _answer(f"{question} [y/N] ", possible=possible).lower() in {"y", "yes"}


def _answer(prompt: str, *, possible: bool) -> str:
    """Return what is typed; "" at the end of input. Raises LifecycleError: nobody can type."""
    if not (possible and can_ask()):
        raise failure(
            "GC942",
            "nobody can be asked here: nothing was changed",
            hint="give --yes to do it without asking",
            exit_code=Exit.REFUSED,
        )
    try:
        return input(prompt).strip()
    except EOFError:
        return ""
