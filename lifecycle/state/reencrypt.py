"""Another data key, or another provider of it, for all that a cluster has stored encrypted.

First the new data key is stored, then everything once more beside what was there, and only then
what was there is removed. So at every write all can be read, and a killed run goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import msgspec

from ..outcome import LifecycleError, failure
from . import ciphertexts
from .bucket import AlreadyExists
from .ciphertexts import Place
from .key_record import KeyRecord
from .keyring import Keyring
from .store import StateStore


class Reencrypted(msgspec.Struct, frozen=True, kw_only=True):
    """What was encrypted anew."""

    before: str
    """Who had wrapped the data key."""
    after: str
    count: int
    """Secrets and saved queues, of each secret all versions."""


def reencrypt(
    store: StateStore, keyring: Keyring, tell: Callable[[str], None] = lambda _: None
) -> Reencrypted:
    """Encrypt all secrets for a new data key that is wrapped as the spec says.

    One that was begun is finished, where the spec still says the same. For whoever holds a lock.

    Raises:
        LifecycleError: there are no secrets (GC908), or a data key can't be opened or made: then
            nothing was changed.
    """
    records = keyring.records()
    if not records:
        raise failure("GC908", "the cluster has no secrets yet", hint="gcluster up makes them")
    places = _places(store)
    opened = _opened(keyring, records, places)  # before anything is changed
    before, target = records[min(records)], max(records)
    is_begun = len(records) > 1 and target in opened and target not in keyring.doomed()
    if not is_begun or not keyring.provider.is_of(records[target]):
        target = keyring.next_number()
        tell(f"a new data key, by {keyring.provider.by}")
        opened[target] = keyring.make(target)
    every = ciphertexts.newest(places, opened)
    for done, place in enumerate(every.values()):
        if place.key < target:
            tell(f"{done + 1} of {len(every)}: {place.stem}")
            _again(store, keyring, opened, place, target)
    _remove_old(store, keyring, target)
    return Reencrypted(before=before.by, after=opened[target].by, count=len(every))


def in_use(store: StateStore, keyring: Keyring) -> dict[int, KeyRecord]:
    """Return the data keys by number, but those that a `down` forgot down to their own record."""
    records, doomed = keyring.records(), keyring.doomed()
    used = {place.key for place in _places(store)} if doomed else set()
    return {number: r for number, r in records.items() if number in used or number not in doomed}


def take_over(store: StateStore, keyring: Keyring) -> None:
    """Have nothing stand under names that a `down` which never ended may still delete.

    For whoever holds a lock and goes on with the cluster; without such a `down` it is one listing.

    Raises:
        LifecycleError: as `reencrypt`.
    """
    doomed = keyring.doomed()
    if doomed:
        used = in_use(store, keyring)
        for number in doomed - used.keys():
            keyring.forget(number)
        if doomed & used.keys():
            reencrypt(store, keyring)


def carry_over(store: StateStore, keyring: Keyring, name: str, target: int) -> None:
    """Encrypt one secret for the data key of this number too, which is made where it is not there.

    Raises:
        LifecycleError: a data key can't be opened or made.
    """
    records = keyring.records()
    places = ciphertexts.newest(ciphertexts.secrets_in(store, name), records)
    records[target] = records.get(target) or keyring.make(target)
    for place in places.values():
        if place.key != target:
            _again(store, keyring, records, place, target)


def _opened(
    keyring: Keyring, records: dict[int, KeyRecord], places: list[Place]
) -> dict[int, KeyRecord]:
    """Return the data keys that open; the others must be of nothing that no other one opens too.

    So a rotation to a key that was lost half-way is undone by one to another key.
    """
    opened, refused = {}, None
    for number, record in records.items():
        try:
            keyring.box(record)
            opened[number] = record
        except LifecycleError as error:
            refused = refused or error
    stems = {place.stem for place in places if place.key in records}
    if refused is not None and (not opened or stems - ciphertexts.newest(places, opened).keys()):
        raise refused
    return opened


def _again(
    store: StateStore, keyring: Keyring, records: dict[int, KeyRecord], place: Place, target: int
) -> None:
    """Encrypt one object's content for the target; another who did the same was no harm."""
    old, new = keyring.box(records[place.key]), keyring.box(records[target])
    with suppress(AlreadyExists):
        if place.stem.startswith(f"{ciphertexts.PREFIX}/"):
            found = ciphertexts.read(store, place)
            if found is not None:
                box = new.encrypt(old.decrypt(found.box, place.stem))
                _, name, number = place.stem.split("/")
                path = ciphertexts.secret_path(name, int(number), target)
                # The fingerprint stays: the value is the same, and hosts have nothing to do.
                store.put_new(path, msgspec.json.encode(msgspec.structs.replace(found, box=box)))
        else:
            sealed = store.get(place.path)
            if sealed is not None:
                box = new.encrypt(old.decrypt(sealed, place.stem))
                store.put_new(ciphertexts.sealed_path(place.stem, target), box)


def _remove_old(store: StateStore, keyring: Keyring, target: int) -> None:
    """Remove what older data keys encrypt, then these; only what is there for the target too."""
    places = _places(store)
    done = {place.stem for place in places if place.key == target}
    for place in places:
        if place.key < target and place.stem in done:
            store.delete(place.path)
    left = {place.key for place in _places(store)}  # whoever wrote meanwhile, without the lock
    for number in [n for n in keyring.records() if n < target and n not in left]:
        keyring.forget(number)
    keyring.forget_unused()


def _places(store: StateStore) -> list[Place]:
    found = ciphertexts.secrets_in(store)
    for prefix in ciphertexts.SEALED:
        found += ciphertexts.sealed_in(store, prefix)
    return found
