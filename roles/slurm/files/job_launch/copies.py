#!/usr/bin/env python3
"""Copies of a job's checkpoints in other folders: other storage, or buckets that are mounted.

`send FOLDER COPY...` copies the newest complete checkpoint to each COPY that lacks it: the files,
held against the manifest while they are read, and the manifest last. So a copy that was cut off has
none, and counts for nothing. `newest FOLDER COPY...` prints the checkpoint to resume from; where a
COPY has a newer complete one than FOLDER, that one is fetched first.

Nothing is renamed and each file is written once, from its beginning: a mounted bucket can't do
more. `send` says what it did on standard output, a line for each COPY, and why it couldn't on
standard error.

Exit status: 0 done; 1 a copy failed, or FOLDER can't be read.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import hashlib
import importlib.util
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).parents[1] / "job-checkpoint.py"
BLOCK = 8 << 20
AT_ONCE = 4
"""Files that are copied at once."""
TOUCH_S = 5.0
"""How often the mark of a copy that goes on is renewed."""
Touch = Callable[[], None]


def _checkpoints() -> Any:
    """Return the program that writes manifests, as a module."""
    spec = importlib.util.spec_from_file_location("job_checkpoint", PROGRAM)
    if spec is None or spec.loader is None:
        raise ImportError(f"{PROGRAM} can't be loaded")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


CHECKPOINT = _checkpoints()


@contextlib.contextmanager
def marked(parent: Path, checkpoint: str) -> Iterator[Touch]:
    """Mark a checkpoint as being copied: `commit` keeps it until then.

    Yields what renews the mark's time, by which others see that the copy goes on.
    """
    file, touched = parent / CHECKPOINT.COPYING, 0.0

    def touch() -> None:
        nonlocal touched
        if time.monotonic() - touched >= TOUCH_S:
            touched = time.monotonic()
            with contextlib.suppress(OSError):
                os.utime(str(file))

    file.write_text(checkpoint + "\n", encoding="utf-8", errors="surrogateescape")
    try:
        yield touch
    finally:
        with contextlib.suppress(OSError):
            file.unlink()


def copy_file(
    source: Path, target: Path, sha256: str | None = None, touch: Touch | None = None
) -> dict[str, Any]:
    """Copy one file onto the disk, and return its entry of a manifest.

    Args:
        source: the file.
        target: its copy, in a folder that is there.
        sha256: what a manifest says of the file; None: nothing yet.
        touch: called after each block.

    Raises:
        TornError: it is another one than the manifest says.
        OSError: the target has no room, or can't be reached.
    """
    found, size = hashlib.sha256(), 0
    with source.open("rb", buffering=0) as reader, target.open("wb", buffering=0) as writer:
        for block in iter(lambda: reader.read(BLOCK), b""):
            found.update(block)
            size += len(block)
            rest = memoryview(block)
            while rest:
                rest = rest[writer.write(rest) :]
            if touch is not None:
                touch()
        os.fsync(writer.fileno())
    if sha256 is not None and found.hexdigest() != sha256:
        raise CHECKPOINT.TornError(f"the content of {source.name} has changed")
    written = target.stat().st_size
    if written != size:
        raise OSError(f"{target} has {written:,} bytes of {size:,}")
    return {"bytes": size, "sha256": found.hexdigest()}


def copy(source: Path, target: Path, touch: Touch | None = None) -> None:
    """Copy a complete checkpoint; its manifest comes last, and a failure leaves nothing.

    Raises:
        TornError: the source is not as its manifest says.
        OSError: the target has no room, or can't be reached.
    """
    manifest = manifest_of(source)
    entries: dict[str, tuple[int, str]] = CHECKPOINT.entries_of(source)
    files: dict[str, Path] = CHECKPOINT.named_files(source, entries)
    (target / CHECKPOINT.MANIFEST).unlink(missing_ok=True)  # first: what is half there is torn
    shutil.rmtree(str(target), ignore_errors=True)
    try:
        for name in files:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
        with concurrent.futures.ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
            running = [
                pool.submit(copy_file, path, target / name, entries[name][1], touch)
                for name, path in files.items()
            ]
            try:
                for each in concurrent.futures.as_completed(running):
                    each.result()
            finally:
                for each in running:
                    each.cancel()
        with (target / CHECKPOINT.MANIFEST).open("wb") as file:
            file.write(manifest)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        with contextlib.suppress(OSError):
            (target / CHECKPOINT.MANIFEST).unlink()
        shutil.rmtree(str(target), ignore_errors=True)
        raise


def manifest_of(checkpoint: Path) -> bytes:
    """Return a checkpoint's manifest, nothing where it has none."""
    try:
        return bytes((checkpoint / CHECKPOINT.MANIFEST).read_bytes())
    except FileNotFoundError:
        return b""


