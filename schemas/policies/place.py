"""Where a part of an expression stands in the policies file, however YAML writes the text."""

from __future__ import annotations

import re

from ..diagnostics import PathTuple, Span
from ..structure.document import Document

_BLOCK = re.compile(r"[|>][-+0-9]*[ \t]*(#[^\n]*)?\n")


def span_within(document: Document, path: PathTuple, text: str, offset: int, length: int) -> Span:
    """Return the place of `text[offset : offset + length]`, the value at `path`.

    Falls back to the whole value where YAML writes the text in another way (escapes in quotes).
    """
    whole = document.locate(path) or Span(line=1, column=1, end_line=1, end_column=2)
    key = document.locate(path, key=True)
    if key is None or offset >= len(text):
        return whole
    lines = document.text.split("\n")
    start = sum(len(line) + 1 for line in lines[: key.end_line - 1]) + key.end_column - 1
    at = _aligned(document.text, _value_start(document.text, start), text, offset)
    if at is None:
        return whole
    found = document.span(at, at + max(1, length))
    return found if found.column > 0 else whole


def offset_of(text: str, line: int | None, column: int | None) -> int | None:
    """Return the offset from 0 of a line and column that count from 1."""
    if line is None or column is None:
        return None
    lines = text.split("\n")
    return sum(len(each) + 1 for each in lines[: line - 1]) + column - 1


def _value_start(source: str, after_key: int) -> int:
    """Return where the characters of a value begin: after the colon and what introduces it."""
    at = source.find(":", after_key) + 1
    while at < len(source) and source[at] in " \t\r\n":
        at += 1
    if block := _BLOCK.match(source, at):
        return block.end()
    return at + 1 if source[at : at + 1] in {'"', "'"} else at


def _aligned(source: str, at: int, text: str, offset: int) -> int | None:
    """Walk the source beside the text, white space aside; return where `text[offset]` stands."""
    for index, character in enumerate(text):
        if character.isspace():
            continue
        while at < len(source) and source[at].isspace():
            at += 1
        if source[at : at + 1] != character:
            return None
        if index >= offset:
            return at
        at += 1
    return None
