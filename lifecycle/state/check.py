"""Is every object of a state there, and as it was written? The answer names each that isn't."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from ..cluster.outcome import Exit, LifecycleError
from .events import PREFIX as EVENTS
from .events import EventLog, event_key
from .journal import applied_number, lost_specs, newest_applied, refuse_lost_spec
from .lock import epoch_key, last_event, lock_states
from .store import (
    ASIDE,
    FORMAT_KEY,
    IDENTITY_KEY,
    DamagedObjectError,
    StateStore,
    damage,
)

Remedy: TypeAlias = Literal["rebuilt", "accepted", "set aside", "unlocked", "restored"]
"""rebuilt: from events, this machine's index and the sites. accepted: the log continues without it,
and the ledger is compared with the sites. set aside: it will be written again. unlocked: by
`gcluster unlock`. restored: only a backup has it."""


class Kind(NamedTuple):
    """A kind of object: where it is, what it is, and what repair does about it."""

    prefix: str
    """Begin of its keys; longer prefixes come first."""
    what: str
    remedy: Remedy
    then: str
    """The command that restores its content; TARGET is the cluster."""


APPLIED = "applied spec"
KINDS = (
    Kind(FORMAT_KEY, "version of the layout", "rebuilt", "it is written again"),
    Kind(IDENTITY_KEY, "identity", "rebuilt", "events, this machine or the sites have the id"),
    Kind(f"{EVENTS}/", "event", "accepted", "the ledger is compared with the sites"),
    Kind("applied/", APPLIED, "rebuilt", "from the spec file"),
    Kind("lock/", "lock", "unlocked", "gcluster unlock TARGET --lock SITE/EPOCH"),
    Kind("keyring/", "data key", "restored", "without it the secrets can't be read"),
    Kind("secrets/", "secret", "restored", "or set it aside, and up makes another"),
    Kind("queue/", "saved queue", "restored", "or set it aside, and save another: gcluster backup"),
    Kind("etcd/", "saved etcd", "restored", "or set it aside, and save another: gcluster backup"),
    Kind("certificate.json", "certificate", "set aside", "gcluster smoke TARGET"),
    Kind("certificate-ended.json", "end of the certificate", "set aside", "gcluster drift TARGET"),
    Kind("storage.json", "storage figures", "set aside", "gcluster smoke TARGET --storage"),
    Kind("acceptance/", "part of an acceptance", "set aside", "gcluster acceptance TARGET"),
    Kind("observed.json", "cache of conditions", "set aside", "gcluster status TARGET"),
    Kind("host-keys/", "host keys", "set aside", "gcluster up TARGET reads them again"),
    Kind("runs/", "logs of a run", "set aside", "nothing: the run's events are kept"),
    Kind("", "record", "set aside", "gcluster up TARGET"),
)
"""Every object of a state is of the first kind here whose prefix its key has."""
ENCRYPTED = re.compile(r"(secrets|queue|etcd)/.+\.(?P<key>\d{6})\.(age|json)")
"""What is encrypted for a data key, and the key's number."""
_ENGINES = ("pulumi/", f"{ASIDE}/")
"""Written by others, or damaged on purpose: no hash of ours is in there."""

_MISSING = "it is missing, and events refer to it"


class Damage(msgspec.Struct, frozen=True, kw_only=True):
    """An object that is missing, or not as it was written."""

    key: str
    what: str
    problem: str
    remedy: Remedy
    then: str
    """What brings its content back."""


