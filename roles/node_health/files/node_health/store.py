"""Stored data of the node: its state, its parts, and checks' values from run to run.

Each file is replaced as a whole, so that a crash leaves the old or the new one. A state or a list
of parts that can't be read is a failure: an RMA node must not come back because a file was lost
half-way. Checks' values are only for comparison, and start empty again.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .finding import CheckIncomplete

LOCK_WAIT_S = 5.0


class Store:
    """The files below /var/lib/gcluster/node-health."""

    def __init__(self, folder: Path) -> None:
        """Hold the folder; it is made when something is written."""
        self.folder = folder

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the stored data for one run at a time.

        Raises:
            CheckIncomplete: another one doesn't end, or the folder can't be written.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            file = (self.folder / "lock").open("w")
        except OSError as error:
            raise CheckIncomplete(f"{self.folder}: {error.strerror}") from error
        with file:
            end = time.monotonic() + LOCK_WAIT_S
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except OSError:
                    if time.monotonic() > end:
                        raise CheckIncomplete("another look at this node does not end") from None
                    time.sleep(0.1)
            yield

    def read(self, name: str) -> dict[str, Any] | None:
        """Return one of the files; None where there is none yet.

        Raises:
            CheckIncomplete: it is there and can't be read.
        """
        path = self.folder / f"{name}.json"
        try:
            data = json.loads(path.read_text())
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise CheckIncomplete(f"{path} can't be read: {error}") from error
        if not isinstance(data, dict):
            raise CheckIncomplete(f"{path} can't be read: it is no object")
        return data

    def remove(self, name: str) -> None:
        """Remove one of the files.

        Raises:
            CheckIncomplete: it can't be removed.
        """
        try:
            (self.folder / f"{name}.json").unlink()
        except FileNotFoundError:
            return
        except OSError as error:
            raise CheckIncomplete(f"{self.folder}: {error.strerror}") from error

    def memory(self) -> dict[str, Any]:
        """Return checks' stored values; nothing where they can't be read."""
        try:
            return self.read("memory") or {}
        except CheckIncomplete:
            return {}

    def write(self, name: str, data: dict[str, Any]) -> None:
        """Replace one of the files, on the disk when this returns.

        Raises:
            CheckIncomplete: it can't be written (a full or read-only disk).
        """
        path = self.folder / f"{name}.json"
        new = path.with_suffix(".new")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with new.open("w") as file:
                json.dump(data, file, indent=1, sort_keys=True)
                file.write("\n")
                file.flush()
                os.fsync(file.fileno())
            new.replace(path)
        except OSError as error:
            raise CheckIncomplete(f"{path} can't be written: {error.strerror}") from error
