#!/usr/bin/python3
"""Copy a tree from one tier of storage to another: resumable, and checked byte by byte.

usage: stage-data.py [--jobs N] [--within SECONDS] [--check] SOURCE DESTINATION

Files that have the same size and time in both are left alone; with --check their content is
compared too. Others are copied into NAME.gcluster-part, which a later run continues; it gets its
name, time and mode only when its SHA-256, read back, is the source's. Nothing is removed at the
destination, and a file that is newer there is not overwritten. Exits with 0 when all is copied, 3
when the time is over, 1 when something failed; the last line has the amount.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import hashlib
import os
import stat
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NoReturn

Hash = Any  # hashlib has no public name for it
PIECE = 8 << 20
PART = ".gcluster-part"


class OutOfTimeError(Exception):
    """The time for staging is over."""


class Stage:
    """One run."""

    def __init__(self, source: Path, destination: Path, within: float, *, check: bool) -> None:
        """Hold what is copied where, and until when."""
        self.source, self.destination, self.check = source, destination, check
        self.end = time.monotonic() + within if within else None
        self.lock = threading.Lock()
        self.done = {"copied": 0, "bytes": 0, "same": 0, "failed": 0}

    def count(self, **more: int) -> None:
        """Add to the counts."""
        with self.lock:
            for key, value in more.items():
                self.done[key] += value

    def in_time(self) -> None:
        """Raise when the time is over."""
        if self.end is not None and time.monotonic() > self.end:
            raise OutOfTimeError

    def digest(self, file: IO[bytes], limit: int | None = None) -> Hash:
        """Return the SHA-256 of an open file, or of its first bytes, as a hash that can go on."""
        found, left = hashlib.sha256(), limit
        file.seek(0)
        while piece := file.read(PIECE if left is None else min(PIECE, left)):
            self.in_time()
            found.update(piece)
            left = None if left is None else left - len(piece)
        return found

    def is_there(self, source: IO[bytes], here: os.stat_result, folder: int, name: str) -> bool:
        """Return whether a copy equals its source; refuse one that is newer."""
        try:
            there = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return False
        if not stat.S_ISREG(there.st_mode):
            raise OSError(f"{name} is there and no file")
        if (here.st_size, here.st_mtime_ns // 10**9) == (there.st_size, there.st_mtime_ns // 10**9):
            if not self.check:
                return True
            with opened(name, os.O_RDONLY, folder) as copy:
                return bool(self.digest(source).digest() == self.digest(copy).digest())
        if there.st_mtime_ns // 10**9 > here.st_mtime_ns // 10**9:
            raise OSError(f"{name} is newer than its source: not overwritten")
        return False

    def copy(self, path: Path) -> None:
        """Copy one file, going on where an earlier run ended."""
        where = path.relative_to(self.source)
        with path.open("rb") as source, contextlib.ExitStack() as held:
            folder = held.enter_context(folder_of(self.destination, where.parent.parts))
            before = os.fstat(source.fileno())
            if self.is_there(source, before, folder, where.name):
                self.count(same=1)
                return
            part = where.name + PART
            with opened(part, os.O_RDWR | os.O_CREAT, folder) as copy:
                sent = self.fill(source, copy, before)
                self.finish(source, copy, before, sent, part)
                os.replace(part, where.name, src_dir_fd=folder, dst_dir_fd=folder)
        self.count(copied=1)

    def fill(self, source: IO[bytes], copy: IO[bytes], before: os.stat_result) -> Hash:
        """Write what is missing of a copy; return the hash of all that was sent."""
        began = min(os.fstat(copy.fileno()).st_size, before.st_size)
        sent = self.digest(source, began)
        if began and self.digest(copy, began).digest() != sent.digest():
            began, sent = 0, hashlib.sha256()  # of another version of the file
        source.seek(began)
        copy.seek(began)
        copy.truncate()
        while piece := source.read(PIECE):
            self.in_time()
            sent.update(piece)
            copy.write(piece)
            self.count(bytes=len(piece))
        copy.flush()
        os.fsync(copy.fileno())
        return sent

    def finish(
        self, source: IO[bytes], copy: IO[bytes], before: os.stat_result, sent: Hash, part: str
    ) -> None:
        """Give a copy its owner, mode and time once it equals a source that did not change."""
        after = os.fstat(source.fileno())
        if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
            raise OSError("it changed while it was copied")
        if self.digest(copy).digest() != sent.digest():
            copy.truncate(0)
            raise OSError(f"{part}: what was written reads back otherwise")
        if os.geteuid() == 0:
            os.fchown(copy.fileno(), after.st_uid, after.st_gid)
        os.fchmod(copy.fileno(), stat.S_IMODE(after.st_mode))
        os.utime(copy.fileno(), ns=(after.st_atime_ns, after.st_mtime_ns))

    def attempt(self, path: Path) -> None:
        """Copy one file; report why where that fails."""
        try:
            self.copy(path)
        except OSError as error:
            self.count(failed=1)
            print(f"{path}: {error}", file=sys.stderr)

    def run(self, jobs: int) -> int:
        """Copy everything; return the exit status."""
        late = False
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            for future in [pool.submit(self.attempt, path) for path in files(self.source)]:
                try:
                    future.result()
                except OutOfTimeError:
                    late = True
        print(", ".join(f"{key} {value}" for key, value in self.done.items()))
        if late:
            print("the time is over; run it again to go on", file=sys.stderr)
        return 3 if late else int(self.done["failed"] > 0)


@contextlib.contextmanager
def folder_of(top: Path, parts: tuple[str, ...]) -> Iterator[int]:
    """Open a folder below `top`, making what is missing.

    No link is followed: root stages into trees that others write, who could lead it elsewhere.
    """
    at = os.open(top, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in parts:
            with contextlib.suppress(FileExistsError):
                os.mkdir(part, 0o755, dir_fd=at)
            below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
            os.close(at)
            at = below
        yield at
    finally:
        os.close(at)


def opened(name: str, flags: int, folder: int) -> IO[bytes]:
    """Open a regular file of an open folder; a link is refused."""
    file = os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(f"{name} is there and no file")
    return os.fdopen(file, "rb" if flags == os.O_RDONLY else "r+b")


def files(folder: Path) -> Iterator[Path]:
    """Yield the regular files of a tree; links are not followed."""
    for at, _, names in os.walk(folder, onerror=give_up):
        for name in sorted(names):
            path = Path(at, name)
            if not name.endswith(PART) and stat.S_ISREG(path.lstat().st_mode):
                yield path


def give_up(error: OSError) -> NoReturn:
    """End where a folder can't be read: what is in it would be missing."""
    sys.exit(f"{error.filename}: {error.strerror}")


def main() -> None:
    """Copy, or report what fails."""
    parser = argparse.ArgumentParser(description="copy a tree between tiers of storage")
    parser.add_argument("--jobs", type=int, default=8, help="files at a time")
    parser.add_argument("--within", type=float, default=0, help="seconds; 0 for no limit")
    parser.add_argument("--check", action="store_true", help="compare what looks the same, too")
    parser.add_argument("source", type=Path)
    parser.add_argument("destination", type=Path)
    args = parser.parse_args()
    if not args.source.is_dir():
        sys.exit(f"{args.source} is no folder")
    args.destination.mkdir(parents=True, exist_ok=True)
    sys.exit(Stage(args.source, args.destination, args.within, check=args.check).run(args.jobs))


main()
