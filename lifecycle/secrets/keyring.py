"""The data keys of one cluster: usually one; two while a rotation is under way."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import msgspec

from ...schemas.spec.secrets import AgeSecrets, Secrets, SopsSecrets
from ..state.bucket import AlreadyExists
from ..state.store import StateStore
from .age import AgeIdentity, AgeProvider, new_data_key
from .key_record import PREFIX, KeyProvider, KeyRecord, Kind, damaged
from .sops import SopsProvider

_OBJECT = re.compile(rf"{PREFIX}/(?P<number>\d{{6}})\.(?P<what>json|ended|moved)")


class _Listed(NamedTuple):
    """Numbers of data keys."""

    there: set[int]
    ended: set[int]
    moved: set[int]

    @property
    def forgotten(self) -> set[int]:
        """Those that a `down` is about to delete, or deleted."""
        return self.ended | self.moved

    @property
    def next(self) -> int:
        """The first after all that ever were."""
        return max(self.there | self.forgotten, default=0) + 1


class Keyring:
    """Records of data keys by number, and the providers that open them."""

    def __init__(
        self,
        store: StateStore,
        secrets: Secrets | None,
        cluster_id: str,
        keys_dir: Path,
        folder: Path,
    ) -> None:
        """Read nothing yet; `folder` is the spec's."""
        self._store = store
        self._secrets = secrets
        self._folder = folder
        self._age = AgeProvider(
            secrets if isinstance(secrets, AgeSecrets) else None,
            cluster_id,
            keys_dir,
            lambda: max(self._listed().ended, default=0),
        )
        self._opened: dict[KeyRecord, AgeIdentity] = {}
        self._read: dict[str, KeyRecord] = {}

    def __repr__(self) -> str:
        """Show who wraps."""
        return f"Keyring({self.provider.by!r})"

    @cached_property
    def provider(self) -> KeyProvider:
        """The provider that wraps new data keys, from the spec."""
        if isinstance(self._secrets, SopsSecrets):
            return SopsProvider(self._secrets.file, self._secrets.age, self._folder)
        return self._age

    def records(self) -> dict[int, KeyRecord]:
        """Return the data keys by number, the newest last.

        Raises:
            LifecycleError: one can't be read (GC900).
        """
        return self._records(self._listed().there)

    def pending_deletion(self) -> set[int]:
        """Return the numbers of existing data keys, and of those that a `down` began to delete."""
        listed = self._listed()
        return listed.there & listed.forgotten

    def forgotten(self) -> set[int]:
        """Return the numbers of the data keys that a `down` dropped, or began to."""
        return self._listed().forgotten

    def current(self) -> tuple[int, KeyRecord | None]:
        """Return the data key to encrypt for; None: the one to be made, of this number.

        Raises:
            LifecycleError: as `records`.
        """
        listed = self._listed()
        alive = listed.there - listed.forgotten
        if not alive:
            return listed.next, None
        number = max(alive)
        return number, self._records({number}).get(number)

    def next_number(self) -> int:
        """Return the number of a new data key: one that none ever had."""
        return self._listed().next

    def end(self, *, but_some: bool) -> tuple[int, ...]:
        """Announce the deletion of all data keys; return their numbers, which are never used again.

        `but_some`: some of what they encrypt is kept, for the next data key.
        """
        listed = self._listed()
        numbers = listed.there
        if self._age.files() and not numbers:
            numbers = {listed.next}  # so that a later identity has another file
        what, marked = ("moved", listed.moved) if but_some else ("ended", listed.ended)
        for number in sorted(numbers - marked):
            with suppress(AlreadyExists):
                self._store.put_new(f"{PREFIX}/{number:06d}.{what}", b"{}")
        return tuple(sorted(numbers))

    def invalidate(self) -> None:
        """Clear what was read: before this process held the lock, others may have started over."""
        self._read.clear()

    def data_key(self, record: KeyRecord) -> AgeIdentity:
        """Return a data key, opened; its provider is called once per process.

        Raises:
            LifecycleError: it can't be opened.
        """
        if record not in self._opened:
            identity = self._provider_of(record.provider).unwrap(record)
            box = AgeIdentity.from_key(identity, f"the data key by {record.by}")
            if box.recipient() != record.recipient:
                raise damaged(record)
            self._opened[record] = box
        return self._opened[record]

    def make(self, number: int) -> KeyRecord:
        """Create the data key with this number, wrapped as the spec says; an existing one is kept.

        Raises:
            LifecycleError: the provider can't wrap it, or can't open what it wrapped.
        """
        fresh = new_data_key()
        record = self.provider.wrap(fresh.identity(), fresh.recipient())
        self.data_key(record)  # nothing is encrypted for a key that can't be opened
        try:
            self._store.put_new(f"{PREFIX}/{number:06d}.json", msgspec.json.encode(record))
        except AlreadyExists:
            existing = self.records().get(number)
            if existing is None:
                raise self._store.damaged(f"{PREFIX}/{number:06d}.json", "it vanished") from None
            return existing
        return record

    def forget(self, number: int) -> None:
        """Delete one data key's record."""
        key = f"{PREFIX}/{number:06d}.json"
        self._read.pop(key, None)
        self._store.delete(key)

    def identities(self) -> tuple[Path, ...]:
        """Return the files of the identities that gcluster made on this machine."""
        return self._age.files()

    def forget_identities(self, files: Iterable[Path]) -> None:
        """Delete some of `identities`."""
        self._age.forget(files)

    def forget_unused(self) -> None:
        """Delete the identity that gcluster made on this machine where no data key needs it."""
        if not any(self._age.is_own_of(record) for record in self.records().values()):
            self._age.forget(self._age.files())

    def _listed(self) -> _Listed:
        """List what is there; a foreign copy is ignored."""
        found: dict[str, set[int]] = {"json": set(), "ended": set(), "moved": set()}
        for match in filter(None, map(_OBJECT.fullmatch, self._store.list(PREFIX))):
            found[match["what"]].add(int(match["number"]))
        return _Listed(there=found["json"], ended=found["ended"], moved=found["moved"])

    def _records(self, numbers: Iterable[int]) -> dict[int, KeyRecord]:
        found = {}
        for number in sorted(numbers):
            key = f"{PREFIX}/{number:06d}.json"
            record = self._read.get(key) or self._store.read(key, KeyRecord)
            if record is not None:
                self._read[key] = record  # a record is never changed
                found[number] = record
        return found

    def _provider_of(self, kind: Kind) -> KeyProvider:
        if kind == "age":
            return self._age
        return SopsProvider(None, (), self._folder)
