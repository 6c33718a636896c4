"""Say in plain words what the YAML parser means. Loaded only when it complains."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .composed import Composed

if TYPE_CHECKING:
    from yaml.error import MarkedYAMLError


_UNPRINTABLE = re.compile(
    "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"  # YAML 1.2, c-printable
)

_PLAIN_WORDS = {
    "mapping values are not allowed in this context": (
        'a second ": " where only one key and value can stand',
        'put text that holds ": " in quotes, or mend the indentation of this line',
    ),
    "could not find expected ':'": (
        'a key without its ":"',
        "each line of a mapping is key: value, with a space after the colon",
    ),
    "did not find expected key": (
        "this line fits neither the block above it nor the one around it",
        "lines of one block start in the same column; text with special characters needs quotes",
    ),
    "did not find expected ',' or '}'": (
        'the "{" of line {line} is not closed here',
        'separate entries by "," and close with "}"',
    ),
    "did not find expected ',' or ']'": (
        'the "[" of line {line} is not closed here',
        'separate items by "," and close with "]"',
    ),
    "did not find expected '-' indicator": (
        "this line is not an item of the list above it",
        'items of one list start with "- " in the same column',
    ),
    "found unexpected end of stream": (
        "the quote opened in line {line} is never closed",
        "add the closing quote",
    ),
    "found character that cannot start any token": (
        "text can't start with {character} unless it is quoted",
        "put the value in quotes",
    ),
    "did not find expected alphabetic or numeric character": (
        'a "*" or "&" without a name',
        'text that starts with "*" or "&" needs quotes',
    ),
    "found unknown escape character": (
        "a backslash that means nothing in double quotes",
        "use single quotes, or write two backslashes",
    ),
    "found undefined tag handle": (
        "a tag that nothing defines",
        "a spec is plain data: write the value without a tag",
    ),
    "block sequence entries are not allowed in this context": (
        'a list item ("- ") can\'t stand here',
        "start the list on a line of its own, under its key",
    ),
}


_FAR_FROM_CAUSE = frozenset({"found unexpected end of stream", "could not find expected ':'"})
"""Problems noticed long after the quote or key that they are about."""


def report_syntax(result: Composed, text: str, error: MarkedYAMLError) -> None:
    """Report where the parser stopped, why, and what to write."""
    mark = error.problem_mark or error.context_mark
    place = min(mark.index, len(text)) if mark else 0
    if _is_tab(text, place):
        result.report(
            "GC011",
            "a tab in the indentation: YAML indents by spaces only",
            text.find("\t", text.rfind("\n", 0, place) + 1),
            place + 1,
            "replace the tab by two spaces",
        )
        return
    problem = error.problem or "the text can't be read"
    summary, hint = _PLAIN_WORDS.get(problem, (problem, ""))
    opened = error.context_mark.index if error.context_mark else place
    if problem in _FAR_FROM_CAUSE:
        place = opened
    mend = None
    range_start = _unquoted_range(text, place)
    if range_start is not None:
        place, summary = range_start, "a host range inside { } or [ ] needs quotes"
        written = f"{text[place : place + 200].split(']', 1)[0]}]"
        hint, mend = f'write "{written}"', (place + len(written), f'"{written}"')
    summary = summary.replace("{line}", str(result.line_of(opened)))
    summary = summary.replace("{character}", repr(text[place : place + 1]))
    result.report("GC010", f"not valid YAML: {summary}", place, place + 1, hint, mend=mend)


def _unquoted_range(text: str, place: int) -> int | None:
    """Return where gpu[001-064] starts when its bracket is what the parser stumbled over."""
    if not re.match(r"\[[0-9,-]+\]", text[place : place + 100]):
        return None
    name = re.search(r"[A-Za-z][A-Za-z0-9.-]*$", text[max(0, place - 100) : place])
    return place - len(name[0]) if name else None


def _is_tab(text: str, place: int) -> bool:
    """Say whether a tab stands in the white space that the parser stopped in or after."""
    line_start = text.rfind("\n", 0, place) + 1
    indentation = re.match(r"[ \t]*", text[line_start:])
    return "\t" in (indentation[0] if indentation else "") or text[place : place + 1] == "\t"


def report_character(result: Composed, text: str) -> None:
    """Report the first character that YAML does not allow in a text."""
    match = _UNPRINTABLE.search(text)
    place = match.start() if match else 0
    shown = f"U+{ord(text[place]):04X}" if match else "a character"
    result.report(
        "GC017",
        f"{shown} is not a text character",
        place,
        place + 1,
        "is this the right file? A spec is text in UTF-8",
    )
