"""Turn a fix (what to put where in the document) into a patch of the text.

A patch touches what the fix is about and nothing else. None is the answer where a machine can't be
sure: a value reached through an alias, a key with an anchor, text after the entry on its line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, TypeAlias

from ..diagnostics import Patch, PathTuple
from ..text.document import Document
from ..text.scalars import resolve
from .fix import Fix, Insert, Quote, Remove, RenameKey, Replace, ReplaceWord
from .places import Place, newline, place_of, rest_is_comment
from .removal import removal

_Edit: TypeAlias = "tuple[int, int, str] | None"
"""Start, end and what stands between them afterwards."""

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
