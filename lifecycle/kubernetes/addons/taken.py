"""Which fields of an object are ours by the server's own book, as a hash.

Whoever gives a field that we applied another value owns it from then on, and our part of the book
shrinks (https://kubernetes.io/docs/reference/using-api/server-side-apply/, read 2026-11). So
nothing has to be rendered to see it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import msgspec

from ....schemas.decoding import decode_json
from .applying import MANAGER


class Writer(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of an object's managedFields."""

    manager: str = ""
    subresource: str = ""
    time: str = ""
    fields: dict[str, Any] = msgspec.field(name="fieldsV1", default_factory=dict)


def fields_of(writers: str) -> str:
    """Return the hash of our fields out of an object's managedFields; "": we have none."""
    for writer in _read(writers):
        if writer.manager == MANAGER and not writer.subresource:
            text = msgspec.json.encode(writer.fields, order="sorted")
            return hashlib.sha256(text).hexdigest()[:16]
    return ""


def last_other(writers: str) -> tuple[str, str]:
    """Return who else wrote to an object last, and when; ("", ""): nobody."""
    others = [w for w in _read(writers) if w.manager != MANAGER and not w.subresource]
    last = max(others, key=lambda writer: writer.time, default=None)
    return ("", "") if last is None else (last.manager, last.time)


def _read(writers: str) -> Iterator[Writer]:
    yield from decode_json(writers or "[]", list[Writer])
