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
_PER_HALF = 4
_PER_ITERATION = 4
"""More columns after each half when times of single iterations are asked for."""


MOST_DAMAGED = 20
"""Rows that are kept though they can't be read: one is enough for a verdict."""


class Damaged(ValueError):  # noqa: N818  # the line is, the program isn't
    """A row that can't be read; the message is the row."""


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """Which columns a table has."""

    root: bool
    """A column with the root rank, since nccl-tests 2.12."""
    counts_wrong: bool
    """A count of wrong values since 2.12, a largest error before."""
    per_iteration: bool = False
    timestamp: bool = False

    @property
    def half_width(self) -> int:
        """Number of columns of each half."""
        return _PER_HALF + (_PER_ITERATION if self.per_iteration else 0)

    @property
    def head_width(self) -> int:
        """Number of columns before the halves: size, count, type, redop and perhaps root."""
        return 5 if self.root else 4

    @property
    def width(self) -> int:
        """Number of tokens in a row."""
        return self.head_width + 2 * self.half_width + (2 if self.timestamp else 0)


def layout_of(line: str) -> Layout | None:
    """Return the layout that a line declares, None when it isn't the line with the column names."""
    names = line.lstrip("# ").split()
    if not line.startswith("#") or names[:1] != ["size"] or names.count("busbw") != 2:  # noqa: PLR2004  # two halves
        return None
    return Layout(
        root="root" in names,
        counts_wrong="#wrong" in names,
        per_iteration="per-iteration" in line,
        timestamp="timestamp" in names,
    )


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
    start, width = layout.head_width, layout.half_width
    try:
        return Row(
            size=int(tokens[0]),
            count=int(tokens[1]),
            type=tokens[2],
            redop=tokens[3],
            out_of_place=_columns(tokens[start : start + _PER_HALF], layout),
            in_place=_columns(tokens[start + width : start + width + _PER_HALF], layout),
        )
    except ValueError:
        raise Damaged(" ".join(tokens)) from None


def _columns(tokens: list[str], layout: Layout) -> Half:
    time_us, algbw, busbw = map(_finite, tokens[:3])
    last = None if tokens[3] == "N/A" else _finite(tokens[3])
    if layout.counts_wrong:
        return Half(time_us=time_us, algbw=algbw, busbw=busbw, wrong=last)
    return Half(time_us=time_us, algbw=algbw, busbw=busbw, wrong=None, error=last)


def _finite(token: str) -> float:
    value = float(token)
    if not math.isfinite(value) or value < 0:
        raise ValueError(token)
    return value


def _split(text: str) -> list[str]:
    """Split at blanks; a bare label such as [0] can sit anywhere in a row."""
    return [word for word in text.split() if not _LABEL.fullmatch(word)]


def _own_part(line: str) -> str:
    """Return a row's part of a line into which somebody else's message was written.

    It follows the root column without a blank: "sum      -1gpu003:655:671 [0] NCCL INFO ...".
    """
    foreign = _FOREIGN.search(line)
    return line[: foreign.start(1)] if foreign else line
