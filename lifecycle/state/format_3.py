"""From format 2, whose secrets were encrypted for one age identity, to data keys that are wrapped.

No key is needed: what format 2 encrypted stays as it is, and its identity counts as data key 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from . import ciphertexts
from .ciphertexts import Place
from .key_record import FORMAT_2_RECIPIENT, KeyRecord, record_of_identity
from .key_record import PREFIX as KEYS

if TYPE_CHECKING:
    from .store import StateStore


def add_format_3(store: StateStore) -> None:
    """Store the key's record, and each secret with its fingerprint. Safe to repeat and to kill.

    Until the state says that it is of format 3, what format 2 has is right: an older version may
    have gone on since an upgrade was killed, so what that had added is made the same again.
    """
    recipient = store.get(FORMAT_2_RECIPIENT)
    if recipient is None:
        if not ciphertexts.every_secret(store):
            for key in _records(store):
                store.delete(key)  # of secrets that an older version has removed since
        return
    wanted = {_first(): msgspec.json.encode(record_of_identity(recipient.decode(errors="replace")))}
    for place in _of_format_2(store):
        box = store.get(place.path)
        if box is not None:
            wanted[_path(place)] = msgspec.json.encode(ciphertexts.fresh(box))
    for path, data in wanted.items():
        if store.get(path) != data:
            store.put(path, data)
    added = [p.path for p in ciphertexts.every_secret(store) if not p.is_of_format_2]
    for path in {*added, *_records(store)} - wanted.keys():
        store.delete(path)


def forget_format_2(store: StateStore) -> list[str]:
    """Remove what format 2 kept, when the state says that it is of format 3.

    Returns the objects that say something else than what was taken over: they came later.
    """
    later = []
    told = store.get(FORMAT_2_RECIPIENT)
    if told is not None:
        records = [store.read(key, KeyRecord) for key in _records(store)]
        if told.decode(errors="replace") in {r.recipient for r in records if r is not None}:
            store.delete(FORMAT_2_RECIPIENT)
        else:
            later.append(FORMAT_2_RECIPIENT)
    every = ciphertexts.every_secret(store)
    for place in every:
        if place.is_of_format_2:
            mine = ciphertexts.read(store, place)
            others = (p for p in every if p.stem == place.stem and not p.is_of_format_2)
            found = (ciphertexts.read(store, other) for other in others)
            if mine is None or mine.fingerprint in {o.fingerprint for o in found if o is not None}:
                store.delete(place.path)
            else:
                later.append(place.path)
    return later


def _of_format_2(store: StateStore) -> list[Place]:
    return [place for place in ciphertexts.every_secret(store) if place.is_of_format_2]


def _records(store: StateStore) -> list[str]:
    return [key for key in store.list(KEYS) if key.endswith(".json")]


def _path(place: Place) -> str:
    """Return where format 3 keeps what an object of format 2 holds."""
    _, name, _ = place.stem.split("/")
    return ciphertexts.secret_path(name, place.number, place.key)


def _first() -> str:
    return f"{KEYS}/000001.json"
