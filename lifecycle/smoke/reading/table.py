"""The table of nccl-tests: its layout from its head, and its rows, even when cut apart."""

from __future__ import annotations

import math
import re

import msgspec

from .log import Half, Row

_ROW_HEAD = re.compile(r"\s*\d+\s+\d+\s+[a-z]\w*\s+\w+(?=\s|$)")
_LABEL = re.compile(r"\[\d+\]")
_FOREIGN = re.compile(r"(?:-1)?(\S+:\d+:\d+ \[\d+\] |NCCL (?:INFO|WARN) |\S+:\d+: )")
_VALUE = re.compile(r"[-+]?[\d.]+(?:e[-+]?\d+)?|nan|inf|N/A|\d{4}-\d\d-\d\d|\d\d:\d\d:\d\d")
_TIMES = frozenset({"time", "cputime"})
_COUNTS = frozenset({"#wrong", "error"})


MOST_DAMAGED = 20
"""Rows that are kept though they can't be read: one is enough for a verdict."""


class Damaged(ValueError):  # noqa: N818  # the line is, the program isn't
    """A row that can't be read; the message is the row."""


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """The columns of a table, by the names in its head.

    Each version has others: `root` since nccl-tests 2.12, a count of wrong values (`#wrong`) in
    place of a largest `error` since then, four more after each half with -I 1 since 2.18.4, and
    forks add their own. An unknown column is one field of a row, and skipped.
    """

    columns: tuple[str, ...]
    halves: tuple[int, ...]
    """Where each half begins: at its time."""

    @property
    def width(self) -> int:
        """Number of fields in a row; a timestamp is two, date and time."""
        return len(self.columns) + self.columns.count("timestamp")


def layout_of(line: str) -> Layout | None:
    """Return the layout that a line declares, None when it isn't the line with the column names."""
    names = tuple(line.lstrip("# ").split())
    if not line.startswith("#") or names[:4] != ("size", "count", "type", "redop"):
        return None
    halves = tuple(
        at
        for at in range(len(names) - 3)
        if names[at] in _TIMES
        and names[at + 1 : at + 3] == ("algbw", "busbw")
        and names[at + 3] in _COUNTS
    )
    if len(halves) not in {1, 2} or names.count("busbw") != len(halves):
        return None
    return Layout(columns=names, halves=halves)


def is_row(text: str) -> bool:
    """Return whether a line begins as a row does."""
    return _ROW_HEAD.match(text) is not None


class RowReader:
    """Puts rows together: nccl-tests prints each in three pieces, and others write in between."""

    def __init__(self, layout: Layout) -> None:
        """Read rows of one table."""
        self._layout = layout
        self._tokens: list[str] = []
        self._damaged: list[str] = []

    def _damage(self, row: str) -> None:
        if len(self._damaged) < MOST_DAMAGED:
            self._damaged.append(row[:200])

    @property
    def damaged(self) -> tuple[str, ...]:
        """Rows that couldn't be read, and the one that is still unfinished."""
        return (*self._damaged, *([" ".join(self._tokens)] if self._tokens else ()))

    def feed(self, line: str) -> Row | None:
        """Take a line; return a row when it completes one."""
        if _ROW_HEAD.match(line):
            if self._tokens:
                self._damage(" ".join(self._tokens))
                self._tokens = []
            return self._extend(_split(_own_part(line)))
        words = _split(line)
        if self._tokens and words and all(map(_VALUE.fullmatch, words)):
            return self._extend(words)
        return None

    def _extend(self, words: list[str]) -> Row | None:
        self._tokens += words
        if len(self._tokens) < self._layout.width:
            return None
        tokens, self._tokens = self._tokens, []
        try:
            return read_row(tokens, self._layout)
        except Damaged as damaged:
            self._damage(str(damaged))
            return None


def read_row(tokens: list[str], layout: Layout) -> Row:
    """Read a whole row.

    Raises:
        Damaged: it has another number of columns, or a column isn't a number.
    """
    if len(tokens) != layout.width:
        raise Damaged(" ".join(tokens))
    try:
        halves = [_half(tokens, start, layout) for start in layout.halves]
        return Row(
            size=int(tokens[0]),
            count=int(tokens[1]),
            type=tokens[2],
            redop=tokens[3],
            out_of_place=halves[0],
            in_place=halves[-1],
        )
    except ValueError:
        raise Damaged(" ".join(tokens)) from None


def _half(tokens: list[str], start: int, layout: Layout) -> Half:
    time_us, algbw, busbw = map(_finite, tokens[start : start + 3])
    count = tokens[start + 3]
    last = None if count == "N/A" else _finite(count)
    counted = layout.columns[start + 3] == "#wrong"
    return Half(
        time_us=time_us if layout.columns[start] == "time" else None,
        algbw=algbw,
        busbw=busbw,
        wrong=last if counted else None,
        error=None if counted else last,
    )


def _finite(token: str) -> float:
    value = float(token)
    if not math.isfinite(value) or value < 0:
        raise ValueError(token)
    return value


def _split(text: str) -> list[str]:
    """Split at blanks; a bare label such as [0] can sit anywhere in a row."""
    return [word for word in text.split() if not _LABEL.fullmatch(word)]


def _own_part(line: str) -> str:
    """Return a row's part of a line into which another message was written.

    It follows the root column without a blank: "sum      -1gpu003:655:671 [0] NCCL INFO ...".
    """
    foreign = _FOREIGN.search(line)
    return line[: foreign.start(1)] if foreign else line
