"""Where ciphertexts lie in a state: a new object for each version of a secret and each data key.

`secrets/munge/000001.000002.json` is version 1 of a secret, encrypted for data key 2. An object is
created once and never changed, so that whoever re-encrypts and whoever reads can't meet half-way.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Container
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from .store import StateStore

PREFIX = "secrets"
SEALED = ("queue",)
"""Prefixes of what is encrypted and is no secret of a step: saved queues."""
_PATH = re.compile(r"(?P<stem>.+?)\.(?P<key>\d{6})\.(age|json)")


class Ciphertext(msgspec.Struct, frozen=True, kw_only=True):
    """One version of a secret."""

    fingerprint: str
    """First 12 hex digits of its first ciphertext's SHA-256: it stays when the data key changes."""
    box: bytes


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """One object of the state that holds a ciphertext."""

    path: str
    stem: str
    """What it holds, whatever the key: "secrets/munge/000001"."""
    key: int
    """Number of its data key."""

    @property
    def number(self) -> int:
        """Version of the secret."""
        return int(self.stem.rpartition("/")[2])


def fresh(box: bytes) -> Ciphertext:
    """Return the first ciphertext of a version."""
    return Ciphertext(fingerprint=fingerprint(box), box=box)


def fingerprint(box: bytes) -> str:
    """Return what tells a ciphertext from others; it says nothing of what is in it."""
    return hashlib.sha256(box).hexdigest()[:12]


def secret_path(name: str, number: int, key: int) -> str:
    """Return the key of an object."""
    return f"{PREFIX}/{name}/{number:06d}.{key:06d}.json"


def sealed_path(stem: str, key: int) -> str:
    """Return the key of something sealed: "queue/ID.000002.age"."""
    return f"{stem}.{key:06d}.age"


def secrets_in(store: StateStore, name: str = "") -> list[Place]:
    """Return the objects of one secret, or of all."""
    found = _places(store, f"{PREFIX}/{name}" if name else PREFIX)
    return [place for place in found if place.stem.rpartition("/")[2].isdecimal()]


def sealed_in(store: StateStore, prefix: str) -> list[Place]:
    """Return the objects of a prefix that are sealed."""
    return [place for place in _places(store, prefix) if place.path.endswith(".age")]


def newest(places: list[Place], keys: Container[int]) -> dict[str, Place]:
    """Return stem -> the object of the newest data key."""
    known = (place for place in places if place.key in keys)
    return {place.stem: place for place in sorted(known, key=lambda place: place.key)}


def read(store: StateStore, place: Place) -> Ciphertext | None:
    """Return a secret's ciphertext; None: it is gone.

    Raises:
        LifecycleError: it can't be understood (GC900).
    """
    return store.read(place.path, Ciphertext)


def _places(store: StateStore, prefix: str) -> list[Place]:
    found = ((path, _PATH.fullmatch(path)) for path in store.list(prefix))
    return [
        Place(path=path, stem=match["stem"], key=int(match["key"]))
        for path, match in found
        if match is not None
    ]
