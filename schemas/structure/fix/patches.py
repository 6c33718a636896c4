"""Patches of a text from fixes of its document."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeAlias

from ...diagnostics import Patch, PathTuple
from ..compose import resolve
from ..document import Document, Offsets
from .edits import Fix, Insert, Quote, Remove, RenameKey, Replace, ReplaceWord

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
        """Whether it is between brackets."""
        return self.holder is not None and (self.holder.is_flow or self.holder.in_flow)

    def entry(self, step: str | int) -> Place | None:
        """Return one entry; None when it isn't there. What an alias expands to is elsewhere."""
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
        return self._sibling(-1)

    @property
    def following(self) -> Place | None:
        """The entry after this one."""
        return self._sibling(1)

    def _sibling(self, distance: int) -> Place | None:
        if self.holder is None:
            return None
        step = self.document.sibling(self.holder.value, self.step, distance)
        return None if step is None else self.holder.entry(step)


def place_of(document: Document, path: PathTuple) -> Place | None:
    """Return the place of the entry at `path`; None when it isn't there."""
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


_COMMA = re.compile(r"\s*,[ \t]*")
_COLON = re.compile(r"[ \t]*:\s*")
_DASH = re.compile(r"-[ \t]+$")


def removal(place: Place) -> tuple[int, int, str] | None:
    """Return start, end and what is left there, or None where taking it out isn't safe."""
    if place.holder is None:
        return None
    if place.holder.is_flow:
        return _from_flow(place, place.holder)
    return _from_block(place, place.holder)


def _from_flow(place: Place, holder: Place) -> tuple[int, int, str]:
    """Take an entry from between brackets, with one comma."""
    document, text = place.document, place.document.text
    comma = _COMMA.match(text, place.end, holder.offsets.end)
    end = comma.end() if comma else place.end
    line_start, _, after = document.line(place.start)
    alone = text[line_start : place.start].isspace() and document.line(end)[2] == after
    if alone and rest_is_comment(document, end):
        return line_start, after, ""
    before = place.previous
    if comma or before is None or document.line(before.end)[0] != line_start:
        return place.start, end, ""
    return before.end, end, ""


def _from_block(place: Place, holder: Place) -> tuple[int, int, str] | None:
    """Take an entry's lines; where its line starts with a dash, the next entry moves up."""
    document, text = place.document, place.document.text
    start = _dash(place) if isinstance(holder.value, list) else place.start
    if start is None or not rest_is_comment(document, place.end):
        return None
    following = place.following
    if following is None and place.previous is None:
        return _emptied(place, holder, start)
    line_start = document.line(start)[0]
    lead = text[line_start:start]
    _, line_end, after = document.line(place.end)
    if not lead.strip(" \t"):
        if after == line_end:  # the last line, and nothing ends it
            before = document.line(max(0, line_start - 1))
            return before[1], after, ""
        return line_start, after, ""
    if lead.strip(" \t-") or following is None:
        return None
    up_to = following.start
    if isinstance(holder.value, list):
        dash = _dash(following)
        up_to = place.end if dash is None else dash
    return None if text[line_end:up_to].strip() else (start, up_to, "")


def _emptied(place: Place, holder: Place, start: int) -> tuple[int, int, str]:
    """Leave empty brackets in the place of the only entry."""
    brackets = "[]" if isinstance(holder.value, list) else "{}"
    colon = _COLON.fullmatch(place.document.text, holder.offsets.key_end, start)
    if holder.offsets.key_end and colon:
        after_colon = place.document.text.index(":", holder.offsets.key_end) + 1
        return after_colon, place.end, f" {brackets}"
    key_line = place.document.line(holder.offsets.key_start)[0]
    in_its_column = start - place.document.line(start)[0] == holder.offsets.key_start - key_line
    # A list may be in the column of its key, brackets may not.
    return start, place.end, f"  {brackets}" if in_its_column else brackets


def _dash(place: Place) -> int | None:
    """Return the place of the dash of a list's item."""
    line_start = place.document.line(place.start)[0]
    dash = _DASH.search(place.document.text[line_start : place.start])
    return line_start + dash.start() if dash else None


_Edit: TypeAlias = "tuple[int, int, str] | None"
"""Start, end and the text between them afterwards."""

_PLAIN = re.compile(r"(?![-?:]([ \t]|$))[^\s&*!|>'\"%@`#,\[\]{}][^\n\r]*")
_NEVER_PLAIN = re.compile(r": |:$| #|[ \t]$|[\x00-\x1f\x7f]")
_NEVER_PLAIN_IN_FLOW = re.compile(r"[,\[\]{}]|:(?=[,\[\]{}])")


def patch_of(fix: Fix, document: Document) -> Patch | None:
    """Return the patch that does what a fix says, or None where that isn't certain."""
    edit: Callable[[Document, Any], _Edit] = _EDITS[type(fix)]
    found = edit(document, fix)
    if found is None:
        return None
    start, end, replacement = found
    return Patch(span=document.exact(start, end), replacement=replacement)


def word_patch(document: Document, path: PathTuple, word: str, *, at_key: bool) -> Patch | None:
    """Return the patch that puts the right word in the place of a value's or a key's."""
    return patch_of(RenameKey(path, word) if at_key else ReplaceWord(path, word), document)


def yaml_text(word: str, *, in_flow: bool = True) -> str:
    """Write text so that YAML reads it as that text: plain where it can be, else in quotes."""
    try:
        is_text = isinstance(resolve(word), str)
    except ValueError:
        is_text = False
    plain = is_text and _may_be_plain(word, in_flow=in_flow)
    return word if plain else json.dumps(word, ensure_ascii=False)


