#!/usr/bin/python3
"""Copy a tree from one tier of storage to another: resumable, and checked byte by byte.

usage: stage-data.py [--jobs N] [--within SECONDS] [--check] SOURCE DESTINATION

Files that have the same size and time in both are left alone; with --check their content is
compared too. Others are copied into NAME.gcluster-part, which a later run continues; it gets its
name, time and mode only when its SHA-256, read back, is the source's. Nothing is removed at the
destination, and a file that is newer there is not overwritten.

Where SOURCE has a file SHA256SUMS, as sha256sum(1) writes it, all that it names is held against it,
at the destination too: what differs at the source is an error, what differs in the copy is copied
again. What was found right is kept in DESTINATION/.gcluster-checked with size and times, and read
again when one of them has changed.

Exits with 0 when all is copied, 3 when the time is over, 1 when something failed; the last line has
the amount.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import hashlib
import json
import os
import re
import stat
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import IO, Any, NoReturn

Hash = Any  # hashlib has no public name for it
PIECE = 8 << 20
PART = ".gcluster-part"
SUMS = "SHA256SUMS"
CHECKED = ".gcluster-checked"
LINE = re.compile(r"(?P<escaped>\\?)(?P<sha256>[0-9a-f]{64}) [ *](?P<name>.+)")
"""Of SHA256SUMS; a name with line feeds or backslashes has them escaped (GNU coreutils)."""


class OutOfTimeError(Exception):
    """The time for staging is over."""


class Sums:
    """The hashes that files must have, and what was found right before."""

    def __init__(self, source: Path, destination: Path) -> None:
        """Read SHA256SUMS, where there is one.

        Raises:
            ValueError: a line of it can't be read, or leads out of the tree.
        """
        self._file, self._lock = destination / CHECKED, threading.Lock()
        self._checked: dict[str, list[Any]] = {}
        self.right: set[str] = set()
        try:
            text = (source / SUMS).read_text(encoding="utf-8", errors="surrogateescape")
        except FileNotFoundError:
            text = ""
        self.wanted = dict(map(self._entry, filter(None, text.split("\n"))))
        with contextlib.suppress(OSError, ValueError, TypeError):
            known = json.loads(self._file.read_text()) if self.wanted else {}
            self._checked = {str(name): list(seen) for name, seen in known.items()}

    @staticmethod
    def _entry(line: str) -> tuple[str, str]:
        found = LINE.fullmatch(line)
        if found is None:
            raise ValueError(f"{SUMS} has a line that sha256sum doesn't write: {line[:80]}")
        name = found["name"]
        if found["escaped"]:
            name = re.sub(r"\\(.)", lambda each: {"n": "\n"}.get(each[1], each[1]), name)
        path = PurePath(name)
        if path.is_absolute() or ".." in path.parts:
            raise ValueError(f"{SUMS} names a file outside: {name}")
        return str(path), found["sha256"]

    def was_right(self, name: str, now: os.stat_result) -> bool:
        """Whether this copy was found right, and nothing has written to it since."""
        is_so = self._checked.get(name) == self._mark(name, now)
        if is_so:
            self.right.add(name)
        return is_so

    def is_right(self, name: str, now: os.stat_result) -> None:
        """Keep that a copy was found right."""
        with self._lock:
            self._checked[name] = self._mark(name, now)
            self.right.add(name)

    def _mark(self, name: str, now: os.stat_result) -> list[Any]:
        return [self.wanted.get(name), now.st_size, now.st_mtime_ns, now.st_ctime_ns, now.st_ino]

    def keep(self) -> None:
        """Write what was found right; without it all is read again."""
        if not self.wanted:
            return
        new = self._file.with_name(f"{CHECKED}.{os.getpid()}{PART}")
        try:
            with contextlib.suppress(OSError):
                new.unlink()
            with opened_new(new) as file:
                known = {name: self._checked[name] for name in sorted(self.right)}
                file.write(json.dumps(known).encode())
            new.replace(self._file)
        except OSError as error:
            print(f"{self._file}: {error.strerror}", file=sys.stderr)


class Stage:
    """One run."""

    def __init__(self, source: Path, destination: Path, within: float, *, check: bool) -> None:
        """Hold what is copied where, and until when."""
        self.source, self.destination, self.check = source, destination, check
        self.end = time.monotonic() + within if within else None
        self.lock = threading.Lock()
        self.done = {"copied": 0, "bytes": 0, "same": 0, "failed": 0}
        self.sums = Sums(source, destination)
        self.found: set[str] = set()

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

    def is_there(self, source: IO[bytes], here: os.stat_result, folder: int, where: Path) -> bool:
        """Return whether a copy equals its source; refuse one that is newer."""
        name, wanted = where.name, self.sums.wanted.get(str(where))
        try:
            there = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return False
        if not stat.S_ISREG(there.st_mode):
            raise OSError(f"{name} is there and no file")
        if (here.st_size, here.st_mtime_ns // 10**9) == (there.st_size, there.st_mtime_ns // 10**9):
            if not self.check and (wanted is None or self.sums.was_right(str(where), there)):
                return True
            with opened(name, os.O_RDONLY, folder) as copy:
                found = self.digest(copy).hexdigest()
                if wanted is None:
                    return bool(self.digest(source).hexdigest() == found)
                if found == wanted:
                    self.sums.is_right(str(where), os.fstat(copy.fileno()))
                return bool(found == wanted)
        if there.st_mtime_ns // 10**9 > here.st_mtime_ns // 10**9:
            raise OSError(f"{name} is newer than its source: not overwritten")
        return False

    def copy(self, path: Path) -> None:
        """Copy one file, going on where an earlier run ended."""
        where = path.relative_to(self.source)
        with path.open("rb") as source, contextlib.ExitStack() as held:
            folder = held.enter_context(folder_of(self.destination, where.parent.parts))
            before = os.fstat(source.fileno())
            if self.is_there(source, before, folder, where):
                self.count(same=1)
                return
            part = where.name + PART
            with opened(part, os.O_RDWR | os.O_CREAT, folder) as copy:
                sent = self.fill(source, copy, before)
                wanted = self.sums.wanted.get(str(where))
                if wanted not in (None, sent.hexdigest()):
                    copy.truncate(0)
                    raise OSError(f"its content is not what {SUMS} says")
                self.finish(source, copy, before, sent, part)
                os.replace(part, where.name, src_dir_fd=folder, dst_dir_fd=folder)
                if wanted is not None:
                    self.sums.is_right(str(where), os.fstat(copy.fileno()))
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
        self.found.add(str(path.relative_to(self.source)))
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
        for name in sorted(self.sums.wanted.keys() - self.found) if not late else ():
            self.count(failed=1)
            print(f"{self.source / name}: it is missing, and {SUMS} names it", file=sys.stderr)
        self.sums.keep()
        words = [f"{key} {value}" for key, value in self.done.items()]
        words += [f"{len(self.sums.right)} as {SUMS} says"] if self.sums.wanted else []
        print(", ".join(words))
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


def opened_new(path: Path) -> IO[bytes]:
    """Open a file that isn't there yet, for writing."""
    return os.fdopen(
        os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644), "wb"
    )


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
            if not name.endswith(PART) and name != CHECKED and stat.S_ISREG(path.lstat().st_mode):
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
    try:
        stage = Stage(args.source, args.destination, args.within, check=args.check)
    except (OSError, ValueError) as error:
        sys.exit(f"{args.source}: {error}")
    sys.exit(stage.run(args.jobs))


main()
