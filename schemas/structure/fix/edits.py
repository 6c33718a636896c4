"""What a machine can put right in a document, as values."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from ...diagnostics import PathTuple


class Replace(msgspec.Struct, frozen=True):
    """Put `text` (YAML: a scalar or a flow collection) in the place of the value at `path`."""

    path: PathTuple
    text: str


class ReplaceWord(msgspec.Struct, frozen=True):
    """Put text in the place of the text at `path`, quoted as that was and where it must be."""

    path: PathTuple
    word: str


class Quote(msgspec.Struct, frozen=True):
    """Take the plain value at `path` (1.10, 580) for the text that it is written as."""

    path: PathTuple


class Insert(msgspec.Struct, frozen=True):
    """Add `key: text` to the mapping at `path`; mappings that are not there yet are made."""

    path: PathTuple
    key: str
    text: str
    first: bool = False
    """Before the other entries, not after them."""


class Remove(msgspec.Struct, frozen=True):
    """Take the entry at `path` out: a key with its value, or an item of a list."""

    path: PathTuple


class RenameKey(msgspec.Struct, frozen=True):
    """Call the key at `path` by another name; its value stays."""

    path: PathTuple
    key: str


Fix: TypeAlias = Replace | ReplaceWord | Quote | Insert | Remove | RenameKey
