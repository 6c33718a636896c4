"""The state of one cluster as named objects: who it is, and which version of the layout it has."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

import msgspec

from ...schemas.decoding import decode_json
from ..outcome import LifecycleError, failure
from .bucket import AlreadyExists, Bucket, connect
from .formats import FORMAT_KEY, NEWEST, Format

IDENTITY_KEY = "cluster.json"

T = TypeVar("T")


class ClusterIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """Who the state belongs to."""

    id: str
    """16 random hex digits: tells two clusters of the same name apart."""
    name: str
    created: datetime


def utc_now() -> datetime:
    """Return the time now, in UTC."""
    return datetime.now(UTC)


def corrupt(key: str, reason: object) -> LifecycleError:
    """Build the error for an object that can't be understood."""
    return failure(
        "GC900",
        f"state object {key} is corrupt: {reason}",
        hint="restore it from a backup of the state; nothing was changed",
    )


class StateStore:
    """Named objects of one cluster. Reading creates nothing; the first write lays the store out."""

    def __init__(
        self, bucket: Bucket, *, url: str, clock: Callable[[], datetime] = utc_now
    ) -> None:
        """Hold an opened bucket; `open` is the usual way in.

        Raises:
            LifecycleError: the state was written by a newer version, or can't be read.
        """
        self.url = url
        self._bucket = bucket
        self._clock = clock
        self._format = self._read_format()

    @classmethod
    def open(cls, url: str) -> StateStore:
        """Open the state at a URL.

        Raises:
            LifecycleError: an unknown scheme, a path that can't be used, or a newer version.
        """
        return cls(connect(url), url=url)

    def format(self) -> int:
        """Return the version of the layout; one that is older is looked at again each time.

        Raises:
            LifecycleError: it was brought to a newer one than this version knows (GC902).
        """
        if self._format != NEWEST:
            self.refuse_newer()
        return NEWEST if self._format is None else self._format

    def refuse_newer(self) -> None:
        """Look whether a newer version brought the state to its own format since it was opened.

        Raises:
            LifecycleError: it did (GC902).
        """
        self._format = self._read_format()

    def put_new(self, key: str, data: bytes) -> None:
        """Write an object that must not exist yet.

        Raises:
            AlreadyExists: it does; it was not touched.
            LifecycleError: the store can't be written.
        """
        self._lay_out()
        self._bucket.create(key, data)

    def put(self, key: str, data: bytes) -> None:
        """Write a cache or an artifact, replacing what was there as a whole.

        Raises:
            LifecycleError: the store can't be written.
        """
        self._lay_out()
        self._bucket.replace(key, data)

    def get(self, key: str) -> bytes | None:
        """Return an object's bytes; None where there is none."""
        return self._bucket.get(key)

    def list(self, prefix: str, *, after: str | None = None) -> list[str]:
        """Return the keys under a prefix of whole path segments, sorted; those after `after`."""
        return self._bucket.list(prefix, after)

    def delete(self, key: str) -> None:
        """Remove an object: secrets at the end of a cluster, nothing else."""
        self._bucket.delete(key)

    def read(self, key: str, kind: type[T]) -> T | None:
        """Return a JSON object as `kind`; None where there is none.

        Raises:
            LifecycleError: it is there and isn't one (GC900, naming the key).
        """
        data = self.get(key)
        if data is None:
            return None
        try:
            return decode_json(data, kind)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise corrupt(key, error) from error

    def identity(self) -> ClusterIdentity | None:
        """Return who the state belongs to; None while nobody has said."""
        return self.read(IDENTITY_KEY, ClusterIdentity)

    def identify(self, name: str) -> ClusterIdentity:
        """Return the cluster's identity, made once; processes that race get the same one.

        Raises:
            LifecycleError: the state belongs to a cluster of another name.
        """
        found = self.identity()
        if found is None:
            made = ClusterIdentity(id=secrets.token_hex(8), name=name, created=self._clock())
            try:
                self.put_new(IDENTITY_KEY, msgspec.json.encode(made))
            except AlreadyExists:
                found = self.identity()  # another process was faster: its identity stands
            else:
                found = made
        if found is None:
            raise corrupt(IDENTITY_KEY, "it vanished")
        if found.name != name:
            raise failure(
                "GC901",
                f'state at {self.url} belongs to cluster "{found.name}", not to "{name}"',
                hint="give each cluster a state of its own; a cluster can't be renamed",
            )
        return found

    def _read_format(self) -> int | None:
        """Return the version of the layout; None: nothing was ever written."""
        found = self.read(FORMAT_KEY, Format)
        if found is not None and found.version > NEWEST:
            raise failure(
                "GC902",
                f"state at {self.url} was written by a newer gcluster: its format is "
                f"{found.version}, this version knows {NEWEST}",
                hint="upgrade gcluster on this machine",
            )
        return None if found is None else found.version

    def _lay_out(self) -> None:
        if self._format is not None:
            return
        try:
            self._bucket.create(FORMAT_KEY, msgspec.json.encode(Format(NEWEST)))
            self._format = NEWEST
        except AlreadyExists:
            self.refuse_newer()
