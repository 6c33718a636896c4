"""Rewrites a state of format 3, which had no hashes, in the format that this version reads.

Format 4 gave every object its hash and every event the hash of the one before it. Integrity of
format 3 can't be verified: an object that is not complete JSON is left as it is, and then counts as
damaged. Each object is rewritten in place and keeps its content, and `format.json` comes last. So
after an interrupted upgrade the older gcluster can still read the state, or the upgrade can be
repeated.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import Any

import msgspec

from ...schemas.structure.decoding import decode_json
from ..operations.burst.lock import LOCK as BURST_LOCK
from ..state.event_types import SpecStored
from ..state.events import PREFIX as EVENTS
from ..state.events import EventLog, event_number
from ..state.journal import Journal, applied_key, applied_number
from ..state.lock import acquire, lock_states
from ..state.store import (
    FORMAT,
    FORMAT_KEY,
    IDENTITY_KEY,
    OLDEST,
    ClusterIdentity,
    DamagedObjectError,
    DamageError,
    StateStore,
    digest,
    without_hash,
)
from .cluster import find_state
from .outcome import Exit, failure

_LOCKS = "lock/"


class StateUpgrade(msgspec.Struct, frozen=True, kw_only=True):
    """What `gcluster state upgrade` did."""

    target: str
    """The cluster, as commands name it."""
    state: str
    """URL."""
    before: int
    """Format that the state had."""
    after: int
    """Format that it has now."""
    objects: int
    """How many were rewritten; 0: the state had this version's format."""


class _Event(msgspec.Struct, frozen=True, kw_only=True):
    """How an event lies in a state of either format."""

    seq: int
    time: datetime
    actor: str
    writer: str
    run: str
    epochs: dict[str, int]
    previous: str = ""
    cluster: str = ""
    kind: str
    data: msgspec.Raw


def upgrade_state(target: str, *, confirm: Callable[[int], bool]) -> StateUpgrade:
    """Rewrite a state for this version; safe to repeat, safe to kill.

    Args:
        target: path of the cluster's spec, or its name.
        confirm: receives the state's format; if it returns False, nothing is changed.

    Raises:
        LifecycleError: a site is locked (GC903), the upgrade was not confirmed, or the state has a
            format that can't be upgraded (GC902).
    """
    place = find_state(target)
    store = StateStore.open(place.state_url, target=target, oldest=OLDEST)
    before = store.version or FORMAT
    count = 0
    if before != FORMAT:
        if not confirm(before):
            raise failure("GC909", "nothing was changed", exit_code=Exit.REFUSED)
        sites = {} if place.loaded is None or place.loaded.spec is None else place.loaded.spec.sites
        count = _upgrade(store, {*sites, BURST_LOCK})
    return StateUpgrade(
        target=target, state=place.state_url, before=before, after=FORMAT, objects=count
    )


def _upgrade(store: StateStore, sites: set[str]) -> int:
    """Rewrite all objects under the locks of all sites; return how many it were."""
    # An older gcluster reads these too: it ignores unknown fields of an object.
    count = sum(_hashed(store, key) for key in store.list("lock"))
    names = tuple(sorted({*sites, *lock_states(store)}))
    with acquire(store, names, reason="state upgrade") as lock:
        apart = (FORMAT_KEY, _LOCKS, f"{EVENTS}/")
        others = (key for key in store.list("") if not key.startswith(apart))
        count += sum(_hashed(store, key) for key in others)
        count += _chain(store)
        store.write_format_again()
        # Existing damage is reported by the next reader, not here.
        log = EventLog(store, tolerates_damage=True)
        log.bind(run="", epochs=lock.epochs)
        _note_spec(log)
        lock.last_event = log.last
    return count + 1


def _hashed(store: StateStore, key: str) -> bool:
    """Give an object its hash; whether it lacked one. One that is no whole JSON stays as it is."""
    stored = store.stored(key)
    if stored is None or _is_hashed(key, stored):
        return False
    if stored.startswith(b"{") or key.endswith(".json") or key.startswith(_LOCKS):
        try:
            decode_json(stored, dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError):
            return False
    store.put(key, stored)
    return True


def _chain(store: StateStore) -> int:
    """Give each event its hash, that of the one before it and its cluster; return how many."""
    try:
        identity = store.read(IDENTITY_KEY, ClusterIdentity)
    except DamagedObjectError:
        identity = None
    cluster = "" if identity is None else identity.id
    numbers = {event_number(key): key for key in store.list(EVENTS)}
    previous, last, count = "", 0, 0
    for number, key in sorted((n, key) for n, key in numbers.items() if n is not None):
        previous = previous if number == last + 1 else ""
        content = _event(store, key, previous, cluster)
        if content is None:
            previous, last = "", number
            continue
        if not _is_hashed(key, store.stored(key) or b""):
            store.put(key, content)
            count += 1
        previous, last = digest(key, content), number
    return count


def _event(store: StateStore, key: str, previous: str, cluster: str) -> bytes | None:
    """Return an event's content in this version's format; None: it can't be read."""
    stored = store.stored(key) or b""
    if _is_hashed(key, stored):
        return without_hash(key, stored)
    try:
        event = decode_json(stored, _Event)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return msgspec.json.encode(msgspec.structs.replace(event, previous=previous, cluster=cluster))


def _is_hashed(key: str, stored: bytes) -> bool:
    try:
        without_hash(key, stored)
    except DamageError:
        return False
    return True


def _note_spec(log: EventLog) -> None:
    """Record in the log which spec was applied last, so that its loss is detected from now on."""
    number = applied_number(log.store)
    if not number or Journal(log).stored_spec() is not None:
        return
    key = applied_key(number)
    with suppress(DamagedObjectError):
        if (content := log.store.get(key)) is not None:
            log.append(SpecStored(number=number, sha256=digest(key, content)))
