#!/usr/bin/env python3
"""Checkpoints of a job in one folder: which are complete, which to resume from, which to keep.

A checkpoint is a folder whose name ends with a number, such as step-1200. Who has written all its
files calls `commit FOLDER`: that writes MANIFEST.json into it, with size and SHA-256 of each file,
and only then the checkpoint is complete. `newest FOLDER` prints the complete one with the highest
number, skips torn ones and says so. `open FOLDER` makes the folder, and refuses it while another
job that has not ended uses it.

Exit status: 0 done; 1 refused or failed, with the reason on standard error.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

MANIFEST = "MANIFEST.json"
OWNER = ".job"
COPYING = ".copying"
"""File with the name of the checkpoint that is being copied elsewhere (job_launch/copies.py)."""
NUMBER = re.compile(r"[^/]*?([0-9]{1,18})\Z")
BLOCK = 1 << 20
ENDING_S = 300.0
"""A job ends on all its nodes: Slurm takes four minutes to give a lost one up (SlurmdTimeout)."""


class TornError(Exception):
    """A checkpoint that can't be resumed from; the text says why."""


def number_of(folder: Path) -> int:
    """Return the number at the end of a checkpoint's name, -1 where it has none."""
    match = NUMBER.match(folder.name)
    return int(match.group(1)) if match else -1


