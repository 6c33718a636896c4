"""What a run left in files: logs, playbooks, Ansible's own; kept in the state as one archive a run.

The files themselves stay on the machine that ran it, until `down`; a pipeline's machine has no
tomorrow. They hold no secrets: those travel as files in memory.
"""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

from .. import AlreadyExists, StateStore

PREFIX = "runs"
_LARGEST = 64 * 1024 * 1024
"""Bytes of one file at most; a larger one is left out."""


def store_artifacts(store: StateStore, run: str, directory: Path) -> None:
    """Store what lies in a run's directory; nothing when it is empty.

    Raises:
        LifecycleError: the store can't be written.
    """
    data = _packed(directory)
    if data is None:
        return
    try:
        store.put_new(_key(run), data)
    except AlreadyExists:
        return  # the store repeated our own request


def read_artifacts(store: StateStore, run: str) -> bytes | None:
    """Return the archive of a run (tar, gzip); None where it left nothing."""
    return store.get(_key(run))


def stored_artifacts(store: StateStore) -> list[str]:
    """Return the objects of all runs' archives, which end with the cluster."""
    return store.list(PREFIX)


def _packed(directory: Path) -> bytes | None:
    """Return an archive of the regular files below a directory, in order of their names."""
    if not directory.is_dir():
        return None
    files = sorted(f for f in directory.rglob("*") if f.is_file() and not f.is_symlink())
    kept = [f for f in files if f.stat().st_size <= _LARGEST]
    if not kept:
        return None
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=6) as archive:
        for file in kept:
            archive.add(file, arcname=str(file.relative_to(directory)), recursive=False)
    return buffer.getvalue()


def _key(run: str) -> str:
    return f"{PREFIX}/{run}.tar.gz"
