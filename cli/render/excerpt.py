"""The line of the source that a finding is about, with a caret under the part to blame."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gcluster.cli.render.cells import columns, width

if TYPE_CHECKING:
    from gcluster.cli.render.surface import Surface, Tone
    from gcluster.schemas.diagnostics import Span

_CUT = "…"
_LEAD = 0.4
"""Share of the room that stays to the left of the caret when a long line is cut."""


def source_line(text: str, number: int) -> str | None:
    """Return line `number` (from 1) of a text; None where it has no such line."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return lines[number - 1] if 0 < number <= len(lines) else None


def excerpt(text: str, span: Span, surface: Surface, tone: Tone) -> list[str]:
    """Return the gutter, the line and the caret line; nothing where the text has no such line.

    Any span is taken: what reaches beyond the line is cut to it.
    """
    line = source_line(text, span.line)
    if line is None:
        return []
    number = str(span.line)
    room = max(12, surface.width - len(number) - 3)
    shown, offset, length = _window(line, span, room)
    gutter = " " * len(number)
    bar = surface.paint("gutter", "|")
    code = f"{surface.paint('gutter', number)} {bar} {surface.plain(shown)}"
    caret = surface.paint(tone, "^" * length)
    return [f"{gutter} {bar}", code.rstrip(), f"{gutter} {bar} {' ' * offset}{caret}"]


def _window(line: str, span: Span, room: int) -> tuple[str, int, int]:
    """Return what is shown of the line, the columns before the caret, and the caret's length."""
    cells = columns(line)
    start = min(max(span.column - 1, 0), len(cells))
    end = span.end_column - 1 if span.end_line == span.line else len(cells)
    end = min(max(end, start), len(cells))
    before = sum(map(width, cells[:start]))
    length = max(1, sum(map(width, cells[start:end])))
    if sum(map(width, cells)) <= room:
        return "".join(cells), before, length
    return _clipped(cells, start, before, length, room)


def _clipped(
    cells: list[str], start: int, before: int, length: int, room: int
) -> tuple[str, int, int]:
    """Cut a long line around its caret; cut ends are marked."""
    first, offset = 0, before
    lead = int(room * _LEAD)
    if before > lead and before + length > room - 1:
        first, offset = start, 0
        while first > 0 and offset + width(cells[first - 1]) <= lead:
            first -= 1
            offset += width(cells[first])
    head = _CUT if first else ""
    shown, used, last = [head], len(head), first
    while last < len(cells) and used + width(cells[last]) <= room - 1:
        shown.append(cells[last])
        used += width(cells[last])
        last += 1
    if last < len(cells):
        shown.append(_CUT)
    offset += len(head)
    return "".join(shown), offset, max(1, min(length, used - offset))
