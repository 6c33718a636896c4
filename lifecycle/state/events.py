"""The log: events in one order, each with the hash of the one before it.

A missing or changed event ends every command that reads the log: what it recorded would otherwise
be lost silently. `gcluster state repair` appends `DamageAccepted`, which names it, and the log
continues without it; nothing is ever written in its place.
"""

from __future__ import annotations

import random
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import get_args

import msgspec

from ...schemas.structure.decoding import decode_json
from ..cluster.outcome import Exit, LifecycleError, failure
from .bucket import AlreadyExists
from .event_types import Body, DamageAccepted, Known, Unreadable
from .lock import epoch_key, is_current, lock_state
from .process import user_at_host
from .store import (
    IDENTITY_KEY,
    ClusterIdentity,
    DamagedObjectError,
    DamageError,
    StateStore,
    damage,
    digest,
    utc_now,
)

PREFIX = "events"
_KINDS: dict[str, type[Known]] = {str(kind.__struct_config__.tag): kind for kind in get_args(Known)}


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One event, with its author and run."""

    seq: int
    """From 1, without gaps."""
    time: datetime
    actor: str
    """user@host."""
    run: str
    """Id of the run; "" outside any."""
    epochs: dict[str, int]
    """Site -> fencing token of the writer."""
    body: Body
    """What happened: its type is the kind."""
    previous: str = ""
    """Hash of the event before it; "" where there was none that could be read."""
    cluster: str = ""
    """Id of the cluster; "" where the state had none yet."""

    @property
    def kind(self) -> str:
        """Name of the kind."""
        if isinstance(self.body, Unreadable):
            return self.body.kind
        return str(self.body.__struct_config__.tag)


class _Stored(msgspec.Struct, frozen=True, kw_only=True):
    """How an event lies in the store."""

    seq: int
    time: datetime
    actor: str
    writer: str
    run: str
    epochs: dict[str, int]
    previous: str
    cluster: str
    kind: str
    data: msgspec.Raw


def is_stale(event: Event, newest: Mapping[str, int]) -> bool:
    """Return whether an event's writer had lost the lock of one of its sites."""
    return any(epoch < newest.get(site, 0) for site, epoch in event.epochs.items())


class EventFold:
    """What is made of events alone: the same events, the same fold."""

    def __init__(self) -> None:
        """Begin before the first event."""
        self.seq = 0
        self._newest: dict[str, int] = {}

    def fresh(self, events: Iterable[Event]) -> Iterator[Event]:
        """Yield the events to take, in order: none twice, none of a run that had lost its lock."""
        for event in events:
            if event.seq <= self.seq:
                continue
            self.seq = event.seq
            if is_stale(event, self._newest):
                continue
            self._newest.update(event.epochs)
            yield event


def event_key(seq: int) -> str:
    """Return the key of an event."""
    return f"{PREFIX}/{seq:012d}.json"


def event_number(key: str) -> int | None:
    """Return the number in an event's key; None for a key that isn't one."""
    name = key.rpartition("/")[2].removesuffix(".json")
    return int(name) if name.isdecimal() and event_key(int(name)) == key else None


def encode_event(event: Event, writer: str) -> bytes:
    """Return the bytes of an event; `writer` is random, so that no two writers make the same."""
    stored = _Stored(
        seq=event.seq,
        time=event.time,
        actor=event.actor,
        writer=writer,
        run=event.run,
        epochs=event.epochs,
        previous=event.previous,
        cluster=event.cluster,
        kind=event.kind,
        data=msgspec.Raw(msgspec.json.encode(event.body)),
    )
    return msgspec.json.encode(stored)


def decode_event(seq: int, data: bytes) -> Event:
    """Read an event; one of an unknown kind, or with strange data, is kept as Unreadable.

    Raises:
        DamageError: it is no event, or not of this number.
    """
    try:
        stored = decode_json(data, _Stored)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DamageError(str(error)) from error
    if stored.seq != seq:
        raise DamageError(f"it has the number of event {stored.seq}")
    kind = _KINDS.get(stored.kind)
    body: Body
    if kind is None:
        body = Unreadable(kind=stored.kind, problem="unknown kind")
    else:
        try:
            body = decode_json(stored.data, kind)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            body = Unreadable(kind=stored.kind, problem=str(error))
    return Event(
        seq=seq,
        time=stored.time,
        actor=stored.actor,
        run=stored.run,
        epochs=stored.epochs,
        body=body,
        previous=stored.previous,
        cluster=stored.cluster,
    )


