"""Where an entry of a YAML text begins and ends, as someone who edits that text sees it.

The parser's marks say where a value was noticed; an editor needs to know where its last word is,
whether it stands between brackets, and what is its own line.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any

from ..diagnostics import PathTuple
from ..text.document import Document, Offsets

_PROPERTIES = re.compile(r"(?:[&!][^\s,\[\]{}]*\s+)+")
_REST_OF_LINE = re.compile(r"[ \t]*(?:(?<=[ \t])#.*)?")


class Place:
    """One entry in the text."""

    def __init__(
        self,
        document: Document,
        value: Any,
        offsets: Offsets,
        holder: Place | None = None,
        step: str | int = "",
    ) -> None:
        """Hold a value, where its parser's marks are, what it is an entry of and by which step."""
        self.document = document
        self.value = value
        self.offsets = offsets
        self.holder = holder
        self.step = step
        properties = _PROPERTIES.match(document.text, offsets.start, offsets.end)
        self.content = properties.end() if properties else offsets.start
        """Where the value starts after its anchor and tag."""

    @property
    def kind(self) -> str:
        """First character of the value, such as { [ * | or a quote; "" for an empty value."""
        is_empty = self.content >= self.offsets.end
        return "" if is_empty else self.document.text[self.content]

    @property
    def start(self) -> int:
        """Where the entry starts: at its key where it has one."""
        return self.offsets.key_start if self.offsets.key_end else self.offsets.start

    @cached_property
    def end(self) -> int:
        """Behind the last character of the entry; comments and empty lines are not in it.

        The mark of a block is where the next thing starts: what counts is its last entry's.
        """
        place = self
        while place.is_block and (inner := place.last) is not None:
            place = inner
        end = place.offsets.end
        if place.kind in {"|", ">"}:
            end = place.content + len(self.document.text[place.content : end].rstrip())
        return max(end, place.offsets.key_end)

    @property
    def is_flow(self) -> bool:
        """Whether it is a collection in brackets."""
        return self.kind in {"{", "["}

    @property
    def is_block(self) -> bool:
        """Whether it is a collection written as lines."""
        return isinstance(self.value, dict | list) and self.kind not in {"{", "[", "*"}

    @cached_property
    def in_flow(self) -> bool:
        """Whether it stands between brackets."""
        return self.holder is not None and (self.holder.is_flow or self.holder.in_flow)

    def entry(self, step: str | int) -> Place | None:
        """Return one entry; None when it isn't there. What an alias stands for is elsewhere."""
        where = None if self.kind == "*" else self.document.entry(self.value, step)
        return None if where is None else Place(self.document, self.value[step], where, self, step)

    @property
    def first(self) -> Place | None:
        """The first entry in the text."""
        steps = self.document.steps(self.value)
        return self.entry(steps[0]) if steps else None

    @property
    def last(self) -> Place | None:
        """The last entry in the text."""
        steps = self.document.steps(self.value)
        return self.entry(steps[-1]) if steps else None

    @property
    def previous(self) -> Place | None:
        """The entry before this one in the same mapping or list."""
        return self._beside(-1)

    @property
    def following(self) -> Place | None:
        """The entry after this one."""
        return self._beside(1)

    def _beside(self, distance: int) -> Place | None:
        if self.holder is None:
            return None
        step = self.document.step_beside(self.holder.value, self.step, distance)
        return None if step is None else self.holder.entry(step)


def place_of(document: Document, path: PathTuple) -> Place | None:
    """Return where the entry at `path` stands; None when it isn't there."""
    place: Place | None = Place(document, document.data, document.root)
    for step in path:
        place = place.entry(step) if place is not None else None
    return place


def rest_is_comment(document: Document, offset: int) -> bool:
    """Say whether nothing but a comment follows on the line."""
    end = document.line(offset)[1]
    return _REST_OF_LINE.fullmatch(document.text, offset, end) is not None


def newline(document: Document) -> str:
    """Return how lines of this text end."""
    _, end, after = document.line(0)
    return document.text[end:after] or "\n"
