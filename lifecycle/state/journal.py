"""What was done to a cluster, and how it ended: a fold of the events."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import msgspec

from ..cluster.outcome import Exit, failure
from .bucket import AlreadyExists
from .event_types import (
    Built,
    DamageAccepted,
    RunFinished,
    RunOutcome,
    RunStarted,
    SpecApplied,
    SpecStored,
    StageDone,
)
from .events import PREFIX as EVENTS
from .events import Event, EventFold, EventLog
from .lock import is_held
from .store import StateStore, digest


class RunRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a command that makes changes."""

    id: str
    command: str
    spec_hash: str
    actor: str
    started: datetime
    epochs: dict[str, int]
    ended: datetime | None = None
    state: RunOutcome = "running"
    outcome: str = ""
    """Its own result: "ok", "failed" ...; "" while it has none."""
    exit_code: int | None = None
    stages: tuple[StageDone, ...] = ()
    commit: str = ""
    """That the spec comes from; "": unknown."""
    why: str = ""
    """Its trigger, other than a user: what was due; "": a user."""


class JournalFold(EventFold):
    """The journal as a fold of the events. Pure: whether a run's lock is held is not known here."""

    def __init__(self) -> None:
        """Begin with nothing."""
        super().__init__()
        self.runs: dict[str, RunRecord] = {}
        self.applied: str | None = None
        self.built: Built | None = None
        self.stored: SpecStored | None = None

    def apply(self, events: Iterable[Event]) -> None:
        """Fold more events, in order; those folded before, and stale ones, change nothing."""
        for event in self.fresh(events):
            match event.body:
                case RunStarted() as body:
                    self.runs[event.run] = _started(event, body)
                case RunFinished() as body:
                    self._finished(event, body)
                case StageDone() as body:
                    self._stage(event.run, body)
                case SpecApplied(spec_hash=spec_hash, built=built):
                    self.applied, self.built = spec_hash, built
                case SpecStored() as body:
                    self.stored = body

    def _finished(self, event: Event, body: RunFinished) -> None:
        run = self.runs.get(event.run)
        if run is not None and run.state != "finished":
            self.runs[event.run] = msgspec.structs.replace(
                run,
                ended=event.time,
                state="finished",
                outcome=body.outcome,
                exit_code=body.exit_code,
            )

    def _stage(self, run_id: str, body: StageDone) -> None:
        run = self.runs.get(run_id)
        if run is not None:
            stages = (*run.stages, body)
            self.runs[run_id] = msgspec.structs.replace(run, stages=stages)


class Journal:
    """What was done to one cluster. Reads; what is written is written through the log."""

    def __init__(self, log: EventLog) -> None:
        """Read nothing yet."""
        self._log = log
        self._fold = JournalFold()

    def runs(self) -> tuple[RunRecord, ...]:
        """Return all runs, oldest first.

        A run without an end is running while one of the locks that it started with is held, and
        was interrupted otherwise: killed, or its machine went away.
        """
        return tuple(self._judged(run) for run in self._folded().runs.values())

    def interrupted(self) -> RunRecord | None:
        """Return the last run, if it was interrupted: there is something to go on with."""
        runs = self.runs()
        return runs[-1] if runs and runs[-1].state == "interrupted" else None

    def applied_spec(self) -> str | None:
        """Return the hash of the spec that was applied last; None when none ever was."""
        return self._folded().applied

    def built(self) -> Built | None:
        """Return what the cluster was brought up with last; None: unknown, or never."""
        return self._folded().built

    def stored_spec(self) -> SpecStored | None:
        """Return which object under `applied/` is the newest; None: none was stored."""
        return self._folded().stored

    def _folded(self) -> JournalFold:
        self._fold.apply(self._log.read(since=self._fold.seq))
        return self._fold

    def _judged(self, run: RunRecord) -> RunRecord:
        if run.state == "finished":
            return run
        held = any(is_held(self._log.store, site, e) for site, e in run.epochs.items())
        return run if held else msgspec.structs.replace(run, state="interrupted")


