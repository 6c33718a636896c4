"""The stretch of text that goes when an entry is taken out: its lines, or its part of a line."""

from __future__ import annotations

import re

from .places import Place, rest_is_comment

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
    # A list may stand in the column of its key, brackets may not.
    return start, place.end, f"  {brackets}" if in_its_column else brackets


def _dash(place: Place) -> int | None:
    """Return where the dash of a list's item stands."""
    line_start = place.document.line(place.start)[0]
    dash = _DASH.search(place.document.text[line_start : place.start])
    return line_start + dash.start() if dash else None
