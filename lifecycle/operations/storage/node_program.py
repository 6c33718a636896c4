"""One phase of the storage benchmark on one node: Python 3.9's library and nothing else.

It reaches the node on standard input, so nothing is installed there: `python3 - SETTINGS`, with
`Settings` as JSON. It prints one JSON object: what it did and between which times of the node's own
clock, or `error`. Caches are kept out by O_DIRECT where the file system has it, else by writing the
data out before the time is taken; what is written is random, so that no compression helps.
"""

from __future__ import annotations

import concurrent.futures
import json
import mmap
import os
import shutil
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

BLOCK = 4 << 20
"""Bytes of one call; a multiple of what any O_DIRECT wants."""
SYNC_EVERY = 64
"""Blocks after which data is written out where caches can't be kept out: else they take it all."""
LEFT = ".gcluster-storage-"
"""How the folders of this benchmark begin."""
MOUNT_POINT, TYPE_AFTER = 4, " - "
"""Field of a line of /proc/self/mountinfo, and what its file system type follows (proc(5))."""


class Settings(NamedTuple):
    """What to do."""

    phase: str
    mount: str
    folders: list[str]
    """Where the benchmark's folder may be made, the first that can be; then the one that was."""
    part: str
    """Name of the files that it works on: its own, or those that another node has written."""
    threads: int
    seconds: float
    most: int
    """Bytes, or files, of a thread at most."""
    start: float
    """Time of this node's clock at which to begin; 0: now."""


def mounted(path: str) -> str:
    """Return the type of the file system that is mounted at a path; "": none is."""
    found = ""
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        if line.split(" ")[MOUNT_POINT] == path:
            found = line.partition(TYPE_AFTER)[2].split(" ")[0]
    return found


def prepare(settings: Settings) -> dict[str, Any]:
    """Make the folder, and see whether files can be made and removed there; forget earlier ones."""
    kind = mounted(settings.mount)
    if not kind:
        return {"error": "nothing is mounted there"}
    problem = ""
    for word in settings.folders:
        folder = Path(word)
        try:
            for old in folder.parent.glob(f"{LEFT}*"):
                if old != folder:
                    shutil.rmtree(old, ignore_errors=True)
            folder.mkdir(exist_ok=True)
            trial = folder / f"trial-{settings.part}"
            trial.write_bytes(b"trial")
            trial.unlink()
        except OSError as error:
            problem = problem or f"{error.strerror}: {error.filename or folder}"
            continue
        room = os.statvfs(folder)
        return {
            "folder": word,
            "kind": kind,
            "free": room.f_bavail * room.f_frsize,
            "clock": time.time(),
        }
    return {"error": problem}


def opened(path: Path, flags: int) -> tuple[int, bool]:
    """Open a file past the caches; return it, and whether it is."""
    with suppress(OSError):
        return os.open(path, flags | os.O_DIRECT, 0o600), True
    return os.open(path, flags, 0o600), False


def place(settings: Settings, thread: int, suffix: str = "") -> Path:
    """Return the file of a thread; with a suffix its folder of small files."""
    return Path(settings.folders[0]) / f"{settings.part}{suffix}-{thread}"


def write(settings: Settings, thread: int, until: float) -> tuple[int, bool]:
    """Write one file until a time; return the bytes that are on the storage."""
    block = mmap.mmap(-1, BLOCK)
    block.write(os.urandom(BLOCK))
    file, is_direct = opened(place(settings, thread), os.O_WRONLY | os.O_CREAT)
    done = 0
    try:
        while done < settings.most and (not done or time.time() < until):
            done += os.pwrite(file, block, done)
            if not is_direct and done // BLOCK % SYNC_EVERY == 0:
                os.fdatasync(file)
        os.fsync(file)
    finally:
        os.close(file)
    return done, is_direct


def read(settings: Settings, thread: int, until: float) -> tuple[int, bool]:
    """Read one file until its end or a time; return the bytes."""
    block = mmap.mmap(-1, BLOCK)
    file, is_direct = opened(place(settings, thread), os.O_RDONLY)
    done = 0
    try:
        if not is_direct:
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        while not done or time.time() < until:
            count = os.preadv(file, [block], done)
            done += count
            if count < BLOCK:
                break
    finally:
        os.close(file)
    return done, is_direct


def create(settings: Settings, thread: int, until: float) -> tuple[int, bool]:
    """Make empty files; return how many."""
    folder = place(settings, thread, "-files")
    folder.mkdir()
    done = 0
    while done < settings.most and time.time() < until:
        os.close(os.open(folder / str(done), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        done += 1
    return done, True


def stat(settings: Settings, thread: int, until: float) -> tuple[int, bool]:
    """Read the attributes of the files that another node made."""
    folder = place(settings, thread, "-files")
    done = 0
    with suppress(FileNotFoundError):
        while done < settings.most and time.time() < until:
            (folder / str(done)).stat()
            done += 1
    return done, True


def unlink(settings: Settings, thread: int, until: float) -> tuple[int, bool]:
    """Remove the files that this node made."""
    folder = place(settings, thread, "-files")
    done = 0
    with suppress(FileNotFoundError):
        while time.time() < until:
            (folder / str(done)).unlink()
            done += 1
    return done, True


PHASES = {"write": write, "read": read, "create": create, "stat": stat, "unlink": unlink}


def run(settings: Settings) -> dict[str, Any]:
    """Run a phase in all threads; return what they did together."""
    wait = settings.start - time.time()
    if settings.start and wait > 0:
        time.sleep(wait)
    began = time.time()
    one = PHASES[settings.phase]
    with concurrent.futures.ThreadPoolExecutor(settings.threads) as pool:
        running = [
            pool.submit(one, settings, thread, began + settings.seconds)
            for thread in range(settings.threads)
        ]
        results = [each.result() for each in running]
    return {
        "began": began,
        "ended": time.time(),
        "count": sum(count for count, _ in results),
        "direct": all(is_direct for _, is_direct in results),
    }


def main() -> None:
    """Do what the settings say, and print the result."""
    settings = Settings(**json.loads(sys.argv[1]))
    try:
        if settings.phase == "prepare":
            answer = prepare(settings)
        elif settings.phase == "remove":
            shutil.rmtree(settings.folders[0], ignore_errors=True)
            answer = {}
        else:
            answer = run(settings)
    except OSError as error:
        answer = {"error": f"{error.strerror}: {error.filename or settings.mount}"}
    sys.stdout.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