class StateCheck(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `gcluster state check`."""

    target: str
    """The cluster, as commands name it."""
    state: str
    """URL."""
    objects: int
    """How many were read."""
    damage: tuple[Damage, ...]

    @property
    def exit_code(self) -> Exit:
        """FAILED where something is damaged."""
        return Exit.FAILED if self.damage else Exit.OK


def kind_of(key: str) -> Kind:
    """Return what kind of object a key is of."""
    return next(kind for kind in KINDS if key.startswith(kind.prefix))


def check_state(store: StateStore) -> StateCheck:
    """Read every object, and compare the events with the existing objects; nothing is changed.

    Args:
        store: opened without `checks_format`.

    Raises:
        LifecycleError: the state is of another format (GC902), or can't be read (GC901).
    """
    found: dict[str, str] = {}
    keys = [key for key in store.list("") if not key.startswith(_ENGINES)]

    def note(error: DamagedObjectError) -> None:
        found.setdefault(error.key, error.problem)

    try:
        store.check_format()
    except DamagedObjectError as error:
        note(error)
    for key in keys:
        if key == FORMAT_KEY or key.startswith(f"{EVENTS}/"):
            continue
        try:
            store.get(key)
        except DamagedObjectError as error:
            note(error)
    log = EventLog(store, tolerates_damage=True)
    for number, problem in log.damage(_last_written(store)).items():
        found[event_key(number)] = problem
    for ask in (store.identity, lambda: newest_applied(store, log), lambda: refuse_lost_spec(log)):
        try:
            ask()
        except DamagedObjectError as error:
            note(error)
    # One that was replaced since blocks nothing, but it was applied to the cluster.
    found = dict.fromkeys(lost_specs(log), _MISSING) | found | _lost_locks(log) | _lost_keys(keys)
    held = {epoch_key(one.site, one.epoch) for one in lock_states(store).values() if one.held}
    newest = max((key for key in {*keys, *found} if kind_of(key).what == APPLIED), default="")
    damaged = (
        damage_of(key, why, store.target, held, newest) for key, why in sorted(found.items())
    )
    return StateCheck(
        target=store.target, state=store.url, objects=len(keys), damage=tuple(damaged)
    )


def refuse_damage(log: EventLog) -> None:
    """Refuse to continue where an object is missing that others refer to.

    Raises:
        LifecycleError: events, the spec that was applied last, or locks are damaged (GC900).
    """
    target = log.store.target
    # Locks are listed before the events are read, for what their ends refer to, and again after it,
    # for what events refer to: other processes continue writing, a lock before its events.
    found = {event_key(number): why for number, why in log.damage(_least(log.store)).items()}
    found |= _lost_locks(log)
    if found:
        raise LifecycleError(*(damage(key, why, target) for key, why in found.items()))
    refuse_lost_spec(log)


def _last_written(store: StateStore) -> int:
    try:
        return _least(store)
    except DamagedObjectError:  # found as such
        return 0


def _least(store: StateStore) -> int:
    """Return the number of the last event that must exist, according to other objects."""
    # Whatever stores a spec has begun a run before.
    return max(last_event(store), 1 if applied_number(store) else 0)


def _lost_locks(log: EventLog) -> dict[str, str]:
    return {epoch_key(site, epoch): _MISSING for site, epoch in lost_epochs(log).items()}


def _lost_keys(keys: Iterable[str]) -> dict[str, str]:
    """Return the data keys that are gone although something is encrypted for them (pure)."""
    there = {key.partition(".")[0] for key in keys if key.startswith("keyring/")}
    needed: dict[str, str] = {}
    for key in keys:
        if (found := ENCRYPTED.fullmatch(key)) is not None:
            needed.setdefault(f"keyring/{found['key']}", key)
    return {
        f"{number}.json": f"it is missing, and {key} needs it"
        for number, key in needed.items()
        if number not in there
    }


def lost_epochs(log: EventLog) -> dict[str, int]:
    """Return site -> epoch, of the locks that events refer to and whose objects are missing."""
    newest: dict[str, int] = {}
    for event in log.read():
        for site, epoch in event.epochs.items():
            newest[site] = max(epoch, newest.get(site, 0))
    there = {site: state.epoch for site, state in lock_states(log.store).items()}
    return {site: epoch for site, epoch in newest.items() if there.get(site, 0) < epoch}


def damage_of(
    key: str, problem: str, target: str, held: Container[str] = (), newest_spec: str = ""
) -> Damage:
    """Return the finding of a damaged object, and the remedy.

    Args:
        key: of the object.
        problem: the damage.
        target: the cluster, as commands name it.
        held: keys of the locks that are held.
        newest_spec: key of the spec that was applied last.
    """
    kind = kind_of(key)
    remedy, then = kind.remedy, kind.then
    if remedy == "unlocked" and key in held:
        site, _, epoch = key.removeprefix("lock/").rpartition("/")
        then = then.replace("SITE/EPOCH", f"{site}/{int(epoch)}")
    elif remedy == "unlocked":
        remedy, then = "rebuilt", "the lock has ended: its number is kept"
    elif kind.what == APPLIED and key < newest_spec:
        remedy, then = "accepted", "nothing: another was applied since"
    return Damage(
        key=key,
        what=kind.what,
        problem=problem,
        remedy=remedy,
        then=then.replace("TARGET", target),
    )
