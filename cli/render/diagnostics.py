"""Findings: what, where, the line with a caret, what to do instead."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from ...schemas.diagnostics import Diagnostic, Severity, Span
from ...schemas.spec.model import REFERENCE_KINDS
from ..console import Console, Tone, columns, printable, width

_TONES: dict[Severity, Tone] = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.NOTE: "note",
}


def diagnostics_text(
    diagnostics: Iterable[Diagnostic], console: Console, sources: Mapping[str, str] | None = None
) -> str:
    """Return the findings as text, in the order given; "" for none.

    Args:
        diagnostics: what was found.
        console: what it is written on.
        sources: file -> its text, for the excerpts.
    """
    found = list(diagnostics)
    split: dict[str, list[str]] = {}
    for diagnostic in found:
        file = diagnostic.file
        if file not in split and (text := (sources or {}).get(file)):
            split[file] = source_lines(text)
        if diagnostic.is_secret and diagnostic.span is not None:
            _mask(split.get(file, []), diagnostic.span)
    return "\n".join(line for diagnostic in found for line in _lines(diagnostic, console, split))


def _mask(lines: list[str], span: Span) -> None:
    """Put asterisks over what may be a secret, for every excerpt of its line."""
    if 0 < span.line <= len(lines):
        line = lines[span.line - 1]
        start, end = span.column - 1, span.end_column - 1
        lines[span.line - 1] = f"{line[:start]}{'*' * (end - start)}{line[end:]}"


def _lines(diagnostic: Diagnostic, console: Console, sources: Mapping[str, list[str]]) -> list[str]:
    tone = _TONES[diagnostic.severity]
    title = console.paint(tone, f"{diagnostic.severity}[{diagnostic.code}]")
    lines = [f"{title}: {console.plain(printable(diagnostic.summary))}"]
    source = sources.get(diagnostic.file)
    if diagnostic.span is not None and source is not None:
        span = diagnostic.span
        place = f"{printable(diagnostic.file)}:{span.line}:{span.column}"
        gutter = " " * len(str(span.line))
        lines.append(f"{gutter}{console.paint('gutter', '-->')} {place}")
        lines += excerpt(source, span, console, tone)
    elif diagnostic.file:
        lines.append(f" {console.paint('gutter', '-->')} {_place(diagnostic)}")
    lines += [
        f"  {console.paint('gutter', '|')} {console.plain(printable(line))}".rstrip()
        for line in diagnostic.detail.splitlines()
    ]
    if diagnostic.hint:
        lines.append(_help(diagnostic, console))
    return lines


def _place(diagnostic: Diagnostic) -> str:
    """Return file, line and column; the start of a file means the file as a whole."""
    span = diagnostic.span
    exact = span is not None and (span.line, span.column) != (1, 1)
    return printable(diagnostic.file) + (f":{span.line}:{span.column}" if span and exact else "")


def _help(diagnostic: Diagnostic, console: Console) -> str:
    """Return the help line; the code of a check leads to its explanation."""
    first, *rest = diagnostic.hint.splitlines() or [""]
    is_check = diagnostic.code[:3] not in {"GC0", "GC9"}
    more = f"   (gcluster explain {diagnostic.code})" if is_check else ""
    text = f"  {console.paint('note', 'help')}: {console.plain(printable(first))}"
    text += console.paint("faint", more)
    return "\n".join([text, *(f"        {console.plain(printable(line))}" for line in rest)])


def summary_line(diagnostics: Iterable[Diagnostic]) -> str:
    """Return "2 errors, 1 warning"; "no findings" where there is none."""
    counts = dict.fromkeys(Severity, 0)
    for diagnostic in diagnostics:
        counts[diagnostic.severity] += 1
    parts = [f"{n} {severity}{'' if n == 1 else 's'}" for severity, n in counts.items() if n]
    return ", ".join(parts) or "no findings"


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


def excerpt(lines: Sequence[str], span: Span, console: Console, tone: Tone) -> list[str]:
    """Return the gutter, the line and the caret line; nothing where there is no such line.

    Any span is taken: what reaches beyond the line is cut to it.
    """
    if not 0 < span.line <= len(lines):
        return []
    number = str(span.line)
    view = _view(concealed(lines[span.line - 1]), span, console, len(number) + 3)
    gutter = " " * len(number)
    bar = console.paint("gutter", "|")
    return [
        f"{gutter} {bar}",
        f"{console.paint('gutter', number)} {bar} {view.text}".rstrip(),
        f"{gutter} {bar} {' ' * view.offset}{console.paint(tone, '^' * view.length)}",
    ]


def _view(line: str, span: Span, console: Console, taken: int) -> _View:
    """Fit the line into what the console leaves next to the gutter."""
    room = max(_LEAST_ROOM, console.width - taken)
    start = min(max(span.column - 1, 0), len(line))
    end = span.end_column - 1 if span.end_line == span.line else len(line)
    end = min(max(end, start), len(line))
    first, last = max(0, start - _FAR * room), start + _FAR * room
    cells = columns(line[first:last], unicode=console.unicode)
    at = start - first
    length = max(1, sum(map(width, cells[at : end - first])))
    if not first and last >= len(line) and sum(map(width, cells)) <= room:
        return _View("".join(cells), sum(map(width, cells[:at])), length)
    kept = _first_kept(cells, at, length, room)
    view = _cut(cells, kept, room, "…" if console.unicode else "~", more=last < len(line))
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


_KEY = re.compile(
    r"(?:passw(?:or)?d|passphrase|secret|token|credential|(?:api|private|access)[_-]?key)"
    r"[\w-]{0,64}[\"']?[ \t]{0,64}:(?=[ \t\"'])[ \t]*",
    re.IGNORECASE,
)
_LOGIN = re.compile(r"(?<=://)[^\s/@\"']{1,256}(?=@)")
"""User and password of a URL."""
_QUOTED = re.compile(r"\"(?:[^\"\\]|\\.)*\"?|'(?:[^']|'')*'?")
_END_IN_FLOW = re.compile(r"[,}\]]")
_END = re.compile(r" #")
_REFERENCE = re.compile(rf"[\"']*(?:{REFERENCE_KINDS}):[\"']*[^\"']")


@lru_cache(maxsize=4)  # findings come in the order of lines, and hundreds may be in one
def concealed(line: str) -> str:
    """Return the line with asterisks over such values; it stays as long as it was.

    References ("env:NAME"), maps and lists are shown: they are no secrets.
    """
    parts, shown_to = [], 0
    opened = re.search(r"[{\[]", line)
    flow_from = len(line) if opened is None else opened.start()
    plain, in_flow = _Ends(line, _END), _Ends(line, _END_IN_FLOW)
    for key in _KEY.finditer(line):
        start = key.end()
        quoted = _QUOTED.match(line, start)
        ends = in_flow if start > flow_from else plain
        end = ends.after(start) if quoted is None else quoted.end()
        if end > max(start, shown_to) and _is_secret(line, start, end):
            start = max(start, shown_to)
            parts += [line[shown_to:start], "*" * (end - start)]
            shown_to = end
    shown = "".join([*parts, line[shown_to:]])
    return _LOGIN.sub(lambda login: "*" * len(login[0]), shown) if "@" in shown else shown


def _is_secret(line: str, start: int, end: int) -> bool:
    return line[start] not in "{[&*|>#" and _REFERENCE.match(line, start, end) is None


class _Ends:
    """Where values without quotes end, from left to right: the line is read once for all.

    A line may hold a hundred thousand keys, and the value of each reach to its end.
    """

    def __init__(self, line: str, mark: re.Pattern[str]) -> None:
        self._line = line
        self._mark = mark
        self._marked, self._end = -1, -1

    def after(self, start: int) -> int:
        """Return the end of the value at `start`, without the spaces before its mark."""
        if start > self._marked:
            found = self._mark.search(self._line, start)
            self._marked = len(self._line) if found is None else found.start()
            self._end = start + len(self._line[start : self._marked].rstrip())
        return max(start, self._end)
