"""A composed document: its data, its text and where each part is in it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import msgspec

from ..diagnostics import Diagnostic, Patch, PathTuple, Severity, Span


class Composed:
    """What came out: the document (None when the text can't be read), findings, spoilt places."""

    def __init__(self, text: str, file: str) -> None:
        """Start with nothing read."""
        self.document: Document | None = None
        self.diagnostics: list[Diagnostic] = []
        self.broken: set[PathTuple] = set()
        """Paths whose value was reported here already: nothing more is to be said about them."""
        self._places = Document(data=None, text=text, root=0, marks={})
        self._file = file

    def report(
        self,
        code: str,
        summary: str,
        start: int,
        end: int,
        hint: str = "",
        *,
        fix: tuple[int, str] | None = None,
    ) -> None:
        """Add an error at character offsets.

        Args:
            code: of the diagnostic.
            summary: what is wrong.
            start: first character to blame.
            end: behind the last.
            hint: what to write instead.
            fix: the certain fix: where what it replaces ends, and the text that replaces it.
        """
        patch = None
        if fix is not None:
            patch = Patch(span=self._places.exact(start, fix[0]), replacement=fix[1])
        self.diagnostics.append(
            Diagnostic(
                code=code,
                severity=Severity.ERROR,
                summary=summary,
                file=self._file,
                span=self._places.span(start, end),
                hint=hint,
                patch=patch,
            )
        )

    def line_of(self, offset: int) -> int:
        """Return the line, from 1, that a character offset is on."""
        return self._places.span(offset, offset).line


_OFFSET_BITS = 24
_OFFSET_MASK = (1 << _OFFSET_BITS) - 1
MAX_OFFSET = _OFFSET_MASK
"""Largest character offset that fits a mark; far above the size limit of a spec."""


def pack(start: int, end: int, key_start: int = 0, key_end: int = 0) -> int:
    """Pack the offsets of a value, and of its key where it has one, into one integer.

    One integer an entry keeps 10,000 hosts small and invisible to the garbage collector.
    """
    bits = _OFFSET_BITS
    return start | end << bits | key_start << 2 * bits | key_end << 3 * bits


class Offsets(NamedTuple):
    """Characters of the text that a value takes, and its key where it has one (else 0, 0).

    A value starts at its anchor or tag, if any. A block of lines ends where the next thing starts.
    """

    start: int
    end: int
    key_start: int
    key_end: int


class Document:
    """Plain data (dict, list, str, int, float, bool, None) with marks."""

    def __init__(self, *, data: Any, text: str, root: int, marks: dict[int, Any]) -> None:
        """Hold the data, its text and the packed marks by the id of each container."""
        self.data = data
        self.text = text
        self._root = root
        self._marks = marks
        self._orders: dict[int, tuple[list[Any], dict[Any, int]]] = {}

    def locate(self, path: PathTuple, *, key: bool = False) -> Span | None:
        """Return the place of the value at `path`, or its key; else the nearest parent there is.

        A value that is a block of lines or empty is shown by its key; list items and the root by
        their first line.
        """
        node, mark = self.data, self._root
        for step in path:
            marks = self._marks.get(id(node))
            try:
                mark, node = marks[step], node[step]  # type: ignore[index]  # checked by except
            except (KeyError, IndexError, TypeError):
                key = True
                break
        start, end, key_start, key_end = _unpacked(mark)
        if key_end and (key or start == end or "\n" in self.text[start:end]):
            start, end = key_start, key_end
        return self.span(start, end)

    def span(self, start: int, end: int) -> Span:
        """Turn character offsets into a span, cut at the end of its first line."""
        starts = self._line_starts
        line = bisect_right(starts, start)
        line_end = starts[line] if line < len(starts) else len(self.text)
        within = self.text[starts[line - 1] : line_end].rstrip("\r\n")
        column = start - starts[line - 1]
        width = max(1, min(end - start, len(within.rstrip()) - column))
        return Span(line=line, column=column + 1, end_line=line, end_column=column + 1 + width)

    @property
    def root(self) -> Offsets:
        """The place of the root."""
        return _unpacked(self._root)

    def steps(self, container: Any) -> list[Any]:
        """Return keys or indexes of a mapping or list in the order of the text; else nothing."""
        return self._order(container)[0]

    def sibling(self, container: Any, step: str | int, distance: int) -> Any:
        """Return the key or index so many entries after one, or None when there is none."""
        steps, numbers = self._order(container)
        number = numbers[step] + distance
        return steps[number] if 0 <= number < len(steps) else None

    def _order(self, container: Any) -> tuple[list[Any], dict[Any, int]]:
        """Return the steps of a container in the order of the text, and their numbers."""
        known = self._orders.get(id(container))
        if known is None:
            marks = self._marks.get(id(container), ())
            steps = list(marks) if isinstance(marks, dict) else list(range(len(marks)))
            steps.sort(key=lambda step: marks[step] & _OFFSET_MASK)
            known = steps, {step: number for number, step in enumerate(steps)}
            self._orders[id(container)] = known
        return known

    def entry(self, container: Any, step: str | int) -> Offsets | None:
        """Return the place of one entry, or None when there is no such entry."""
        marks = self._marks.get(id(container))
        try:
            return _unpacked(marks[step])  # type: ignore[index]  # checked by except
        except (KeyError, IndexError, TypeError):
            return None

    def offset(self, line: int, column: int) -> int:
        """Return the character offset of a line and column, from 1."""
        return self._line_starts[line - 1] + column - 1

    def exact(self, start: int, end: int) -> Span:
        """Turn character offsets into a span that may be empty or go over several lines."""
        line, column = self.position(start)
        end_line, end_column = self.position(end)
        return Span(line=line, column=column, end_line=end_line, end_column=end_column)

    def position(self, offset: int) -> tuple[int, int]:
        """Return line and column, from 1, of a character offset."""
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    def line(self, offset: int) -> tuple[int, int, int]:
        """Return where the line of an offset starts, where its text ends, and the next starts."""
        number = bisect_right(self._line_starts, offset)
        start = self._line_starts[number - 1]
        more = number < len(self._line_starts)
        after = self._line_starts[number] if more else len(self.text)
        return start, start + len(self.text[start:after].rstrip("\r\n")), after

    @cached_property
    def _line_starts(self) -> list[int]:
        return line_starts(self.text)


def line_starts(text: str) -> list[int]:
    """Return the offsets at which lines start; they end at CR, LF, or CR LF."""
    return [0, *(match.end() for match in re.finditer(r"\r\n|\n|\r", text))]


def _unpacked(mark: int) -> Offsets:
    bits = _OFFSET_BITS
    return Offsets(
        mark & _OFFSET_MASK,
        mark >> bits & _OFFSET_MASK,
        mark >> 2 * bits & _OFFSET_MASK,
        mark >> 3 * bits,
    )


class Structured(msgspec.Struct, frozen=True, kw_only=True):
    """What could be typed: all of it (`value`), or the root's fields that hold (`parts`)."""

    value: Any | None
    parts: Mapping[str, Any]
    """Typed fields by attribute name; all of them when `value` is there."""
    diagnostics: tuple[Diagnostic, ...] = ()
    spoilt: frozenset[PathTuple] = frozenset()
    """Paths whose value is unknown: no check may report them."""
    original: Callable[[PathTuple], PathTuple] = lambda path: path
    """From the typed parts' paths to the file's."""
