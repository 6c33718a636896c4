"""The state of one cluster as named objects: who it is, and which version of the layout it has."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

import msgspec

from ...schemas.decoding import decode_json
from ..cluster.outcome import LifecycleError, failure
from .bucket import AlreadyExists, Bucket, connect

IDENTITY_KEY = "cluster.json"
FORMAT_KEY = "format.json"
FORMAT = 3
"""Version of the layout: the only one that is read, and the one that is written."""

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


class _Format(msgspec.Struct, frozen=True):
    """Content of `format.json`."""

    version: int


class StateStore:
    """Named objects of one cluster. Reading creates nothing; the first write lays the store out."""

    def __init__(
        self, bucket: Bucket, *, url: str, clock: Callable[[], datetime] = utc_now
    ) -> None:
        """Hold an opened bucket; `open` is the usual way in.

        Raises:
            LifecycleError: the state has another format (GC902), or can't be read.
        """
        self.url = url
        self._bucket = bucket
        self._clock = clock
        self._has_format = False
        self.check_format()

    @classmethod
    def open(cls, url: str) -> StateStore:
        """Open the state at a URL.

        Raises:
            LifecycleError: an unknown scheme, a path that can't be used, or another format.
        """
        return cls(connect(url), url=url)

    def check_format(self) -> None:
        """Read the version of the layout again: others may have changed it since.

        Raises:
            LifecycleError: it is not the one that this version reads (GC902).
        """
        found = self.read(FORMAT_KEY, _Format)
        if found is not None and found.version != FORMAT:
            raise _other_format(self.url, found.version)
        self._has_format = found is not None

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
                found = self.identity()  # another process was faster: its identity is kept
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

    def _lay_out(self) -> None:
        if self._has_format:
            return
        try:
            self._bucket.create(FORMAT_KEY, msgspec.json.encode(_Format(FORMAT)))
            self._has_format = True
        except AlreadyExists:
            self.check_format()


def _other_format(url: str, version: int) -> LifecycleError:
    newer = version > FORMAT
    return failure(
        "GC902",
        f"state at {url} was written by {'a newer' if newer else 'an unreleased older'} gcluster: "
        f"its format is {version}, this version reads {FORMAT}",
        hint="upgrade gcluster on this machine"
        if newer
        else "remove the cluster by the version that made it, then bring it up with this one",
    )
