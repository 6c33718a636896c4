"""One event, and how it lies in the store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import get_args

import msgspec

from ...schemas.decoding import decode_json
from .kinds import Body, Known, Unreadable

PREFIX = "events"
_KINDS: dict[str, type[Known]] = {kind.__name__: kind for kind in get_args(Known)}


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that happened, by whom and in which run."""

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

    @property
    def kind(self) -> str:
        """Name of the kind."""
        return self.body.kind if isinstance(self.body, Unreadable) else type(self.body).__name__


class _Stored(msgspec.Struct, frozen=True, kw_only=True):
    """How an event lies in the store."""

    seq: int
    time: datetime
    actor: str
    writer: str
    run: str
    epochs: dict[str, int]
    kind: str
    data: msgspec.Raw


def is_stale(event: Event, newest: Mapping[str, int]) -> bool:
    """Say whether an event was written by someone who had lost the lock of one of its sites."""
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
        kind=event.kind,
        data=msgspec.Raw(msgspec.json.encode(event.body)),
    )
    return msgspec.json.encode(stored)


def decode_event(seq: int, data: bytes) -> Event:
    """Read an event; whatever can't be read is kept as Unreadable."""
    try:
        stored = decode_json(data, _Stored)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return _torn(seq, str(error))
    kind = _KINDS.get(stored.kind)
    body: Body
    if stored.seq != seq:
        return _torn(seq, f"it says that it is event {stored.seq}")
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
    )


def _torn(seq: int, problem: str) -> Event:
    return Event(
        seq=seq,
        time=datetime.fromtimestamp(0, UTC),
        actor="",
        run="",
        epochs={},
        body=Unreadable(kind="", problem=f"{event_key(seq)}: {problem}"),
    )
