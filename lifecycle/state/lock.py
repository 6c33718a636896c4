"""Locks of sites: epochs, taken and released by creating objects and never by changing one.

`lock/<site>/000042` is taken by creating it and ended by creating `lock/<site>/000042.released`.
The site is held while its newest epoch has no end. The number is the holder's fencing token.

A lock is released for its holder in one case alone: the process that took it ran on this machine
and has ended. For another machine that can't be known, however long its holder has sent no
heartbeat; then `gcluster unlock` breaks it by hand, by the lock's id.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta

import msgspec

from ...schemas.diagnostics import Diagnostic, Severity
from ..cluster.outcome import Exit, LifecycleError, failure
from .bucket import AlreadyExists
from .process import ProcessIdentity, pipeline_job, this_process
from .store import DamagedObjectError, StateStore, utc_now

RELEASED = ".released"


class LockRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The object that takes an epoch."""

    owner: ProcessIdentity
    reason: str
    """What it is held for: "up", "down", "smoke"."""
    taken: datetime
    token: str
    """Random: distinguishes this process's record from another's when a response got lost."""
    job: str = ""
    """Page of the pipeline's job that took it; "" outside of pipelines."""


class _Release(msgspec.Struct, frozen=True, kw_only=True):
    by: str
    reason: str
    released: datetime
    last_event: int = 0
    """Number of the last event when the holder's run ended; 0: not recorded."""


class LockState(msgspec.Struct, frozen=True, kw_only=True):
    """A site's newest epoch."""

    site: str
    epoch: int
    """0: never taken."""
    held: bool

    @property
    def id(self) -> str:
        """Lock id as `unlock` takes it: "campus/42"."""
        return f"{self.site}/{self.epoch}"


class HeldLock:
    """The sites that this process holds; made by `acquire`."""

    def __init__(self, store: StateStore, reason: str, clock: Callable[[], datetime]) -> None:
        """Hold nothing yet."""
        self._store = store
        self._clock = clock
        self._record = _record(reason, clock)
        self._heartbeat = Heartbeat(store, clock)
        self._tried: dict[str, int] = {}
        self.epochs: dict[str, int] = {}
        """Site -> epoch: the fencing tokens of this holder."""
        self.last_event = 0
        """Number of the last event of its run: the lock's end records that it exists."""
        self.notes: tuple[Diagnostic, ...] = ()
        """Notes for the user: locks of ended processes that were released."""

    def take(self, sites: Iterable[str]) -> None:
        """Take all sites, in sorted order so that two takers never wait for each other in a ring.

        Raises:
            LifecycleError: one is held (exit code LOCKED), or a newer gcluster has changed the
                format of the state (GC902); `release` gives back the others.
        """
        # All are read before any is taken: a site that is held costs the others no epoch.
        epochs = {site: self._free_to_take(site) for site in sorted(set(sites))}
        for site, epoch in epochs.items():
            self._take(site, epoch)
        # A newer gcluster may have changed the format between opening the state and this lock.
        self._store.check_format()
        self._heartbeat.begin(epoch_key(site, epoch) for site, epoch in epochs.items())

    def release(self) -> None:
        """Give back every site that was taken or tried; safe to repeat."""
        self._heartbeat.end()
        problem: LifecycleError | None = None
        for site, epoch in list(self._tried.items()):
            try:
                if site in self.epochs or self._is_ours(site, epoch):
                    self._end(site, epoch, "done")
            except LifecycleError as error:
                problem = error
            self._tried.pop(site)
        self.epochs = {}
        if problem is not None:
            raise problem

    def _take(self, site: str, epoch: int) -> None:
        self._tried[site] = epoch
        try:
            self._store.put_new(epoch_key(site, epoch), msgspec.json.encode(self._record))
        except AlreadyExists:
            # Either another was faster, or the store repeated a request whose answer got lost.
            if not self._is_ours(site, epoch):
                self._tried.pop(site)
                raise _locked(self._store, site, epoch) from None
        self.epochs[site] = epoch

    def _free_to_take(self, site: str) -> int:
        """Return the epoch to take next; release that of an owner who is gone."""
        state = lock_state(self._store, site)
        if state.held:
            record = _read_held(self._store, site, state.epoch)
            if not record.owner.is_gone():
                raise _locked(self._store, site, state.epoch)
            self._end(site, state.epoch, "owner is gone")
            self.notes = (*self.notes, _owner_has_ended(state, record))
        return state.epoch + 1

    def _end(self, site: str, epoch: int, reason: str) -> None:
        release = _Release(
            by=self._record.owner.who,
            reason=reason,
            released=self._clock(),
            last_event=self.last_event,
        )
        _end(self._store, site, epoch, release)

    def _is_ours(self, site: str, epoch: int) -> bool:
        record = self._store.read(epoch_key(site, epoch), LockRecord)
        return record is not None and record.token == self._record.token


