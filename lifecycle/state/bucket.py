"""Where a state URL becomes an object store: what state needs of one, and obstore behind it.

Only what S3, GCS and Azure have too is used: plain conditional create, replace, get, list, delete.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.store import LocalStore, ObjectStore

from ..cluster.outcome import LifecycleError, failure


class AlreadyExists(Exception):  # noqa: N818 - reads as the fact that it is
    """An object of this key was there already; it was left as it is."""

    def __init__(self, key: str) -> None:
        """Hold the key."""
        super().__init__(f"{key} already exists")
        self.key = key


class Bucket(Protocol):
    """What state needs of an object store. Keys are relative and use "/"."""

    def create(self, key: str, data: bytes) -> None:
        """Write a new object; raise AlreadyExists, writing nothing, where there is one."""
        ...

    def replace(self, key: str, data: bytes) -> None:
        """Write an object atomically: a reader sees the old bytes or the new ones."""
        ...

    def get(self, key: str) -> bytes | None:
        """Return the bytes of an object, or None where there is none."""
        ...

    def list(self, prefix: str, after: str | None = None) -> list[str]:
        """Return the keys under `prefix` (whole path segments), sorted, those after `after`."""
        ...

    def delete(self, key: str) -> None:
        """Remove an object; nothing happens where there is none."""
        ...


class ObstoreBucket:
    """Any store that obstore can open."""

    def __init__(self, store: ObjectStore, name: str, hint: str = "") -> None:
        """Hold the store; `name` is what messages call it, `hint` what to do where it fails."""
        self._store = store
        self._name = name
        self._hint = hint

    def create(self, key: str, data: bytes) -> None:
        """Write a new object, or raise AlreadyExists."""
        with self._errors("written", key):
            obstore.put(self._store, key, data, mode="create", use_multipart=False)

    def replace(self, key: str, data: bytes) -> None:
        """Write an object whole."""
        with self._errors("written", key):
            obstore.put(self._store, key, data, use_multipart=False)

    def get(self, key: str) -> bytes | None:
        """Return the bytes of an object, or None."""
        with self._errors("read", key), suppress(FileNotFoundError):
            return bytes(obstore.get(self._store, key).bytes())
        return None

    def list(self, prefix: str, after: str | None = None) -> list[str]:
        """Return the sorted keys under `prefix`."""
        with self._errors("listed", prefix):
            chunks = obstore.list(self._store, prefix, offset=after, chunk_size=1000)
            return sorted(meta["path"] for chunk in chunks for meta in chunk)

    def delete(self, key: str) -> None:
        """Remove an object."""
        with self._errors("deleted", key), suppress(FileNotFoundError):
            obstore.delete(self._store, key)

    @contextmanager
    def _errors(self, verb: str, key: str) -> Iterator[None]:

        try:
            yield
        except AlreadyExistsError:
            raise AlreadyExists(key) from None
        except (BaseError, OSError) as error:
            raise broken(self._name, f"{key} can't be {verb}", error, self._hint) from error


_NO_DIRECTORY = "check that the path is a directory that you may read and write"


def broken(name: str, what: str, error: Exception, hint: str = "") -> LifecycleError:
    """Return the error for a failed request; the library's message is its detail."""
    reason = str(error).partition("\n\n")[0].strip()
    return failure("GC901", f"state at {name}: {what}", detail=reason, hint=hint or _NO_DIRECTORY)


class DirectoryBucket:
    """A directory, made 0700 at the first write; objects are files of mode 0600, synced to disk."""

    def __init__(self, place: str) -> None:
        """Check that the directory, where it exists, can be used."""
        self._root = root = Path(place)
        self._opened: ObstoreBucket | None = None
        with self._problems():
            if root.exists():
                next(root.iterdir(), None)

    def create(self, key: str, data: bytes) -> None:
        """Write a new file, or raise AlreadyExists."""
        self._write(lambda bucket: bucket.create(key, data), key)

    def replace(self, key: str, data: bytes) -> None:
        """Write a temporary file and rename it over the old one."""
        self._write(lambda bucket: bucket.replace(key, data), key)

    def get(self, key: str) -> bytes | None:
        """Return the bytes of a file, or None."""
        bucket = self._existing()
        return bucket.get(key) if bucket is not None else None

    def list(self, prefix: str, after: str | None = None) -> list[str]:
        """Return the sorted keys under `prefix`."""
        bucket = self._existing()
        return bucket.list(prefix, after) if bucket is not None else []

    def delete(self, key: str) -> None:
        """Remove a file."""
        bucket = self._existing()
        if bucket is not None:
            bucket.delete(key)

    def _existing(self) -> ObstoreBucket | None:
        if self._opened is None:
            with self._problems():
                if not self._root.exists():
                    return None
            self._opened = self._open()
        return self._opened

    def _open(self) -> ObstoreBucket:

        with self._problems():
            return ObstoreBucket(LocalStore(str(self._root)), str(self._root))

    def _write(self, write: Callable[[ObstoreBucket], None], key: str) -> None:
        with self._problems():
            if not self._root.exists():
                self._root.parent.mkdir(parents=True, exist_ok=True)
                self._root.mkdir(mode=0o700, exist_ok=True)
        bucket = self._existing()
        if bucket is None:
            raise failure("GC901", f"the state directory {self._root} vanished while it was used")
        write(bucket)
        self._settle(self._root / key)

    def _settle(self, path: Path) -> None:
        """Make a written file private and durable; a file already removed again is no matter."""
        with self._problems(), suppress(FileNotFoundError):
            with suppress(PermissionError):  # a file system without modes
                path.chmod(0o600)
            for place in (path, path.parent):
                descriptor = os.open(place, os.O_RDONLY)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)

    @contextmanager
    def _problems(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise broken(str(self._root), "the state directory can't be used", error) from error
