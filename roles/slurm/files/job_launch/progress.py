"""When a job printed last: what a hang and a lost node are judged by."""

from __future__ import annotations

import contextlib
import os
import stat
import time
from pathlib import Path


class Progress:
    """When the job printed last: by its log's size, or by the file that its program touches."""

    def __init__(self, heartbeat: Path | None) -> None:
        """Start now; without a log that is a file every moment counts as progress."""
        self._heartbeat = heartbeat
        self._seen = self._now()
        self.printed_at = time.monotonic()
        self.has_begun = False

    def _now(self) -> tuple[float, float]:
        beat = 0.0
        with contextlib.suppress(OSError):
            if self._heartbeat is not None:
                beat = self._heartbeat.stat().st_mtime
        log = os.fstat(1)
        size = float(log.st_size) if stat.S_ISREG(log.st_mode) else time.monotonic()
        return (beat, 0.0) if beat else (0.0, size)

    def look(self) -> None:
        """See whether something moved."""
        now = self._now()
        if now != self._seen:
            self._seen = now
            self.printed_at = time.monotonic()
            self.has_begun = True

    def skip(self) -> None:
        """Take what was printed since the last look for none of the job's own."""
        self._seen = self._now()

    def restart(self) -> None:
        """Begin a new attempt; what was printed before it is none of its progress."""
        if self._heartbeat is not None:
            with contextlib.suppress(OSError):
                self._heartbeat.unlink()
        self._seen = self._now()
        self.printed_at = time.monotonic()
        self.has_begun = False
