"""What changed in the spec language since its first release, as values: a new row for each change.

A published `apiVersion` keeps loading: a key or word is renamed by adding a row here, never by
taking the old one away.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

Pattern: TypeAlias = tuple[str, ...]
"""Keys from the root; "*" stands for any key of a mapping and any item of a list."""


class Rename(msgspec.Struct, frozen=True, kw_only=True):
    """A key of the mappings at `at` has another name now."""

    at: Pattern
    key: str
    to: str


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """A key of the mappings at `at` stands deeper now: `to` are the keys from the same mapping."""

    at: Pattern
    key: str
    to: tuple[str, ...]


class Reword(msgspec.Struct, frozen=True, kw_only=True):
    """A word that stands at `at` is another one now."""

    at: Pattern
    word: str
    to: str


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One change."""

    api_version: str
    """The `apiVersion` that may be written the old way."""
    change: Rename | Move | Reword
    only: tuple[str, str] | None = None
    """Key and word that the mapping must have, such as its provider."""
    because: str
    """Half a sentence for the reader of the warning."""


STEPS: tuple[Step, ...] = (
    Step(
        api_version="gcluster/v1",
        change=Rename(at=("sites", "*"), key="capacity", to="max_nodes"),
        only=("provider", "simulated"),
        because="capacity means bytes everywhere else",
    ),
)
