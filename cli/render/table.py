"""Plain tables: the first columns to the left, figures to the right, as many as there is room."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..console import Console, pad, width

_GAP = 2


class Column(NamedTuple):
    """One column."""

    title: str
    right: bool = True
    may_go: int = 0
    """Left out first where there is no room: the highest; 0: never."""


class Grid(NamedTuple):
    """A table as lines."""

    lines: list[str]
    """The titles, then a line for each row."""
    gone: list[str]
    """Titles of the columns that there was no room for."""


def grid(columns: Sequence[Column], rows: Sequence[Sequence[str]], console: Console) -> Grid:
    """Lay out a table. Only a person's terminal has columns left out: pipes get all of them."""
    sizes = [
        max(width(column.title), *(width(row[number]) for row in rows))
        for number, column in enumerate(columns)
    ]
    kept = list(range(len(columns)))
    while console.live and _breadth(sizes, kept) > console.width:
        going = max(kept, key=lambda number: columns[number].may_go)
        if not columns[going].may_go:
            break
        kept.remove(going)
    table = [[column.title for column in columns], *rows]
    return Grid(
        lines=[_line(row, columns, sizes, kept) for row in table],
        gone=[column.title for number, column in enumerate(columns) if number not in kept],
    )


def _breadth(sizes: list[int], kept: list[int]) -> int:
    return sum(sizes[number] for number in kept) + _GAP * (len(kept) - 1)


def _line(row: Sequence[str], columns: Sequence[Column], sizes: list[int], kept: list[int]) -> str:
    shown = [
        " " * (sizes[number] - width(row[number])) + row[number]
        if columns[number].right
        else pad(row[number], sizes[number])
        for number in kept
    ]
    return (" " * _GAP).join(shown).rstrip()
