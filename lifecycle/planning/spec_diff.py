"""Which fields differ between two specs, as paths in the spec's own words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec


class FieldChange(msgspec.Struct, frozen=True, kw_only=True):
    """One field that differs."""

    path: str
    """"pools.train.count"."""
    keys: tuple[str, ...]
    """The same, key by key."""
    before: Any = None
    """As plain data; None: it wasn't there."""
    after: Any = None
    """As plain data; None: it is there no more."""


def differing(before: Any, after: Any, keys: tuple[str, ...] = ()) -> Iterator[FieldChange]:
    """Yield the fields that differ between two specs as plain data, in order of their names.

    Maps are walked; anything else, lists too, is one field. A key of None is as good as none.
    """
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted(before.keys() | after.keys()):
            yield from differing(before.get(key), after.get(key), (*keys, key))
    elif before != after:
        yield FieldChange(path=".".join(keys), keys=keys, before=before, after=after)
