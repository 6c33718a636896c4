"""From format 2, whose secrets were encrypted for one age identity, to data keys that are wrapped.

No key is needed: what format 2 encrypted stays as it is, and its identity counts as data key 1.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from gcluster.lifecycle.state import ciphertexts
from gcluster.lifecycle.state.bucket import AlreadyExists
from gcluster.lifecycle.state.key_record import FORMAT_2_RECIPIENT, record_of_identity
from gcluster.lifecycle.state.key_record import PREFIX as KEYS

if TYPE_CHECKING:
    from gcluster.lifecycle.state.ciphertexts import Place
    from gcluster.lifecycle.state.store import StateStore


def add_format_3(store: StateStore) -> None:
    """Store the key's record, and each secret with its fingerprint. Safe to repeat and to kill."""
    recipient = store.get(FORMAT_2_RECIPIENT)
    if recipient is not None:
        record = record_of_identity(recipient.decode(errors="replace"))
        with suppress(AlreadyExists):
            store.put_new(f"{KEYS}/000001.json", msgspec.json.encode(record))
    for place in _of_format_2(store):
        found = ciphertexts.read(store, place)
        if found is not None:
            _, name, _ = place.stem.split("/")
            path = ciphertexts.secret_path(name, place.number, place.key)
            with suppress(AlreadyExists):
                store.put_new(path, msgspec.json.encode(found))


def forget_format_2(store: StateStore) -> None:
    """Remove the objects of format 2, when the state says that it is of format 3."""
    store.delete(FORMAT_2_RECIPIENT)
    for place in _of_format_2(store):
        store.delete(place.path)


def _of_format_2(store: StateStore) -> list[Place]:
    return [place for place in ciphertexts.secrets_in(store) if place.path.endswith(".age")]
