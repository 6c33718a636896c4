#!/usr/bin/env python3
"""Checkpoints that each node writes to its own disks first, and that are moved on meanwhile.

`send FOLDER` is run on each node once its processes have written their part of a checkpoint into
FOLDER, such as step-1200, on that node's own disks. It returns at once; in the background the part
is moved to GCLUSTER_CHECKPOINTS. The first node waits for the parts of all nodes of this attempt
and writes the manifest of all their files: only then the checkpoint is complete. One part is moved
at a time and one waits; a third `send` waits for these, so no checkpoint is left out that another
node moves. `wait` returns when nothing is left to move.

A part that can't be moved is reported in the job's log, and its checkpoint is never complete: the
one before it holds.

Exit status: 0 done; 1 FOLDER is no checkpoint.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from copies import CHECKPOINT, copy_file
from copying import gently

WAITING, MOVING = ".waiting", ".moving"
"""Files in the folder of the parts, locked by the one that waits, and by the one that is moved."""
LOOKS_S = 1.0
"""How often the first node looks for the parts of the others."""
Entries = dict[str, dict[str, Any]]


def attempt() -> str:
    """Return the id of this attempt of the job."""
    words = ("SLURM_JOB_ID", "SLURM_RESTART_COUNT", "attempt")
    return ".".join(os.environ.get(word, "0") for word in words)


def node_number() -> int:
    """Return this node's number in its attempt."""
    return int(os.environ.get("SLURM_NODEID", "0"))


def node_count() -> int:
    """Return the number of this attempt's nodes."""
    return int(os.environ.get("GCLUSTER_NODES") or os.environ.get("SLURM_NNODES") or "1")


def locked(path: Path) -> IO[bytes]:
    """Return a file that this process has to itself; wait for that."""
    file = path.open("ab")
    fcntl.flock(file, fcntl.LOCK_EX)
    return file


class Move:
    """The move of one node's part to the folder that all nodes share."""

    def __init__(self, part: Path, shared: Path) -> None:
        """Look at nothing yet."""
        self.part, self.target, self.parent = part, shared / part.name, shared
        self.lists = shared / f".{part.name}.parts"
        """Next to the checkpoint, for in it are the files of the manifest alone."""

    def _list_of(self, number: int, suffix: str = "json") -> Path:
        return self.lists / f"{attempt()}-{number}.{suffix}"

    def run(self, keep: int) -> None:
        """Move the part; on the first node complete the checkpoint."""
        mine = node_number()
        try:
            self.lists.mkdir(parents=True, exist_ok=True)
            for suffix in ("json", "failed"):
                self._list_of(mine, suffix).unlink(missing_ok=True)
            (self.target / CHECKPOINT.MANIFEST).unlink(missing_ok=True)
            files = CHECKPOINT.files_of(self.part)
            for name in files:
                (self.target / name).parent.mkdir(parents=True, exist_ok=True)
            entries = {name: copy_file(path, self.target / name) for name, path in files.items()}
            CHECKPOINT.write(self._list_of(mine), json.dumps(entries))
            if mine == 0:
                self._complete(keep)
        except (CHECKPOINT.TornError, OSError, ValueError) as error:
            say(f"{self.part.name} is not moved to {self.parent}: {error}")
            with contextlib.suppress(OSError):
                self._list_of(mine, "failed").write_text(str(error), encoding="utf-8")
        shutil.rmtree(str(self.part), ignore_errors=True)

    def _complete(self, keep: int) -> None:
        """Write the manifest of all parts, when all are there."""
        began = time.monotonic()
        entries: Entries = {}
        for number in range(node_count()):
            for name, entry in self._awaited(number).items():
                if entries.setdefault(name, entry) != entry:
                    raise CHECKPOINT.TornError(f"{name} differs on two nodes")
        for name, path in CHECKPOINT.files_of(self.target).items():
            if name not in entries:  # of an attempt that was cut off
                path.unlink()
        CHECKPOINT.write_manifest(self.target, entries)
        CHECKPOINT.remove_old(self.parent, keep)
        for old in self.parent.glob(".*.parts"):
            checkpoint = self.parent / old.name[1:].rpartition(".")[0]
            is_older = CHECKPOINT.number_of(checkpoint) < CHECKPOINT.number_of(self.target)
            if old == self.lists or (is_older and not checkpoint.is_dir()):
                shutil.rmtree(str(old), ignore_errors=True)
        waited = time.monotonic() - began
        say(f"{self.part.name} is complete in {self.parent} (waited {waited:,.0f} s for the parts)")

    def _awaited(self, number: int) -> Entries:
        """Return a node's list, when it is there.

        Raises:
            TornError: its part could not be moved.
        """
        while True:
            # Written here, the folder's list of names is read again (NFS keeps it for a minute).
            look = self.lists / ".look"
            look.write_text("", encoding="utf-8")
            look.unlink()
            names = {each.name for each in self.lists.iterdir()}
            if self._list_of(number, "failed").name in names:
                raise CHECKPOINT.TornError(f"the part of node {number} of this job is missing")
            if self._list_of(number).name in names:
                found: Entries = json.loads(self._list_of(number).read_text(encoding="utf-8"))
                return found
            time.sleep(LOOKS_S)


def say(text: str) -> None:
    """Print a line into the job's log."""
    sys.stdout.write(f"gcluster: {text}\n")
    sys.stdout.flush()


@contextlib.contextmanager
def _in_turn(folder: Path, waiting: int) -> Iterator[None]:
    """Hold the move, once the one before it has ended; then another may wait.

    Args:
        folder: holds the parts.
        waiting: descriptor of the lock of who waits, which this process was started with.
    """
    with locked(folder / MOVING):
        os.close(waiting)
        yield


def send(part: Path) -> int:
    """Start the move of a part; return the exit status."""
    if CHECKPOINT.number_of(part) < 0 or not part.is_dir():
        sys.stderr.write(f"parts: {part} is no folder whose name ends with a number\n")
        return 1
    with locked(part.parent / WAITING) as lock:
        words = [sys.executable, __file__, "move", str(part), "--waiting", str(lock.fileno())]
        subprocess.Popen(
            [*gently(), *words],
            stdin=subprocess.DEVNULL,
            pass_fds=[lock.fileno()],
            start_new_session=True,
        )
    return 0


def wait(folder: Path) -> int:
    """Return when no part in a folder waits or is moved."""
    if folder.is_dir():
        with locked(folder / WAITING), locked(folder / MOVING):
            pass
    return 0


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("action", choices=("send", "wait", "move"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--waiting", type=int)
    given = parser.parse_args()
    # The notice before the end of the allocation goes to all processes of a job.
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    folder = given.folder.absolute()
    if given.action == "send":
        return send(folder)
    if given.action == "wait":
        return wait(folder)
    keep = os.environ.get("GCLUSTER_CHECKPOINT_KEEP", "3")
    with _in_turn(folder.parent, given.waiting):
        move = Move(folder, Path(os.environ["GCLUSTER_CHECKPOINTS"]))
        move.run(max(1, int(keep) if keep.isdigit() else 3))
    return 0


if __name__ == "__main__":
    sys.exit(main())
