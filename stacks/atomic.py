"""Files that several processes share: written whole or not at all, one writer at a time."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkstemp


def write(path: Path, content: bytes, *, mode: int = 0o600) -> None:
    """Replace `path` by `content`; a reader or a crash sees the old or the new file."""
    descriptor, temporary = mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as handle:
            os.fchmod(handle.fileno(), mode)
            handle.write(content)
        Path(temporary).replace(path)
    except BaseException:
        with suppress(FileNotFoundError):
            Path(temporary).unlink()
        raise


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file `path` alone; other threads and processes wait. Made where missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