def complete(parent: Path) -> list[Path]:
    """Return the checkpoints of a folder that have a manifest, the highest number first."""
    return [each for each in CHECKPOINT.checkpoints(parent) if manifest_of(each)]


def send(parent: Path, copies: Sequence[Path], keep: int) -> int:
    """Copy the newest complete checkpoint to each copy that lacks it; return the exit status."""
    found = complete(parent)
    if not found:
        return 0
    newest, code = found[0], 0
    for folder in copies:
        try:
            with marked(parent, newest.name) as touch:
                manifest, began = manifest_of(newest), time.monotonic()
                if not manifest or manifest == manifest_of(folder / newest.name):
                    continue
                copy(newest, folder / newest.name, touch)
                CHECKPOINT.remove_old(folder, keep)
            took = time.monotonic() - began
            sys.stdout.write(f"{newest.name} is copied to {folder} in {took:,.0f} s\n")
        except (CHECKPOINT.TornError, OSError) as error:
            sys.stderr.write(f"{newest.name} is not copied to {folder}: {error}\n")
            code = 1
    return code


def newest(parent: Path, copies: Sequence[Path]) -> str:
    """Return the checkpoint to resume from, "" where there is none.

    A copy's is fetched where its number is higher than that of the newest complete one here.
    """
    here = str(CHECKPOINT.newest(parent))
    number = CHECKPOINT.number_of(Path(here)) if here else -1
    for each in _newer(copies, number):
        target, began = parent / each.name, time.monotonic()
        try:
            parent.mkdir(parents=True, exist_ok=True)
            copy(each, target)
        except (CHECKPOINT.TornError, OSError) as error:
            sys.stderr.write(f"copy {each} is skipped: {error}\n")
            continue
        took = time.monotonic() - began
        sys.stderr.write(f"checkpoint {each.name} is fetched from {each.parent} in {took:,.0f} s\n")
        return str(target)
    return here


def _newer(copies: Sequence[Path], number: int) -> list[Path]:
    """Return the copied checkpoints above a number, the highest first; torn ones are reported."""
    found = []
    for folder in copies:
        try:
            newer = [c for c in CHECKPOINT.checkpoints(folder) if CHECKPOINT.number_of(c) > number]
            for each in newer:
                if manifest_of(each):
                    found.append(each)
                else:
                    sys.stderr.write(f"copy {each} is skipped: it was cut off\n")
        except OSError as error:
            sys.stderr.write(f"copies in {folder} can't be read: {error}\n")
    return sorted(found, key=CHECKPOINT.number_of, reverse=True)


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("action", choices=("send", "newest"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("copies", type=Path, nargs="*")
    keep = os.environ.get("GCLUSTER_CHECKPOINT_KEEP", "3")
    parser.add_argument("--keep", type=int, default=int(keep) if keep.isdigit() else 3)
    given = parser.parse_args()
    # The notice before the end of the allocation goes to all processes of a job.
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    parent, copies = given.folder.absolute(), [each.absolute() for each in given.copies]
    try:
        if given.action == "send":
            return send(parent, copies, max(1, given.keep))
        sys.stdout.write(newest(parent, copies) + "\n")
    except OSError as error:
        sys.stderr.write(f"checkpoints in {parent} can't be read: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