def _damaged(seq: int, problem: str) -> Event:
    return Event(
        seq=seq,
        time=datetime.fromtimestamp(0, UTC),
        actor="",
        run="",
        epochs={},
        body=Unreadable(kind="", problem=f"{event_key(seq)}: {problem}"),
    )


_ATTEMPTS = 200
"""How often an append is tried before giving up; each miss means that another writer won."""
_LONGEST_PAUSE = 0.05
"""Seconds between two attempts at most."""
_READERS = 16
"""Events fetched at once: what matters in a store whose answers take tens of milliseconds."""


class EventLog:
    """The events of one cluster. Safe to share between threads and to use in many processes."""

    def __init__(
        self,
        store: StateStore,
        *,
        clock: Callable[[], datetime] = utc_now,
        actor: str | None = None,
        tolerates_damage: bool = False,
    ) -> None:
        """Set the parameters; nothing is read yet.

        Args:
            store: where the events are.
            clock: returns the time in UTC.
            actor: user@host; None: this process's.
            tolerates_damage: reading continues without what is damaged, for repairs.
        """
        self.store = store
        self._clock = clock
        self._actor = actor or user_at_host()
        self._writer = secrets.token_hex(4)
        self._run = ""
        self._epochs: dict[str, int] = {}
        self._cluster: str | None = None
        self._tolerates_damage = tolerates_damage
        self._events: list[Event] = []
        self._last_hash = ""
        """Of the last event; "" where it can't be read."""
        self._damage: dict[int, str] = {}
        self._accepted: set[int] = set()
        self._newest: dict[str, int] = {}
        self._was_read = False
        self._listeners: list[Callable[[Event], None]] = []
        self._mutex = threading.RLock()

    def bind(self, *, run: str, epochs: Mapping[str, int]) -> None:
        """Write from now on as part of a run that holds these epochs."""
        with self._mutex:
            self._run = run
            self._epochs = dict(epochs)

    def now(self) -> datetime:
        """Return the time by the clock that events are written with."""
        return self._clock()

    @contextmanager
    def subscribe(self, listener: Callable[[Event], None]) -> Iterator[None]:
        """Call a listener with each event that is written here while the body runs."""
        self._listeners.append(listener)
        try:
            yield
        finally:
            self._listeners.remove(listener)

    def append(self, body: Known, *, epochs: Mapping[str, int] | None = None) -> Event:
        """Write an event after all others, however many write at the same time.

        Args:
            body: what happened.
            epochs: fencing tokens; None: those of `bind`.

        Raises:
            LifecycleError: a newer epoch of a site was taken (exit code LOCKED), or the store
                can't be written.
        """
        event = self.append_decided(lambda: body, epochs=epochs)
        if event is None:
            raise AssertionError
        return event

    def append_decided(
        self, decide: Callable[[], Known | None], *, epochs: Mapping[str, int] | None = None
    ) -> Event | None:
        """Write what `decide` returns, directly after the events that it could see in `known`.

        `decide` is called again whenever another writer was faster; None: nothing is to be written.

        Raises:
            LifecycleError: as `append`.
        """
        with self._mutex:
            for attempt in range(_ATTEMPTS):
                after = self.last
                body = decide()
                if body is None:
                    return None
                event = self._try(after + 1, body, self._epochs if epochs is None else epochs)
                if event is not None:
                    for listener in self._listeners:
                        listener(event)
                    return event
                pause = random.random() * min(_LONGEST_PAUSE, 0.001 * 2**attempt)  # noqa: S311
                time.sleep(pause)
        raise failure(
            "GC901",
            f"an event could not be written: write conflict after {_ATTEMPTS} retries",
            hint="run the command again when fewer commands work on this cluster",
        )

    def read(self, since: int = 0) -> tuple[Event, ...]:
        """Return the events after number `since`, in order, with those that others wrote."""
        with self._mutex:
            self._read_new()
            return tuple(self._events[self._index(since) :])

    def known(self, since: int = 0) -> tuple[Event, ...]:
        """Return the events after `since` that are in memory, without reading new ones."""
        with self._mutex:
            return tuple(self._events[self._index(since) :])

    @property
    def last(self) -> int:
        """Number of the last event that is known; 0 when there is none."""
        with self._mutex:
            if not self._was_read:
                self._read_new()
            return self._events[-1].seq if self._events else 0

    def damage(self, last_known: int = 0) -> dict[int, str]:
        """Return number -> what is wrong, of events that are missing or not as they were written.

        Those that were accepted are left out.

        Args:
            last_known: number of an event that was once written, as a released lock has it.
        """
        with self._mutex:
            self._read_new()
            lost = (n for n in range(self.last + 1, last_known + 1) if n not in self._accepted)
            return self._open_damage() | dict.fromkeys(lost, "it is missing")

    def _open_damage(self) -> dict[int, str]:
        return {n: why for n, why in sorted(self._damage.items()) if n not in self._accepted}

    def _try(self, seq: int, body: Known, epochs: Mapping[str, int]) -> Event | None:
        """Write event `seq`; None when another was faster: what it wrote has been read."""
        self._refuse_damage()
        event = Event(
            seq=seq,
            time=self._clock(),
            actor=self._actor,
            run=self._run,
            epochs=dict(epochs),
            body=body,
            previous=self._last_hash,
            cluster=self._cluster_id(),
        )
        self.check_epochs(event.epochs)
        data = encode_event(event, self._writer)
        try:
            self.store.put_new(event_key(seq), data)
        except AlreadyExists:
            # A store may repeat a request whose answer got lost: then it is our own.
            if self.store.get(event_key(seq)) != data:
                self._read_new()
                return None
        self._keep(event, data)
        return event

    def _cluster_id(self) -> str:
        if not self._cluster:
            identity = self.store.read(IDENTITY_KEY, ClusterIdentity)
            self._cluster = identity.id if identity is not None else ""
        return self._cluster

    def _index(self, since: int) -> int:
        """Return where the events after `since` begin; mostly right at the end."""
        index = len(self._events)
        while index and self._events[index - 1].seq > since:
            index -= 1
        return index

    def _read_new(self) -> None:
        if not self._was_read:
            listed = (event_number(key) for key in self.store.list(PREFIX))
            newest = max((number for number in listed if number is not None), default=0)
            # A list that is made while others write may lack what it has the successor of.
            every = range(1, newest + 1)
            for number, found in zip(every, self._fetch(every), strict=True):
                self._take(number, found)
            self._was_read = True
        # Writers leave no gaps, so new events are found by requesting the next number.
        while (found := self._get(self.last + 1)) is not None:
            self._take(self.last + 1, found)
        self._refuse_damage()

    def _refuse_damage(self) -> None:
        if not self._tolerates_damage and (wrong := self._open_damage()):
            found_all = (damage(event_key(n), why, self.store.target) for n, why in wrong.items())
            raise LifecycleError(*found_all)

    def _get(self, number: int) -> bytes | DamageError | None:
        try:
            return self.store.get(event_key(number))
        except DamagedObjectError as error:
            return DamageError(error.problem)

    def _fetch(self, numbers: Sequence[int]) -> list[bytes | DamageError | None]:
        if len(numbers) <= _READERS:
            return [self._get(number) for number in numbers]
        with ThreadPoolExecutor(_READERS) as readers:
            return list(readers.map(self._get, numbers))

    def _take(self, number: int, found: bytes | DamageError | None) -> None:
        """Keep what was read under a number, or note what is wrong with it."""
        if found is None:
            self._damage[number], self._last_hash = "it is missing", ""
            return
        try:
            event = found if isinstance(found, DamageError) else decode_event(number, found)
        except DamageError as error:
            event = error
        if isinstance(found, bytes) and isinstance(event, Event):
            self._keep(event, found)
            return
        self._damage[number], self._last_hash = str(event), ""
        self._events.append(_damaged(number, str(event)))

    def _keep(self, event: Event, data: bytes) -> None:
        if self._last_hash and event.previous != self._last_hash:
            self._damage[event.seq - 1] = f"event {event.seq} was written after another one"
        self._last_hash = digest(event_key(event.seq), data)
        self._events.append(event)
        if isinstance(event.body, DamageAccepted):
            self._accepted |= event.body.events.keys()
        if not is_stale(event, self._newest):
            self._newest.update(event.epochs)

    def check_epochs(self, epochs: Mapping[str, int]) -> None:
        """Go on where none of these epochs was followed by another.

        Raises:
            LifecycleError: one was (GC904, exit code LOCKED).
        """
        for site, epoch in epochs.items():
            newest = self._newest.get(site, 0)
            if newest > epoch and lock_state(self.store, site).epoch < newest:
                problem = f"it is missing, and events refer to epoch {newest}"
                raise self.store.damaged(epoch_key(site, newest), problem)
            if newest > epoch or not is_current(self.store, site, epoch):
                raise _fenced(site, epoch)


def _fenced(site: str, epoch: int) -> LifecycleError:
    return failure(
        "GC904",
        f'this run has lost the lock of site "{site}" (epoch {epoch}): another run took it',
        detail="nothing more is written by this run",
        hint="see gcluster status, then run the command again",
        exit_code=Exit.LOCKED,
    )
