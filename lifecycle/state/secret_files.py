"""Secrets as files for programs that take nothing else: in memory, private, gone afterwards."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ..outcome import failure
from .process import is_running, pid_namespace, this_process

_PREFIX = "gcluster-secrets"


@contextmanager
def secret_files(values: Mapping[str, bytes]) -> Iterator[dict[str, Path]]:
    """Write each value to a file of its name, 0600, in a new 0700 directory; remove it at the end.

    What killed processes of this user left behind is removed first.

    Raises:
        LifecycleError: the directory can't be made.
    """
    base = _base()
    _sweep(base)
    me = this_process()
    prefix = f"{_PREFIX}.{os.getuid()}.{me.namespace}.{me.pid}.{me.started}."
    try:
        directory = Path(tempfile.mkdtemp(prefix=prefix, dir=base))
    except OSError as error:
        raise failure(
            "GC905", f"no place in memory for secrets: {base}: {error.strerror}"
        ) from error
    try:
        yield {name: _write(directory / name, value) for name, value in values.items()}
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _base() -> Path:
    """Return a directory in memory; where there is none, the usual one for temporary files."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    for place in (runtime, "/dev/shm"):  # noqa: S108 - tmpfs on purpose; the directory in it is 0700
        if place.startswith("/") and os.access(place, os.W_OK | os.X_OK) and Path(place).is_dir():
            return Path(place)
    return Path(tempfile.gettempdir())


def _write(path: Path, value: bytes) -> Path:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(value)
    return path


def _sweep(base: Path) -> None:
    mine = f"{_PREFIX}.{os.getuid()}.{pid_namespace()}."
    for directory in base.glob(f"{_PREFIX}.*"):
        if not directory.name.startswith(mine):
            continue
        pid, _, rest = directory.name.removeprefix(mine).partition(".")
        started = rest.partition(".")[0]
        if pid.isdecimal() and not is_running(int(pid), started) and _is_ours(directory):
            shutil.rmtree(directory, ignore_errors=True)


def _is_ours(directory: Path) -> bool:
    """Say whether it is a real directory of this user: others may write to the base, too."""
    try:
        found = directory.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
