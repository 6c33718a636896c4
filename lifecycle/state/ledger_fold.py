"""The ledger as the events tell it: what was meant to exist, and what exists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

import msgspec

from .event import Event, EventFold
from .kinds import (
    Deletion,
    Intent,
    IntentsStored,
    ResourcesCreated,
    ResourcesDeleted,
    ResourcesFailed,
)


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
    """The ledger as the events tell it. Pure: the same events, the same ledger."""

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
