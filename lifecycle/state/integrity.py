"""The hash that every object of the state carries, so that damage is seen and never read past.

A JSON object gets it as its first member, `object_sha256`, and stays a JSON object; all other
content gets it as a first line. The hash is of the object's key and content, so that a copy of
another object is damage too.
"""

from __future__ import annotations

import hashlib
import re

_MEMBER = re.compile(rb'\{"object_sha256":"([0-9a-f]{64})"')
_LINE = re.compile(rb"sha256:([0-9a-f]{64})\n")


class DamageError(ValueError):
    """Bytes that aren't what was written under this key; the message says how that is known."""


def digest(key: str, content: bytes) -> str:
    """Return the hash of an object, in hex."""
    return hashlib.sha256(key.encode() + b"\0" + content).hexdigest()


def with_hash(key: str, content: bytes) -> bytes:
    """Return the bytes that are stored for an object."""
    hashed = digest(key, content).encode()
    if not content.startswith(b"{"):
        return b"sha256:" + hashed + b"\n" + content
    rest = content[1:]
    comma = b"" if rest.lstrip().startswith(b"}") else b","
    return b'{"object_sha256":"' + hashed + b'"' + comma + rest


def has_hash(stored: bytes) -> bool:
    """Say whether bytes begin as those that carry a hash."""
    return bool(_MEMBER.match(stored) or _LINE.match(stored))


def without_hash(key: str, stored: bytes) -> bytes:
    """Return an object's content; the inverse of `with_hash`.

    Raises:
        DamageError: the bytes are not those that were stored under this key.
    """
    if not stored:
        raise DamageError("it is empty")
    if found := _MEMBER.match(stored):
        content = b"{" + stored[found.end() :].removeprefix(b",")
    elif found := _LINE.match(stored):
        content = stored[found.end() :]
    else:
        raise DamageError("it has no hash")
    if found[1].decode() != digest(key, content):
        raise DamageError("its content doesn't have its hash")
    return content
