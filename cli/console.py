"""The console: its width, colours and characters; text fitted to it; questions."""

from __future__ import annotations

import os
import re
import shutil
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple, TextIO, TypeAlias

from ..lifecycle.cluster.outcome import Exit, failure

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
    terminal: bool = False
    """Whether it has a width that lines must keep to; a pipe and a file take lines as they are."""

    def paint(self, tone: Tone, text: str) -> str:
        """Return the text in its tone; unchanged where there is no colour."""
        return f"\x1b[{_SGR[tone]}m{text}\x1b[0m" if self.colour and text else text

    def plain(self, text: str) -> str:
        """Return the text with marks that this console can show."""
        return text if self.unicode else text.translate(_ASCII)

    def fit(self, text: str) -> str:
        """Return the text with lines that are too long for a terminal continued on the next one.

        No word is broken: what is longer than the terminal, such as a path, stays whole. A line
        goes on below where its last column begins.
        """
        if not self.terminal:
            return text
        return "\n".join(part for line in text.split("\n") for part in _fitted(line, self.width))


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
        terminal=terminal,
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


def shorten(text: str, columns: int, mark: str = "…") -> str:
    """Cut the middle out of a text that takes more columns: both ends identify a name."""
    if width(text) <= columns:
        return text
    room = max(2, columns - width(mark))
    return f"{_begin(text, room - room // 2)}{mark}{_begin(text[::-1], room // 2)[::-1]}"


def _begin(text: str, columns: int) -> str:
    taken = 0
    for place, character in enumerate(text):
        taken += cell_width(character)
        if taken > columns:
            return text[:place]
    return text


def wrap(text: str, columns: int, first: str = "", rest: str = "") -> list[str]:
    """Return lines of whole words; a word that takes more columns than there are stays whole.

    Args:
        text: words; runs of spaces become one.
        columns: what a line may take.
        first: begins the first line.
        rest: begins each further line.
    """
    return list(_lines(((" ", word) for word in text.split()), columns, first, rest))


_TONE = re.compile(r"\x1b\[[0-9;]*m")
_LAST_GAP = re.compile(r".*\S {2,}(?=\S)")


def _fitted(line: str, columns: int) -> Iterator[str]:
    bare = _TONE.sub("", line)
    if width(bare) <= columns:
        yield line
        return
    indent = line[: len(line) - len(line.lstrip(" "))]
    gap = _LAST_GAP.match(bare[: columns // 2 + 1])
    hang = width(gap[0]) if gap is not None else min(len(indent) + 2, columns // 2)
    words = re.findall(r"( *)([^ ]+)", line[len(indent) :])
    yield from _lines(words, columns, indent, " " * hang)


def _lines(words: Iterable[tuple[str, str]], columns: int, first: str, rest: str) -> Iterator[str]:
    """Yield lines of (space before it, word); a tone that is open is closed at the line's end."""
    line, taken, is_empty, tone = first, width(first), True, ""
    for space, word in words:
        needed = width(_TONE.sub("", word))
        if is_empty:
            line, taken = line + word, taken + needed
        elif taken + len(space) + needed <= columns:
            line, taken = line + space + word, taken + len(space) + needed
        else:
            yield line + ("\x1b[0m" if tone else "")
            line, taken = rest + tone + word, width(rest) + needed
        is_empty = False
        for each in _TONE.findall(word):
            tone = "" if each == "\x1b[0m" else each
    yield line.rstrip(" ")


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
    """Write a text for people, in lines that keep to the terminal's width."""
    emit(stdout().fit(text))


def emit(text: str) -> None:
    """Write a text as it is and end its line, at once: progress and results share one order.

    typer's echo would write UTF-8 to a terminal that said it knows only ASCII.
    """
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def can_ask() -> bool:
    """Return whether a person sees what is written and can answer."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def ask_name(question: str, name: str, *, possible: bool = True) -> bool:
    """Prompt for a name to be typed; anything else is a no. Raises as `ask`."""
    return _answer(f"{question}\ntype {name} to do it: ", possible=possible) == name


def ask(question: str, *, possible: bool = True) -> bool:
    """Prompt on the terminal; anything but a yes is a no.

    Args:
        question: the prompt.
        possible: False where an answer could not be given, e.g. when a program reads the output.

    Raises:
        LifecycleError: there is no terminal to confirm on (exit code REFUSED).
    """
    return _answer(f"{question} [y/N] ", possible=possible).lower() in {"y", "yes"}


def _answer(prompt: str, *, possible: bool) -> str:
    """Return what is typed; "" at the end of input. Raises LifecycleError: no terminal."""
    if not (possible and can_ask()):
        raise failure(
            "GC942",
            "no terminal to confirm on: nothing was changed",
            hint="pass --yes to confirm",
            exit_code=Exit.REFUSED,
        )
    try:
        return input(prompt).strip()
    except EOFError:
        return ""
