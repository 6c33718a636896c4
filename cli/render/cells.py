"""How wide text is on a terminal, and text made safe to show there."""

from __future__ import annotations

import unicodedata

TAB = 4
"""Columns between tab stops in excerpts."""


def cell_width(character: str) -> int:
    """Return how many columns a printable character takes: 0, 1 or 2."""
    if character.isascii():
        return 1

    if unicodedata.category(character) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1


def width(text: str) -> int:
    """Return how many columns a printable text takes."""
    return len(text) if text.isascii() else sum(map(cell_width, text))


def pad(text: str, columns: int) -> str:
    """Fill up with spaces on the right; longer text stays as it is."""
    return text + " " * (columns - width(text))


def printable(text: str) -> str:
    """Return the text with control characters shown as escapes, so that none reaches a terminal.

    What people write into a spec is quoted in messages: it must not move the cursor or the colour.
    """
    return text if text.isprintable() else "".join(map(_shown, text))


def _shown(character: str, *, unicode: bool = True) -> str:
    if character.isprintable() and (unicode or character.isascii()):
        return character
    if character == "\t":
        return " " * TAB
    return character.encode("unicode_escape", "replace").decode("ascii")


def columns(line: str, *, unicode: bool = True) -> list[str]:
    """Split a source line into one shown string per character, tabs filled up to their stops.

    Without Unicode other characters are shown as escapes, so that a caret still meets its mark.
    """
    shown: list[str] = []
    at = 0
    for character in line:
        text = " " * (TAB - at % TAB) if character == "\t" else _shown(character, unicode=unicode)
        shown.append(text)
        at += width(text)
    return shown