def _started(event: Event, body: RunStarted) -> RunRecord:
    return RunRecord(
        id=event.run,
        command=body.command,
        spec_hash=body.spec_hash,
        actor=event.actor,
        started=event.time,
        epochs=event.epochs,
        commit=body.commit,
        why=body.why,
    )


PREFIX = "applied"
REWRITTEN = "written again"
"""How what a repair did about an object begins, where that is there again."""


class Applied(msgspec.Struct, frozen=True, kw_only=True):
    """What a cluster was brought to, or was being brought to."""

    spec: str
    """Text of the spec."""
    catalogs: dict[str, bytes] = {}
    """Name -> content of the user's catalog files, in order of their names."""
    bundle: bytes | None = None
    """Manifest of the bundle that the nodes live on."""
    kubernetes: bytes | None = None
    """Manifest of the bundle that they take Kubernetes from."""


def newest_applied(store: StateStore, log: EventLog | None = None) -> Applied | None:
    """Return what was applied last; None when nothing ever was.

    Raises:
        LifecycleError: it is there and can't be read, or there was one and it is gone (GC900).
    """
    number = applied_number(store)
    if number:
        return store.read(applied_key(number), Applied)
    log = log or EventLog(store)
    if any(store.list(EVENTS)) and (stored := Journal(log).stored_spec()):
        raise store.damaged(applied_key(stored.number), "it is missing")
    return None


def refuse_lost_spec(log: EventLog) -> None:
    """Refuse to go on with an older spec, where the one that was applied last is gone.

    Raises:
        LifecycleError: it is missing, or another (GC900).
    """
    stored = Journal(log).stored_spec()
    if stored is None:
        return
    key, number = applied_key(stored.number), applied_number(log.store)
    if number < stored.number:
        raise log.store.damaged(key, "it is missing")
    if number == stored.number:
        content = log.store.get(key)
        if content is not None and digest(key, content) != stored.sha256:
            raise log.store.damaged(key, "events refer to another one")


def lost_specs(log: EventLog) -> set[str]:
    """Return the keys of specs that events refer to, that are missing and were not given up."""
    known: set[str] = set()
    for event in log.read():
        match event.body:
            case SpecStored(number=number):
                known.add(applied_key(number))
            case DamageAccepted(objects=objects):
                known -= {key for key, done in objects.items() if not done.startswith(REWRITTEN)}
    return known - set(log.store.list(PREFIX))


def applied_number(store: StateStore) -> int:
    """Return the number of the newest one: it grows with each spec that is applied; 0: none is."""
    names = (key.rpartition("/")[2].removesuffix(".json") for key in store.list(PREFIX))
    return max((int(name) for name in names if name.isdecimal()), default=0)


def store_applied(log: EventLog, applied: Applied) -> None:
    """Store what is being applied, unless the newest one is equal.

    Raises:
        LifecycleError: another run stored one meanwhile: it has the lock now (exit code LOCKED).
    """
    store = log.store
    number = applied_number(store)
    data = msgspec.json.encode(applied)
    if not number or store.get(applied_key(number)) != data:
        number += 1
        _store(store, applied_key(number), data)
    stored = SpecStored(number=number, sha256=digest(applied_key(number), data))
    if Journal(log).stored_spec() != stored:
        log.append(stored)


def _store(store: StateStore, key: str, data: bytes) -> None:
    try:
        store.put_new(key, data)
    except AlreadyExists:
        if store.get(key) != data:  # else the store repeated our own request
            raise failure(
                "GC904",
                "another run applied a spec meanwhile: it has the lock now",
                hint="see gcluster status, then run the command again",
                exit_code=Exit.LOCKED,
            ) from None


def applied_key(number: int) -> str:
    """Return the key of an applied spec."""
    return f"{PREFIX}/{number:06d}.json"
