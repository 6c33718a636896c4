"""The ledger: resources meant to exist and existing, folded from the events.

An intent is stored before the call that creates. Many threads may record at once: what they record
while one event is being written is collected in the next one.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

import msgspec

from ...stacks.provider import Resource
from .event_types import (
    Deletion,
    Intent,
    IntentsStored,
    Known,
    ResourcesCreated,
    ResourcesDeleted,
    ResourcesFailed,
)
from .events import Event, EventFold, EventLog


class ExistingResource(msgspec.Struct, frozen=True, kw_only=True):
    """A resource that was created and not deleted since."""

    site: str
    kind: str
    key: str
    pool: str | None
    provider_id: str
    intent: str
    since: datetime


class LedgerFold(EventFold):
    """The ledger as a fold of the events. Pure: the same events, the same ledger."""

    def __init__(self) -> None:
        """Begin with nothing."""
        super().__init__()
        self.intents: dict[str, Intent] = {}
        self.open: dict[tuple[str, str], Intent] = {}
        """(site, resource key) -> the intent without a result."""
        self.existing: dict[tuple[str, str, str], ExistingResource] = {}
        """(site, resource key, provider id) -> what exists."""

    def apply(self, events: Iterable[Event]) -> None:
        """Fold more events, in order; those folded before, and stale ones, change nothing."""
        for event in self.fresh(events):
            match event.body:
                case IntentsStored(intents=intents):
                    self._intended(intents)
                case ResourcesCreated(created=created):
                    self._created(created, event.time)
                case ResourcesFailed(failed=failed):
                    self._failed(failed)
                case ResourcesDeleted(deleted=deleted):
                    self._deleted(deleted)

    def _intended(self, intents: Iterable[Intent]) -> None:
        for intent in intents:
            if intent.id not in self.intents:
                self.intents[intent.id] = intent
                self.open[intent.site, intent.resource_key] = intent

    def _created(self, created: Mapping[str, str], time: datetime) -> None:
        for identifier, provider_id in created.items():
            intent = self.intents.get(identifier)
            if intent is None:
                continue  # only another program can have written it: there is nothing to call it
            self._close(intent)
            self.existing[intent.site, intent.resource_key, provider_id] = ExistingResource(
                site=intent.site,
                kind=intent.resource_kind,
                key=intent.resource_key,
                pool=intent.pool,
                provider_id=provider_id,
                intent=intent.id,
                since=time,
            )

    def _failed(self, failed: Iterable[str]) -> None:
        for identifier in failed:
            intent = self.intents.get(identifier)
            if intent is not None:
                self._close(intent)

    def _deleted(self, deleted: Iterable[Deletion]) -> None:
        for gone in deleted:
            known = self.existing.pop((gone.site, gone.resource_key, gone.provider_id), None)
            if known is None:  # created, but killed before that could be recorded
                self.open.pop((gone.site, gone.resource_key), None)

    def _close(self, intent: Intent) -> None:
        place = (intent.site, intent.resource_key)
        if self.open.get(place) == intent:
            del self.open[place]


@dataclass
class _Batch:
    """Entries of several threads that are written together."""

    wanted: list[tuple[str, Resource]] = field(default_factory=list)
    created: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    deleted: list[Deletion] = field(default_factory=list)
    answers: dict[tuple[str, str], str] = field(default_factory=dict)
    """(site, resource key) -> intent, for all that were wanted."""
    has_writer: bool = False  # the first thread that adds to a batch writes it
    written: threading.Event = field(default_factory=threading.Event)  # or failed
    error: BaseException | None = None


class Ledger:
    """The cluster's ledger; implements `stacks.provider.Ledger`. Safe to share between threads."""

    def __init__(self, log: EventLog) -> None:
        """Read nothing yet."""
        self._log = log
        self._fold = LedgerFold()
        self._fold_lock = threading.Lock()
        """Guards the fold; never held while the store is waited for."""
        self._queue = threading.Lock()
        self._batch = _Batch()  # what the next writer writes; guarded by `_queue`
        self._write_lock = threading.Lock()  # held by the one thread that writes

    def intend(self, site: str, resource: Resource) -> str:
        """Store the intent to create `resource`; return its id, the call's idempotency token.

        An open intent of the same site and resource key is returned again.
        """
        return self.intend_many(site, (resource,))[resource.key]

    def intend_many(self, site: str, resources: Iterable[Resource]) -> dict[str, str]:
        """Store many intents in one event; return resource key -> intent id.

        Use it wherever many resources are about to be created: one object is written for all.
        """
        wanted = [(site, resource) for resource in resources]
        batch = self._commit(lambda batch: batch.wanted.extend(wanted))
        return {resource.key: batch.answers[site, resource.key] for _, resource in wanted}

    def created(self, intent: str, provider_id: str) -> None:
        """Record that the intended resource exists."""
        self.created_many({intent: provider_id})

    def created_many(self, created: Mapping[str, str]) -> None:
        """Record that intended resources exist: intent -> the provider's id.

        Raises:
            ValueError: no such intent was stored: the caller broke the rule of intents.
        """
        self._require_recorded(created)
        self._commit(lambda batch: batch.created.update(created))

    def adopt(self, site: str, found: Iterable[tuple[str, Resource, str]]) -> None:
        """Record what is there, each as (intent that it carries, resource, provider's id).

        An intent that was lost with a part of the events is stored again as another.
        """
        known = self.known(site)
        new = [item for item in found if item[2] not in known]
        with self._fold_lock:
            recorded = {token: place for token, _, place in new if token in self._fold.intents}
        lost = [(resource, place) for token, resource, place in new if token not in recorded]
        if lost:
            intents = self.intend_many(site, (resource for resource, _ in lost))
            recorded |= {intents[resource.key]: place for resource, place in lost}
        if recorded:
            self.created_many(recorded)

    def failed(self, intent: str, reason: str) -> None:
        """Record that it was not created and nothing is left of it."""
        self._require_recorded((intent,))
        self._commit(lambda batch: batch.failed.update({intent: reason}))

    def deleted(self, site: str, resource_key: str, provider_id: str) -> None:
        """Record that it is gone."""
        gone = Deletion(site=site, resource_key=resource_key, provider_id=provider_id)
        self._commit(lambda batch: batch.deleted.append(gone))

    def unclear(self, site: str) -> Mapping[str, str]:
        """Return intent -> resource key, of the intents of a site without a result."""
        return {intent.id: intent.resource_key for intent in self.open_intents(site)}

    def known(self, site: str) -> Mapping[str, str]:
        """Return the provider's id -> resource key, of all that exists on a site."""
        return {resource.provider_id: resource.key for resource in self.existing(site)}

    def settle(self, site: str, left: Iterable[str] = ()) -> None:
        """Record what a sweep of the site found: only `left` (provider ids) exists.

        Everything else of the site is closed, so that an intent whose creation was never begun
        does not stay open for ever.
        """
        left = set(left)
        gone = [e for e in self.existing(site) if e.provider_id not in left]
        stale = {i.id: "a sweep found nothing of it" for i in self.open_intents(site)}
        if gone or stale:
            self._commit(lambda batch: _settle(batch, gone, stale))

    def open_intents(self, site: str | None = None) -> tuple[Intent, ...]:
        """Return the intents without a result, oldest first; None: of all sites."""
        self._refresh()
        with self._fold_lock:
            return tuple(i for i in self._fold.open.values() if site in {None, i.site})

    def existing(self, site: str | None = None) -> tuple[ExistingResource, ...]:
        """Return what was created and not deleted, oldest first; None: on all sites."""
        self._refresh()
        with self._fold_lock:
            return tuple(e for e in self._fold.existing.values() if site in {None, e.site})

    def _commit(self, add: Callable[[_Batch], None]) -> _Batch:
        """Add to the batch and see it written: by the thread that added first."""
        with self._queue:
            batch = self._batch
            add(batch)
            leads, batch.has_writer = not batch.has_writer, True
        if leads:
            self._write_for_all(batch)
        batch.written.wait()
        if batch.error is not None:
            raise batch.error
        return batch

    def _write_for_all(self, batch: _Batch) -> None:
        """Write a batch for all threads that added to it; none of them waits for ever."""
        try:
            with self._write_lock:
                self._close(batch)
                self._write(batch)
        except BaseException as error:  # noqa: BLE001 - raised by every thread that waits
            batch.error = error
        finally:
            self._close(batch)
            batch.written.set()

    def _close(self, batch: _Batch) -> None:
        """Let what comes next go into another batch."""
        with self._queue:
            if self._batch is batch:
                self._batch = _Batch()

    def _write(self, batch: _Batch) -> None:
        if batch.wanted:
            self._log.append_decided(lambda: self._intents_for(batch))
        bodies: list[Known] = []
        if batch.created:
            bodies.append(ResourcesCreated(created=batch.created))
        if batch.failed:
            bodies.append(ResourcesFailed(failed=batch.failed))
        if batch.deleted:
            bodies.append(ResourcesDeleted(deleted=tuple(batch.deleted)))
        for body in bodies:
            self._log.append(body)
        self._catch_up()

    def _intents_for(self, batch: _Batch) -> IntentsStored | None:
        """Answer with the intents that are open; return the event that stores the others."""
        self._catch_up()
        new: dict[tuple[str, str], Intent] = {}
        with self._fold_lock:
            for site, resource in batch.wanted:
                place = (site, resource.key)
                if place in self._fold.open:
                    batch.answers[place] = self._fold.open[place].id
                elif place not in new:
                    new[place] = Intent(
                        id=str(uuid.uuid4()),
                        site=site,
                        resource_kind=resource.kind,
                        resource_key=resource.key,
                        pool=resource.pool,
                    )
                    batch.answers[place] = new[place].id
        return IntentsStored(intents=tuple(new.values())) if new else None

    def _require_recorded(self, intents: Iterable[str]) -> None:
        with self._fold_lock:
            unknown = [intent for intent in intents if intent not in self._fold.intents]
        if unknown:  # stored by another process, perhaps
            self._refresh()
            with self._fold_lock:
                unknown = [intent for intent in unknown if intent not in self._fold.intents]
        if unknown:
            raise ValueError(f"no such intent: {', '.join(unknown)}")

    def _refresh(self) -> None:
        self._log.read(since=self._fold.seq)
        self._catch_up()

    def _catch_up(self) -> None:
        events = self._log.known(since=self._fold.seq)
        with self._fold_lock:
            self._fold.apply(events)


def _settle(batch: _Batch, gone: Iterable[ExistingResource], stale: Mapping[str, str]) -> None:
    batch.deleted.extend(
        Deletion(site=e.site, resource_key=e.key, provider_id=e.provider_id) for e in gone
    )
    batch.failed.update(stale)
