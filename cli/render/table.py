"""Tables: aligned by cell, in as many columns as fit, with long text wrapped in its column."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO
from typing import NamedTuple

from rich.console import Console as RichConsole
from rich.table import Table
from rich.text import Text

from ..console import Console, shorten, width


class Column(NamedTuple):
    """One column."""

    title: str = ""
    right: bool = True
    """Whether its cells end where the column ends: figures."""
    may_go: int = 0
    """Left out first where there is no room: the highest; 0: never."""
    wraps: bool = False
    """Whether its cells go on in the next line, word by word, where there is no room."""
    least: int = 0
    """Columns that its cells may be cut down to, in their middle; 0: they stay whole."""


class Rendered(NamedTuple):
    """A table as lines."""

    lines: list[str]
    """The titles, if there are any, then the rows."""
    dropped: list[str]
    """Titles of the columns that there was no room for."""


def tabulate(
    columns: Sequence[Column],
    rows: Sequence[Sequence[str]],
    console: Console,
    *,
    indent: int = 0,
    gap: int = 2,
) -> Rendered:
    """Lay out a table. Only a terminal has columns left out or cells cut: pipes get everything.

    Args:
        columns: what the columns are; no titles where none has one.
        rows: a cell for each column; cells may be painted.
        console: what it is written on.
        indent: columns left empty before each line.
        gap: columns between two cells.
    """
    cells = [[Text.from_ansi(cell) for cell in row] for row in rows]
    sizes = [
        max([width(column.title), *(row[number].cell_len for row in cells)])
        for number, column in enumerate(columns)
    ]
    kept = list(range(len(columns)))
    if console.terminal:
        room = console.width - indent
        smallest = [
            _smallest(column, sizes[number], [row[number] for row in cells])
            for number, column in enumerate(columns)
        ]
        while (needed := _breadth(smallest, kept, gap)) > room:
            going = max(kept, key=lambda number: columns[number].may_go)
            if not columns[going].may_go:
                break
            kept.remove(going)
        spare = max(0, room - needed)
        for number in kept:
            if columns[number].least:
                grown = min(spare, sizes[number] - smallest[number])
                sizes[number] = smallest[number] + grown
                spare -= grown
        room = max(room, needed)
    else:
        room = _breadth(sizes, kept, gap)
    mark = "…" if console.unicode else "~"
    table = _table([columns[number] for number in kept], gap)
    for row in cells:
        table.add_row(*(_cut(row[n], sizes[n], mark) if columns[n].least else row[n] for n in kept))
    return Rendered(
        lines=[f"{' ' * indent}{line}".rstrip() for line in _drawn(table, console, room)],
        dropped=[column.title for number, column in enumerate(columns) if number not in kept],
    )


def _smallest(column: Column, size: int, cells: list[Text]) -> int:
    """Return the columns that a column needs at least: no word is broken."""
    title = width(column.title)
    if column.least:
        return max(title, min(size, column.least))
    if column.wraps:
        return max([title, *(width(word) for cell in cells for word in cell.plain.split())])
    return size


def _breadth(sizes: list[int], kept: list[int], gap: int) -> int:
    return sum(sizes[number] for number in kept) + gap * (len(kept) - 1)


def _table(columns: Sequence[Column], gap: int) -> Table:
    table = Table(
        box=None,
        pad_edge=False,
        padding=(0, gap, 0, 0),
        show_header=any(column.title for column in columns),
        header_style="",
    )
    for column in columns:
        table.add_column(
            Text(column.title),
            justify="right" if column.right else "left",
            no_wrap=not column.wraps,
        )
    return table


def _drawn(table: Table, console: Console, room: int) -> list[str]:
    screen = RichConsole(
        file=StringIO(),
        width=room,
        color_system="standard" if console.colour else None,
        force_terminal=console.colour,
        no_color=not console.colour,
        legacy_windows=False,
        highlight=False,
    )
    with screen.capture() as drawn:
        screen.print(table)
    return drawn.get().rstrip("\n").split("\n")


def _cut(cell: Text, size: int, mark: str) -> Text:
    """Return the cell in so many columns; one that is cut loses its colours."""
    return cell if cell.cell_len <= size else Text(shorten(cell.plain, size, mark))