@contextmanager
def acquire(
    store: StateStore,
    sites: Iterable[str],
    *,
    reason: str,
    clock: Callable[[], datetime] = utc_now,
) -> Iterator[HeldLock]:
    """Hold the locks of all `sites` during the `with` block; released however it ends.

    Raises:
        LifecycleError: one of them is held (exit code LOCKED), with its holder and what to do.
    """
    lock = HeldLock(store, reason, clock)
    try:
        lock.take(sites)
        yield lock
    finally:
        lock.release()


def lock_state(store: StateStore, site: str) -> LockState:
    """Return the newest epoch of a site and whether it is held."""
    return lock_states(store, f"lock/{site}").get(site, LockState(site=site, epoch=0, held=False))


def lock_states(store: StateStore, prefix: str = "lock") -> dict[str, LockState]:
    """Return the newest epoch of every site that was ever locked."""
    newest: dict[str, int] = {}
    keys = set(store.list(prefix))
    for key in keys:
        site, _, name = key.removeprefix("lock/").rpartition("/")
        # An end implies its epoch too, should the object that took it be missing.
        number = name.removesuffix(RELEASED)
        if number.isdecimal():
            newest[site] = max(int(number), newest.get(site, 0))
    return {
        site: LockState(site=site, epoch=epoch, held=epoch_key(site, epoch) + RELEASED not in keys)
        for site, epoch in newest.items()
    }


def last_event(store: StateStore) -> int:
    """Return the highest number of an event that the newest end of a lock refers to."""
    ends = (
        store.read(epoch_key(state.site, state.epoch) + RELEASED, _Release)
        for state in lock_states(store).values()
        if not state.held
    )
    return max((end.last_event for end in ends if end is not None), default=0)


def is_current(store: StateStore, site: str, epoch: int) -> bool:
    """Return whether no newer epoch than `epoch` was ever taken: one small read."""
    return store.get(epoch_key(site, epoch + 1)) is None


def is_held(store: StateStore, site: str, epoch: int) -> bool:
    """Return whether this epoch is held, by an owner that may still run."""
    if lock_state(store, site) != LockState(site=site, epoch=epoch, held=True):
        return False
    try:
        return not _read(store, site, epoch).owner.is_gone()
    except DamagedObjectError:  # the holder is unknown
        return True


def unlock(
    store: StateStore, site: str, epoch: int, *, clock: Callable[[], datetime] = utc_now
) -> LockRecord | None:
    """End an epoch whose holder is unreachable, and fence the holder off; return its record.

    The next epoch is taken and released, so that later writes of the old holder are refused. None:
    the record is damaged, so the holder is unknown.

    Raises:
        LifecycleError: that epoch isn't the newest, or isn't held.
    """
    state = lock_state(store, site)
    if state.epoch != epoch or not state.held:
        now = f"epoch {state.epoch} is held" if state.held else "it is not held"
        raise failure(
            "GC904",
            f"lock {site}/{epoch} can't be released: {now}",
            hint="run gcluster status before you release a lock; someone else may be at work",
        )
    try:
        record = _read(store, site, epoch)
    except DamagedObjectError:
        record = None
    me = _record("unlock", clock)
    try:
        store.put_new(epoch_key(site, epoch + 1), msgspec.json.encode(me))
    except AlreadyExists:
        raise _locked(store, site, epoch + 1) from None
    for ended in (epoch + 1, epoch):
        release = _Release(by=me.owner.who, reason="unlock", released=clock())
        _end(store, site, ended, release)
    return record


def epoch_key(site: str, epoch: int) -> str:
    """Return the key of the object that takes an epoch."""
    return f"lock/{site}/{epoch:06d}"


def _record(reason: str, clock: Callable[[], datetime]) -> LockRecord:
    return LockRecord(
        owner=this_process(),
        reason=reason,
        taken=clock(),
        token=secrets.token_hex(8),
        job=pipeline_job(),
    )


def _end(store: StateStore, site: str, epoch: int, release: _Release) -> None:
    try:
        store.put_new(epoch_key(site, epoch) + RELEASED, msgspec.json.encode(release))
    except AlreadyExists:
        return  # ended already: by `unlock`, or by another who saw that the owner is gone


def age(time: timedelta) -> str:
    """Return how long something is ago: "12 s", "7 min", "3 h 5 min", "2 days"."""
    minutes, seconds = divmod(max(0, int(time.total_seconds())), 60)
    hours, minutes = divmod(minutes, 60)
    if hours >= 48:  # noqa: PLR2004 - two days
        return f"{hours // 24} days"
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min" if minutes else f"{seconds} s"


