"""Ciphertexts in a state: a new object for each version of a secret and each data key.

`secrets/munge/000001.000002.json` is version 1 of a secret, encrypted for data key 2. An object is
created once and never changed, so that re-encryption and reading can't interfere.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Container
from contextlib import suppress

import msgspec

from ..cluster.outcome import LifecycleError, failure
from ..state.bucket import AlreadyExists
from ..state.store import StateStore
from .key_record import KeyRecord
from .keyring import Keyring

PREFIX = "secrets"
SEALED = ("queue", "etcd")
"""Prefixes of what is encrypted and is no secret of a step: saved queues and control planes."""
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
    """Return a ciphertext's unique id, which reveals nothing of its content."""
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


class Reencrypted(msgspec.Struct, frozen=True, kw_only=True):
    """What was re-encrypted."""

    before: str
    """Who had wrapped the data key."""
    after: str
    count: int
    """Secrets and saved queues, of each secret all versions."""


def reencrypt(
    store: StateStore, keyring: Keyring, report: Callable[[str], None] = lambda _: None
) -> Reencrypted:
    """Encrypt all secrets for a new data key that is wrapped as the spec says.

    One that was begun is finished, where the spec is unchanged. Requires a lock.

    Raises:
        LifecycleError: there are no secrets (GC908), or a data key can't be opened or created: then
            nothing was changed.
    """
    records = keyring.records()
    if not records:
        raise failure("GC908", "the cluster has no secrets yet", hint="gcluster up makes them")
    places = _stored(store)
    opened = _opened(keyring, records, places)  # before anything is changed
    before, target = records[min(records)], max(records)
    is_begun = len(records) > 1 and target in opened and target not in keyring.pending_deletion()
    if not is_begun or not keyring.provider.is_of(records[target]):
        target = keyring.next_number()
        report(f"a new data key, by {keyring.provider.by}")
        opened[target] = keyring.make(target)
    every = newest(places, opened)
    for done, place in enumerate(every.values()):
        if place.key < target:
            report(f"{done + 1} of {len(every)}: {place.stem}")
            _reencrypt_object(store, keyring, opened, place, target)
    _remove_old(store, keyring, target)
    return Reencrypted(before=before.by, after=opened[target].by, count=len(every))


def keys_in_use(store: StateStore, keyring: Keyring) -> dict[int, KeyRecord]:
    """Return the data keys by number, but those that a `down` dropped down to their own record."""
    records, pending_deletion = keyring.records(), keyring.pending_deletion()
    used = {place.key for place in _stored(store)} if pending_deletion else set()
    return {
        number: r
        for number, r in records.items()
        if number in used or number not in pending_deletion
    }


def finish_interrupted_removal(store: StateStore, keyring: Keyring) -> None:
    """Move everything away from the names that an unfinished `down` may still delete.

    Requires a lock, and is for runs that continue with the cluster; without such a `down` it is one
    listing.

    Raises:
        LifecycleError: as `reencrypt`.
    """
    pending_deletion = keyring.pending_deletion()
    if pending_deletion:
        used = keys_in_use(store, keyring)
        for number in pending_deletion - used.keys():
            keyring.forget(number)
        if pending_deletion & used.keys():
            reencrypt(store, keyring)


def reencrypt_secret(store: StateStore, keyring: Keyring, name: str, target: int) -> None:
    """Encrypt one secret for the data key of this number too, which is made where it is not there.

    Raises:
        LifecycleError: a data key can't be opened or made.
    """
    records = keyring.records()
    places = newest(secrets_in(store, name), records)
    records[target] = records.get(target) or keyring.make(target)
    for place in places.values():
        if place.key != target:
            _reencrypt_object(store, keyring, records, place, target)


def _opened(
    keyring: Keyring, records: dict[int, KeyRecord], places: list[Place]
) -> dict[int, KeyRecord]:
    """Return the data keys that open; the others must be of nothing that no other one opens too.

    So a rotation to a key that was lost half-way is undone by one to another key.
    """
    opened, refused = {}, None
    for number, record in records.items():
        try:
            keyring.data_key(record)
            opened[number] = record
        except LifecycleError as error:
            refused = refused or error
    stems = {place.stem for place in places if place.key in records}
    if refused is not None and (not opened or stems - newest(places, opened).keys()):
        raise refused
    return opened


def _reencrypt_object(
    store: StateStore, keyring: Keyring, records: dict[int, KeyRecord], place: Place, target: int
) -> None:
    """Encrypt one object's content for the target; another who did the same was no harm."""
    old, new = keyring.data_key(records[place.key]), keyring.data_key(records[target])
    with suppress(AlreadyExists):
        if place.stem.startswith(f"{PREFIX}/"):
            found = read(store, place)
            if found is not None:
                box = new.encrypt(old.decrypt(found.box, place.stem))
                _, name, number = place.stem.split("/")
                path = secret_path(name, int(number), target)
                # The fingerprint stays: the value is the same, and hosts have nothing to do.
                store.put_new(path, msgspec.json.encode(msgspec.structs.replace(found, box=box)))
        else:
            sealed = store.get(place.path)
            if sealed is not None:
                box = new.encrypt(old.decrypt(sealed, place.stem))
                store.put_new(sealed_path(place.stem, target), box)


def _remove_old(store: StateStore, keyring: Keyring, target: int) -> None:
    """Remove what older data keys encrypt, then these; only what is there for the target too."""
    places = _stored(store)
    done = {place.stem for place in places if place.key == target}
    for place in places:
        if place.key < target and place.stem in done:
            store.delete(place.path)
    left = {place.key for place in _stored(store)}  # written meanwhile by others, without the lock
    for number in [n for n in keyring.records() if n < target and n not in left]:
        keyring.forget(number)
    keyring.forget_unused()


def _stored(store: StateStore) -> list[Place]:
    found = secrets_in(store)
    for prefix in SEALED:
        found += sealed_in(store, prefix)
    return found
