"""State in a directory of this machine: private, synced to disk, made at the first write."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..outcome import failure
from .bucket import ObstoreBucket, broken


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
        """Write a file beside the old one and rename it over."""
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
        from obstore.store import LocalStore  # noqa: PLC0415 - lazy

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