def files_of(folder: Path) -> dict[str, Path]:
    """Return the files below a checkpoint by their names there; links and devices are refused."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not (path.is_dir() or path.is_file()):
            raise TornError(f"{path} is no file of its own")
        if path.is_file() and path.name not in (MANIFEST, MANIFEST + ".new"):
            found[str(path.relative_to(folder))] = path
    return found


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    found = hashlib.sha256()
    with path.open("rb") as file:
        for block in iter(lambda: file.read(BLOCK), b""):
            found.update(block)
    return found.hexdigest()


def digests(paths: Iterable[Path]) -> list[str]:
    """Return the SHA-256 of files, several at once."""
    with concurrent.futures.ThreadPoolExecutor(max_workers=8) as pool:
        return list(pool.map(digest, paths))


def write(path: Path, text: str) -> None:
    """Write a file and rename it to its name when it is on the disk."""
    new = path.with_name(path.name + ".new")
    with new.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    folder = os.open(str(path.parent), os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def commit(folder: Path, keep: int) -> None:
    """Write a checkpoint's manifest, then remove old ones but the `keep` newest complete ones."""
    if number_of(folder) < 0:
        raise TornError(f"{folder}: a checkpoint's name ends with its number, as step-100")
    files = files_of(folder)
    if not files:
        raise TornError(f"{folder} holds no file")
    for path in files.values():
        descriptor = os.open(str(path), os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    hashes = digests(files.values())
    entries = {
        name: {"bytes": path.stat().st_size, "sha256": found}
        for (name, path), found in zip(files.items(), hashes)
    }
    write_manifest(folder, entries)
    remove_old(folder.parent, keep)


def write_manifest(folder: Path, entries: dict[str, dict[str, object]]) -> None:
    """Complete a checkpoint: size and SHA-256 of each file."""
    manifest = {
        "version": 1,
        "number": number_of(folder),
        "job": os.environ.get("SLURM_JOB_ID", ""),
        "written": int(time.time()),
        "files": entries,
    }
    write(folder / MANIFEST, json.dumps(manifest, indent=1) + "\n")


def remove_old(parent: Path, keep: int) -> None:
    """Remove complete checkpoints but the newest ones, and torn ones that are older than these.

    One that is being copied stays until a later call.
    """
    copied = line_of(parent / COPYING)
    complete = [each for each in checkpoints(parent) if (each / MANIFEST).is_file()]
    kept = complete[:keep]
    if not kept:
        return
    for each in checkpoints(parent):
        is_old = each not in kept and number_of(each) < number_of(kept[0])
        if is_old and each.name != copied:
            (each / MANIFEST).unlink(missing_ok=True)  # first: what is half removed is torn
            shutil.rmtree(str(each), ignore_errors=True)


def checkpoints(parent: Path) -> list[Path]:
    """Return the checkpoints in a folder, the highest number first."""
    try:
        found = [each for each in parent.iterdir() if each.is_dir() and not each.is_symlink()]
    except FileNotFoundError:
        return []
    numbered = [each for each in found if number_of(each) >= 0]
    return sorted(numbered, key=lambda each: (number_of(each), each.name), reverse=True)


def entries_of(folder: Path) -> dict[str, tuple[int, str]]:
    """Return size and SHA-256 of each file that a checkpoint's manifest names.

    Raises:
        TornError: it has none, or not this form.
    """
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        entries = {str(name): dict(entry) for name, entry in manifest["files"].items()}
        return {
            name: (int(entry["bytes"]), str(entry["sha256"])) for name, entry in entries.items()
        }
    except FileNotFoundError:
        raise TornError("it has no manifest, so its writing was cut off") from None
    except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
        raise TornError(f"its manifest can't be read: {error}") from None


def named_files(folder: Path, entries: dict[str, tuple[int, str]]) -> dict[str, Path]:
    """Return the files of a checkpoint, which are those of its manifest, with their sizes.

    Raises:
        TornError: a file is missing, is there too much, or has another size.
    """
    files = files_of(folder)
    if files.keys() != entries.keys():
        name = min(files.keys() ^ entries.keys())
        raise TornError(
            "{} is {}".format(name, "missing" if name in entries else "not in its manifest")
        )
    for name, path in files.items():
        if path.stat().st_size != entries[name][0]:
            raise TornError(f"{name} has {path.stat().st_size:,} bytes of {entries[name][0]:,}")
    return files


def verify(folder: Path) -> None:
    """Hold a checkpoint's files against its manifest.

    Raises:
        TornError: a file is missing, is there too much, or has other content.
    """
    entries = entries_of(folder)
    files = named_files(folder, entries)
    for name, found in zip(files, digests(files.values())):
        if found != entries[name][1]:
            raise TornError(f"the content of {name} has changed")


def newest(parent: Path) -> str:
    """Return the newest complete checkpoint, "" where there is none; skipped ones are reported."""
    for each in checkpoints(parent):
        try:
            verify(each)
        except TornError as torn:
            sys.stderr.write(f"checkpoint {each.name} is skipped: {torn}\n")
        else:
            return str(each)
    return ""


def open_folder(parent: Path) -> None:
    """Make the folder and take it for this job; one that has ended leaves it."""
    parent.mkdir(parents=True, exist_ok=True)
    job, owner = os.environ.get("SLURM_JOB_ID", ""), parent / OWNER
    before = line_of(owner)
    if before not in ("", job):
        wait_for(before)
        if state_of(before):
            raise TornError(f"{parent} is used by job {before}, which has not ended")
    (parent / COPYING).unlink(missing_ok=True)  # of a copy that was cut off with its job
    if not job or before == job:
        return
    # Of two jobs that start at once one gets it: a file is renamed once, and a link made once.
    mine = parent / f"{OWNER}.{job}"
    try:
        if owner.exists():
            owner.rename(mine)
        if line_of(mine) in ("", before):
            write(mine, job + "\n")
            take(mine, owner)
            return
        mine.rename(owner)  # it was taken since it was looked at
    except (FileExistsError, FileNotFoundError):
        pass  # by another job that starts
    raise TornError(f"{parent} was taken by job {line_of(owner)} at this moment")


def take(mine: Path, owner: Path) -> None:
    """Give a file a second name unless that exists, then take the first one away.

    Raises:
        FileExistsError: it does.
    """
    try:
        os.link(str(mine), str(owner))
    except FileExistsError:
        mine.unlink()
        raise
    except OSError:  # a mounted bucket has no links
        mine.replace(owner)
    else:
        mine.unlink()


def line_of(file: Path) -> str:
    """Return the line of a file, such as the number of a job, "" where there is none."""
    try:
        return file.read_text(encoding="utf-8", errors="surrogateescape").strip()
    except FileNotFoundError:
        return ""


def wait_for(job: str) -> None:
    """Wait for a job whose processes are being ended, as long as Slurm may take for a lost node."""
    end, is_said = time.monotonic() + ENDING_S, False
    while state_of(job) == "COMPLETING" and time.monotonic() < end:
        if not is_said:
            sys.stderr.write(f"job-checkpoint: waiting for the end of job {job}\n")
            is_said = True
        time.sleep(2)


def state_of(job: str) -> str:
    """Return a job's state, "" where it has ended; one that the controller doesn't know has."""
    if not job.isdigit():
        return ""
    words = ["squeue", "--noheader", "--format=%T", "--jobs=" + job]
    done = subprocess.run(words, capture_output=True, check=False)
    text = done.stderr.decode("utf-8", "replace")
    if done.returncode != 0 and "Invalid job id" not in text:
        raise TornError(f"whether job {job} has ended is unknown: {text.strip()}")
    return done.stdout.decode("utf-8", "replace").strip()


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("action", choices=("open", "newest", "commit", "verify"))
    parser.add_argument("folder", type=Path)
    keep = os.environ.get("GCLUSTER_CHECKPOINT_KEEP", "3")
    parser.add_argument("--keep", type=int, default=int(keep) if keep.isdigit() else 3)
    given = parser.parse_args()
    # The notice before the end of the allocation goes to all processes of a job.
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    try:
        if given.action == "commit":
            commit(given.folder.absolute(), max(1, given.keep))
        elif given.action == "verify":
            verify(given.folder.absolute())
        elif given.action == "open":
            open_folder(given.folder.absolute())
        else:
            sys.stdout.write(newest(given.folder.absolute()) + "\n")
    except (TornError, OSError) as error:
        sys.stderr.write(f"job-checkpoint: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