def _may_be_plain(word: str, *, in_flow: bool) -> bool:
    refused = _NEVER_PLAIN.search(word) or (in_flow and _NEVER_PLAIN_IN_FLOW.search(word))
    return _PLAIN.fullmatch(word) is not None and not refused


def fitting(text: str, *, in_flow: bool) -> str:
    """Quote a plain scalar that would end too early where it is put."""
    if text[:1] in {"", "{", "[", '"', "'"} or _may_be_plain(text, in_flow=in_flow):
        return text
    return json.dumps(text, ensure_ascii=False)


def _replace(document: Document, fix: Replace) -> _Edit:
    place = place_of(document, fix.path)
    return None if place is None else _put(place, fitting(fix.text, in_flow=place.in_flow))


def _put(place: Place, text: str) -> _Edit:
    """Put a text in the place of a value, whatever its shape."""
    tagged = "!" in place.document.text[place.offsets.start : place.content]
    if place.kind == "*" or tagged or place.holder is None:
        return None
    gap = place.document.text[place.offsets.key_end : place.content]
    on_own_lines = place.is_block or place.kind == ""
    if on_own_lines and place.offsets.key_end:
        return _after_colon(place, gap, text)
    before = place.document.text[place.content - 1 : place.content]
    return place.content, place.end, f" {text}" if before == "-" else text


def _after_colon(place: Place, gap: str, text: str) -> _Edit:
    """Put a value behind its key's colon, in the place of nothing or of a block of lines."""
    colon = place.offsets.key_end + gap.find(":") + 1
    if ":" not in gap:
        follows = place.document.text[place.offsets.key_end :]
        if not follows.startswith(":"):
            return None
        colon = place.offsets.key_end + 1
    if gap.replace(":", "", 1).strip():
        return None
    return colon, max(colon, place.end), f" {text}"


def _replace_word(document: Document, fix: ReplaceWord) -> _Edit:
    place = place_of(document, fix.path)
    if place is None or not isinstance(place.value, str | int | float | bool | None):
        return None
    if place.kind == '"':
        return _put(place, json.dumps(fix.word, ensure_ascii=False))
    if place.kind == "'" and fix.word.isprintable():
        return _put(place, "'" + fix.word.replace("'", "''") + "'")
    return _put(place, yaml_text(fix.word, in_flow=place.in_flow))


def _quote(document: Document, fix: Quote) -> _Edit:
    place = place_of(document, fix.path)
    if place is None or place.value is None or isinstance(place.value, str | dict | list):
        return None
    return _put(place, json.dumps(document.text[place.content : place.offsets.end]))


def _remove(document: Document, fix: Remove) -> _Edit:
    place = place_of(document, fix.path)
    return None if place is None or is_odd_key(place) else removal(place)


def _rename_key(document: Document, fix: RenameKey) -> _Edit:
    place = place_of(document, fix.path)
    if place is None or place.holder is None or not place.offsets.key_end:
        return None
    if fix.key in place.holder.value or is_odd_key(place):
        return None
    _, _, start, end = place.offsets
    return start, end, yaml_text(fix.key, in_flow=place.in_flow)


def is_odd_key(place: Place) -> bool:
    """Say whether a key has an anchor, is an alias, or is written with a question mark."""
    text, start = place.document.text, place.offsets.key_start
    if not place.offsets.key_end:
        return False
    before = text[place.document.line(start)[0] : start].rstrip()
    return text.startswith(("&", "*", "!", "?"), start) or before.endswith("?")


def _insert(document: Document, fix: Insert) -> _Edit:
    path, key, text = fix.path, fix.key, fix.text
    while (place := place_of(document, path)) is None:
        if not path or isinstance(path[-1], int):
            return None
        text = f"{yaml_text(key)}: {fitting(text, in_flow=True)}"
        path, key, text = path[:-1], str(path[-1]), f"{{{text}}}"
    if not isinstance(place.value, dict) or key in place.value:
        return None
    in_flow = place.is_flow
    entry = f"{yaml_text(key, in_flow=in_flow)}: {fitting(text, in_flow=in_flow)}"
    if place.kind == "{":
        return _into_flow(place, entry, first=fix.first)
    return _into_block(place, entry, first=fix.first) if place.is_block else None


def _into_flow(place: Place, entry: str, *, first: bool) -> _Edit:
    top, bottom = place.first, place.last
    if top is None or bottom is None:
        # All of it: two insertions into nothing would run into each other.
        return place.content, place.offsets.end, f"{{{entry}}}"
    if first:
        return top.start, top.start, f"{entry}, "
    return bottom.end, bottom.end, f", {entry}"


def _into_block(place: Place, entry: str, *, first: bool) -> _Edit:
    document = place.document
    top, bottom = place.first, place.last
    if top is None or bottom is None or is_odd_key(top) or is_odd_key(bottom):
        return None
    start = top.start
    indentation = " " * (start - document.line(start)[0])
    if first:
        return start, start, f"{entry}{newline(document)}{indentation}"
    end = bottom.end
    if not rest_is_comment(document, end):
        return None
    line_end = document.line(end)[1]
    return line_end, line_end, f"{newline(document)}{indentation}{entry}"


_EDITS: dict[type, Any] = {
    Replace: _replace,
    ReplaceWord: _replace_word,
    Quote: _quote,
    Insert: _insert,
    Remove: _remove,
    RenameKey: _rename_key,
}