def restore_epoch(
    store: StateStore, site: str, epoch: int, *, clock: Callable[[], datetime] = utc_now
) -> bool:
    """Take and end an epoch of events whose objects are missing; return whether there was one.

    Otherwise the site's numbers would begin again below those of the events, and be refused.
    """
    if lock_state(store, site).epoch >= epoch:
        return False
    me = _record("state repair", clock)
    with suppress(AlreadyExists):
        store.put_new(epoch_key(site, epoch), msgspec.json.encode(me))
    _end(store, site, epoch, _repaired(clock))
    return True


def write_end_again(
    store: StateStore, site: str, epoch: int, *, clock: Callable[[], datetime] = utc_now
) -> None:
    """Write the end of an epoch in the place of one that is damaged; it never counts as held."""
    store.put(epoch_key(site, epoch) + RELEASED, msgspec.json.encode(_repaired(clock)))


def _repaired(clock: Callable[[], datetime]) -> _Release:
    return _Release(by=this_process().who, reason="state repair", released=clock())


def _read_held(store: StateStore, site: str, epoch: int) -> LockRecord:
    """Return whose a held lock is; a damaged one may be anybody's, so a person decides."""
    try:
        return _read(store, site, epoch)
    except DamagedObjectError as error:
        raise failure(
            "GC903",
            f'site "{site}" is locked by an unknown holder: state object {error.key} is '
            f"damaged ({error.problem})",
            hint=f"if no process works on it: gcluster unlock {store.target} --lock {site}/{epoch}",
            exit_code=Exit.LOCKED,
        ) from None


def _read(store: StateStore, site: str, epoch: int) -> LockRecord:
    record = store.read(epoch_key(site, epoch), LockRecord)
    if record is None:
        raise store.damaged(epoch_key(site, epoch), "it vanished")
    return record


def _locked(store: StateStore, site: str, epoch: int) -> LifecycleError:
    record = _read_held(store, site, epoch)
    owner = record.owner
    seen = last_seen(store, epoch_key(site, epoch))
    now = utc_now()
    silent = now - (seen or record.taken) > SILENT
    last = f"last seen {age(now - seen)} ago" if seen else "not seen since"
    parts = (f"lock id {site}/{epoch}, taken {age(now - record.taken)} ago, {last}", record.job)
    hint = f"gcluster unlock {_cluster(store)} --lock {site}/{epoch}"
    return failure(
        "GC903",
        f'site "{site}" is locked by {owner.who} (process {owner.pid}) '
        f"since {record.taken:%Y-%m-%d %H:%M:%S} UTC for {record.reason}",
        detail="\n".join(part for part in parts if part),
        hint=f"it gives no sign of life; if it can't be running any more: {hint}"
        if silent
        else f"wait for it to end; if it can't be running any more: {hint}",
        exit_code=Exit.LOCKED,
    )


def _owner_has_ended(state: LockState, record: LockRecord) -> Diagnostic:
    return Diagnostic(
        code="GC903",
        severity=Severity.NOTE,
        summary=f"released lock {state.id}: {record.owner.who} (process {record.owner.pid}) "
        f"held it for {record.reason} and is gone",
    )


def _cluster(store: StateStore) -> str:
    try:
        identity = store.identity()
    except DamagedObjectError:  # the lock is what must be reported
        identity = None
    return identity.name if identity is not None else "CLUSTER"


EVERY_S = 60.0
SILENT = timedelta(minutes=10)
"""A holder without a heartbeat for so long counts as silent: ten heartbeats in a row got lost."""
SEEN = ".seen"


class Seen(msgspec.Struct, frozen=True):
    """When the holder of a lock was last alive, by its own clock."""

    at: datetime


class Heartbeat:
    """Writes heartbeats for a lock's holder in a thread, until it is stopped."""

    def __init__(
        self, store: StateStore, clock: Callable[[], datetime], every_s: float = EVERY_S
    ) -> None:
        """Start without heartbeats."""
        self._store = store
        self._clock = clock
        self._every_s = every_s
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self, keys: Iterable[str]) -> None:
        """Write heartbeats for these locks, the first after a minute: short runs write none."""
        names = tuple(keys)
        self._thread = threading.Thread(target=self._beat, args=(names,), daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Stop the heartbeats."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _beat(self, keys: tuple[str, ...]) -> None:
        while not self._ended.wait(self._every_s):
            for key in keys:
                # A store that is briefly unavailable ends no run here: the next event shows it.
                with suppress(LifecycleError):
                    self._store.put(key + SEEN, msgspec.json.encode(Seen(self._clock())))


def last_seen(store: StateStore, key: str) -> datetime | None:
    """Return when the holder of the lock `key` was last seen; None: not since it took the lock."""
    with suppress(LifecycleError):  # a damaged sign is no sign
        seen = store.read(key + SEEN, Seen)
        return None if seen is None else seen.at
    return None
