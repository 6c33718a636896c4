"""The text of a message: plain words with CEL in braces, put together for one item."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from .cel import EvaluationError, Expression

_PIECE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|([{}])")
_LONGEST = 200
"""Most characters of one value that are shown."""


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of a message: words, or an expression and where it begins in the message."""

    text: str
    offset: int
    is_expression: bool = False


class TemplateError(Exception):
    """A message whose braces don't match; `offset` says where."""

    def __init__(self, offset: int) -> None:
        """Hold the place of the brace."""
        super().__init__("a brace without its other half")
        self.offset = offset


def pieces(template: str) -> list[Piece]:
    """Split a message.

    Raises:
        TemplateError: a brace has no other half.
    """
    found: list[Piece] = []
    at = 0
    for match in _PIECE.finditer(template):
        if match[2]:
            raise TemplateError(match.start())
        found.append(Piece(text=template[at : match.start()], offset=at))
        if match[1] is None:
            found.append(Piece(text=match[0][0], offset=match.start()))
        else:
            found.append(Piece(text=match[1], offset=match.start(1), is_expression=True))
        at = match.end()
    return [*found, Piece(text=template[at:], offset=at)]


class Template(msgspec.Struct, frozen=True):
    """A message that is ready to be put together."""

    parts: tuple[str | Expression, ...]

    def text(self, variables: Mapping[str, Any]) -> str:
        """Return the message for one item, on one line; "?" stands for what has no value."""
        said = [part if isinstance(part, str) else _said(part, variables) for part in self.parts]
        return " ".join("".join(said).split())


def _said(expression: Expression, variables: Mapping[str, Any]) -> str:
    try:
        return written(expression.value(variables))[:_LONGEST]
    except EvaluationError:
        return "?"


def written(value: Any) -> str:
    """Write a value as a person would read it."""
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    if isinstance(value, list):
        return ", ".join(written(item) for item in value[:_LONGEST]) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{key}: {written(item)}" for key, item in sorted(value.items())) or "none"
    return str(value)
