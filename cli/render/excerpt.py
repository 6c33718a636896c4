"""The line of the source that a finding is about, with a caret under the part to blame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...schemas.diagnostics import Span
from .cells import columns, width
from .concealed import concealed
from .surface import Surface, Tone

_LEAD = 0.4
"""Share of the room that stays to the left of the caret when a long line is cut."""
_FAR = 4
"""Rooms of characters looked at on either side of a caret: a line may be megabytes long."""
_LEAST_ROOM = 12


class _View(NamedTuple):
    """What is shown of a line: the text, the columns before the caret, the caret's length."""

    text: str
    offset: int
    length: int


def source_lines(text: str) -> list[str]:
    """Split as the loader counts lines: at line feeds, carriage returns and both together."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def excerpt(lines: Sequence[str], span: Span, surface: Surface, tone: Tone) -> list[str]:
    """Return the gutter, the line and the caret line; nothing where there is no such line.

    Any span is taken: what reaches beyond the line is cut to it.
    """
    if not 0 < span.line <= len(lines):
        return []
    number = str(span.line)
    view = _view(concealed(lines[span.line - 1]), span, surface, len(number) + 3)
    gutter = " " * len(number)
    bar = surface.paint("gutter", "|")
    return [
        f"{gutter} {bar}",
        f"{surface.paint('gutter', number)} {bar} {view.text}".rstrip(),
        f"{gutter} {bar} {' ' * view.offset}{surface.paint(tone, '^' * view.length)}",
    ]


def _view(line: str, span: Span, surface: Surface, taken: int) -> _View:
    """Fit the line into what the surface leaves beside the gutter."""
    room = max(_LEAST_ROOM, surface.width - taken)
    start = min(max(span.column - 1, 0), len(line))
    end = span.end_column - 1 if span.end_line == span.line else len(line)
    end = min(max(end, start), len(line))
    first, last = max(0, start - _FAR * room), start + _FAR * room
    cells = columns(line[first:last], unicode=surface.unicode)
    at = start - first
    length = max(1, sum(map(width, cells[at : end - first])))
    if not first and last >= len(line) and sum(map(width, cells)) <= room:
        return _View("".join(cells), sum(map(width, cells[:at])), length)
    kept = _first_kept(cells, at, length, room)
    view = _cut(cells, kept, room, "…" if surface.unicode else "~", more=last < len(line))
    offset = sum(map(width, cells[kept:at])) + (1 if kept else 0)
    return _View(view, offset, max(1, min(length, room - 1 - offset)))


def _first_kept(cells: list[str], at: int, length: int, room: int) -> int:
    """Return the first cell to show, so that the caret has some of the line before it."""
    before = sum(map(width, cells[:at]))
    lead = int(room * _LEAD)
    if before + length < room or before <= lead:
        return 0
    kept, seen = at, 0
    while kept > 0 and seen + width(cells[kept - 1]) <= lead:
        kept -= 1
        seen += width(cells[kept])
    return kept


def _cut(cells: list[str], first: int, room: int, mark: str, *, more: bool) -> str:
    """Return the cells from `first` that fit; ends that are cut are marked."""
    shown, used = [mark] if first else [], 1 if first else 0
    for place in range(first, len(cells)):
        used += width(cells[place])
        if used > room - 1:
            return "".join([*shown, mark])
        shown.append(cells[place])
    return "".join([*shown, mark] if more else shown)
