"""Copies of a job's checkpoints, made while it trains: one at a time, the newest first."""

from __future__ import annotations

import contextlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Optional

LOOKS_S = 5.0
"""How often a new checkpoint is looked for."""
AGAIN_S = 60.0
"""Until a copy that failed is tried again."""
STALLS_S = 600.0
"""At a job's end: a copy that shows no progress for so long is given up."""
NUMBER = re.compile(r"([0-9]{1,18})\Z")
Sign = tuple[int, str, int]
"""Number and name of a checkpoint, and when its manifest was written (ns)."""
Report = Callable[[Sequence[str], Optional[str]], None]
"""Gets lines that are new, and why a copy failed: "" where it is made, None where that isn't known
yet."""


def gently() -> list[str]:
    """Return the words before a program that takes only the CPU and disk that are left over."""
    idle = ["ionice", "-c", "3"] if shutil.which("ionice") else []
    return ["nice", "-n", "19", *idle]


def newest(folder: Path) -> Sign | None:
    """Return the newest checkpoint that has a manifest; its files aren't looked at."""
    found = []
    try:
        for each in folder.iterdir():
            number = NUMBER.search(each.name)
            try:
                when = (each / "MANIFEST.json").stat().st_mtime_ns if number else 0
            except OSError:
                continue
            if number:
                found.append((int(number[1]), each.name, when))
    except OSError:
        return None
    return max(found, default=None)


class Copying:
    """What copies the checkpoints of a folder while the job runs."""

    def __init__(self, program: str, folder: str, copies: Sequence[str], report: Report) -> None:
        """Start with nothing; `program` is copies.py."""
        self._program, self._report = program, report
        self._folder, self._copies = Path(folder), list(copies)
        self._running: subprocess.Popen[bytes] | None = None
        self._output = tempfile.TemporaryFile()  # noqa: SIM115  # open as long as the job runs
        self._sent: Sign | None = None
        self._done: Sign | None = None
        self._next = 0.0
        self._printed: set[str] = set()

    def look(self) -> None:
        """End a copy that is done, and begin one where a newer checkpoint is complete."""
        if self._running is not None:
            code = self._running.poll()
            if code is None:
                return
            self._ended(code)
        if self._copies and time.monotonic() >= self._next:
            self._next = time.monotonic() + LOOKS_S
            found = newest(self._folder)
            if found is not None and found != self._done:
                self._begin(found)

    def _is_running(self) -> bool:
        return self._running is not None and self._running.poll() is None

    def _begin(self, found: Sign) -> None:
        self._output.seek(0)
        self._output.truncate()
        self._sent = found
        self._running = subprocess.Popen(
            [*gently(), sys.executable, self._program, "send", str(self._folder), *self._copies],
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.STDOUT,
        )

    def _ended(self, code: int) -> None:
        """Report what is new of what a copy printed; a failed one is tried again later."""
        self._running = None
        self._output.seek(0)
        lines = self._output.read().decode("utf-8", "replace").splitlines()
        if code == 0:
            self._done = self._sent
        else:
            self._next = time.monotonic() + AGAIN_S
            lines = lines or [f"the copy of a checkpoint ended with {code}"]
        new = [line for line in lines if line not in self._printed]
        self._printed.update(new)
        self._report(new, "; ".join(lines) if code else "")

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Have a copy wait: it would slow what is measured."""
        running = self._running if self._is_running() else None
        if running is not None:
            running.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            if running is not None:
                running.send_signal(signal.SIGCONT)

    def finish(self, is_over: Callable[[], bool], waits: Callable[[], None]) -> None:
        """Wait until the newest checkpoint is copied, where that goes on; then none runs.

        Args:
            is_over: whether the allocation ends, so that there is no time left.
            waits: called once where there is something to wait for.
        """
        if not self._copies:
            return
        found = newest(self._folder)
        if not is_over() and (self._is_running() or found not in (None, self._done, self._sent)):
            waits()
        self._wait(is_over)
        found = newest(self._folder)
        if found is not None and found not in (self._done, self._sent) and not is_over():
            self._begin(found)
            self._report([f"waiting until {found[1]} is copied"], None)
            self._wait(is_over)
        self.stop()

    def _wait(self, is_over: Callable[[], bool]) -> None:
        began = time.time()
        while self._running is not None and not is_over():
            if self._running.poll() is not None:
                self._ended(self._running.returncode)
                return
            if time.time() - max(began, self._touched()) > STALLS_S:
                self._report([f"the copy of a checkpoint stands still for {STALLS_S:.0f} s"], None)
                return
            time.sleep(0.2)

    def _touched(self) -> float:
        try:
            return (self._folder / ".copying").stat().st_mtime
        except OSError:
            return 0.0

    def stop(self) -> None:
        """End a copy that runs: it has no manifest then, and is made again by the next run."""
        if self._running is not None and self._running.poll() is None:
            self._running.kill()
            said = "the copy of {} was cut off".format(
                self._sent[1] if self._sent else "a checkpoint"
            )
            self._report([said], said)
        self._running = None
