"""A double of the ledger: keeps the records in memory, in the order of calls."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping

from gcluster.stacks.provider import Resource


class Killed(BaseException):
    """What a test raises where a process would be killed."""


class RecordingLedger:
    """Implements stacks.provider.Ledger; `entries` is what a reader of the log would see."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.entries: list[tuple[str, str, str]] = []
        """(verb, site/kind/name, intent or provider id), in order."""
        self.open: dict[str, str] = {}
        self.existing: dict[str, str] = {}
        """site/kind/name -> provider id."""
        self.places: dict[str, str] = {}
        self.dies_at: str | None = None
        """Verb at whose first call the caller is killed; then it works again."""
        self._lock = threading.Lock()

    def intend(self, site: str, resource: Resource) -> str:
        """Open an intent, or return the one that is open."""
        with self._lock:
            place = f"{site}/{resource.key}"
            intent = self.open.setdefault(place, f"intent-{len(self.places)}")
            self.places[intent] = place
            self._note("intend", place, intent)
            return intent

    def intend_many(self, site: str, resources: Iterable[Resource]) -> dict[str, str]:
        """Open many."""
        return {resource.key: self.intend(site, resource) for resource in resources}

    def created(self, intent: str, provider_id: str) -> None:
        """Close an intent: it exists."""
        with self._lock:
            place = self.places[intent]
            self._note("created", place, provider_id)
            self.open.pop(place, None)
            self.existing[place] = provider_id

    def created_many(self, created: Mapping[str, str]) -> None:
        """Close many."""
        for intent, provider_id in created.items():
            self.created(intent, provider_id)

    def adopt(self, site: str, found: Iterable[tuple[str, Resource, str]]) -> None:
        """Note what is there; an intent that isn't known gets another."""
        known = self.known(site)
        for token, resource, provider_id in found:
            if provider_id not in known:
                intent = token if token in self.places else self.intend(site, resource)
                self.created(intent, provider_id)

    def failed(self, intent: str, reason: str) -> None:
        """Close an intent: nothing exists."""
        with self._lock:
            place = self.places[intent]
            self._note("failed", place, reason)
            self.open.pop(place, None)

    def deleted(self, site: str, resource_key: str, provider_id: str) -> None:
        """Strike out what was there."""
        with self._lock:
            place = f"{site}/{resource_key}"
            self._note("deleted", place, provider_id)
            if self.existing.get(place) == provider_id:
                del self.existing[place]

    def unclear(self, site: str) -> dict[str, str]:
        """Return intent -> resource key of what is open."""
        return {i: place.removeprefix(f"{site}/") for place, i in self._of(site, self.open)}

    def known(self, site: str) -> dict[str, str]:
        """Return id -> resource key of what exists."""
        return {i: place.removeprefix(f"{site}/") for place, i in self._of(site, self.existing)}

    def _of(self, site: str, book: Mapping[str, str]) -> list[tuple[str, str]]:
        with self._lock:
            return [entry for entry in book.items() if entry[0].startswith(f"{site}/")]

    def count(self, verb: str) -> int:
        """Return how often something was recorded."""
        return sum(1 for entry in self.entries if entry[0] == verb)

    def _note(self, verb: str, place: str, detail: str) -> None:
        if verb == self.dies_at:
            self.dies_at = None
            raise Killed
        self.entries.append((verb, place, detail))
