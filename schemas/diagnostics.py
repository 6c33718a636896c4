"""Diagnostics as values: code, place, hint and patch; and suggestions for a wrong word."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from functools import lru_cache
from typing import TypeAlias

import msgspec

PathTuple: TypeAlias = tuple[str | int, ...]
"""Where a value sits in the document: keys and list indexes from the root."""


class Severity(StrEnum):
    """How much a diagnostic weighs: only an error stops a command."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Span(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """A stretch of the source text. Lines and columns count from 1; the end column is exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int


class Patch(msgspec.Struct, frozen=True, kw_only=True):
    """A machine-applicable fix: replace the text at `span` by `replacement`."""

    span: Span
    replacement: str


class Diagnostic(msgspec.Struct, frozen=True, kw_only=True):
    """One finding.

    `code` is stable and never reused (GC0xx structure, GC1xx capacity, GC2xx fabric, GC3xx
    network, GC4xx storage, GC5xx scheduler, GC6xx software, GC7xx hybrid, GC8xx budget and
    policy, GC9xx running). `summary` fits on a line; `detail` may be longer; `hint` says what to
    write or do instead. `span` is None when no place in the file is to blame.
    """

    code: str
    severity: Severity
    summary: str
    detail: str = ""
    path: PathTuple = ()
    file: str = ""
    span: Span | None = None
    hint: str = ""
    patch: Patch | None = None
    is_secret: bool = False
    """What is at the span may be a secret: it is never shown."""

    @property
    def is_error(self) -> bool:
        """Whether this finding stops the command."""
        return self.severity is Severity.ERROR


def in_file_order(diagnostics: list[Diagnostic]) -> list[Diagnostic]:
    """Sort by file, place and code; findings without a place come last."""
    nowhere = Span(line=2**31, column=0, end_line=2**31, end_column=0)
    return sorted(diagnostics, key=lambda d: (d.file, d.span or nowhere, d.code))


def closest(word: str, options: Iterable[str]) -> str | None:
    """Return the option that `word` most likely means, or None when nothing is close."""
    return _closest(word[:64], tuple(sorted(options)))


@lru_cache(maxsize=256)
def _closest(word: str, options: tuple[str, ...]) -> str | None:
    from difflib import get_close_matches  # noqa: PLC0415  # only where a word is wrong

    plain = _plain(word)
    for option in options:
        if _plain(option) == plain:
            return option

    matches = get_close_matches(word, options, n=1, cutoff=0.6)
    return matches[0] if matches else None


def _plain(word: str) -> str:
    """Drop what people mix up: case, hyphens and underscores (maxTime, max-time)."""
    return word.replace("-", "").replace("_", "").casefold()


def listing(options: Iterable[str], *, limit: int = 12) -> str:
    """Return the options for a message, cut after `limit`."""
    words = sorted(options)
    shown = ", ".join(words[:limit])
    return f"{shown} ... ({len(words):,} in all)" if len(words) > limit else shown
