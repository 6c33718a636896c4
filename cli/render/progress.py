"""Progress of a long command: bars on a terminal, lines in a pipe, JSON lines for programs."""

from __future__ import annotations

import sys
import threading
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Literal, TextIO, TypeAlias

import msgspec

from ...lifecycle.progress import (
    Finding,
    Progress,
    StageFinished,
    StageProgress,
    StageStarted,
)
from .cells import pad, printable, width
from .diagnostics import diagnostics_text
from .quantities import duration
from .surface import Surface, surface_of

Format: TypeAlias = Literal["text", "json"]

NAME_COLUMNS = 10
LINE_COLUMNS = 76
"""Where the time at the end of a stage's line ends, on terminals that are wide enough."""


def finished_line(event: StageFinished, surface: Surface) -> str:
    """Return the line of a stage that ended: mark, name, summary, time."""
    mark = surface.paint("good", "✔") if event.ok else surface.paint("error", "✘")
    name = pad(printable(event.name), NAME_COLUMNS - 1)
    took = duration(event.seconds)
    summary = printable(event.summary)
    room = min(LINE_COLUMNS, surface.width) - NAME_COLUMNS - 2 - len(took)
    gap = " " * max(3, room - width(summary))
    return surface.plain(f"{mark} {name} {summary}{gap}{surface.paint('faint', took)}")


class LineProgress(AbstractContextManager["LineProgress"]):
    """Plain lines: one where a stage starts, one per tenth of it, one where it ends."""

    def __init__(self, stream: TextIO) -> None:
        """Write to `stream`."""
        self.stream = stream
        self.surface = surface_of(stream)
        self._tenths: dict[str, int] = {}
        self._lock = threading.Lock()

    def __call__(self, event: Progress) -> None:
        """Write the event if it is worth a line; safe to call from several threads."""
        with self._lock:
            text = self._text(event)
            if text is not None:
                self.stream.write(f"{self.surface.plain(text)}\n")
                self.stream.flush()

    def pause(self) -> None:
        """Make room for a question; plain lines are never in the way."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End."""

    def _text(self, event: Progress) -> str | None:
        match event:
            case StageStarted():
                self._tenths[event.name] = 0
                of = f" ({event.total})" if event.total else ""
                return f"  {pad(event.name, NAME_COLUMNS - 1)} started{of}"
            case StageProgress():
                tenth = event.done * 10 // event.total if event.total else 0
                if tenth <= self._tenths.get(event.name, 0) or event.done >= event.total:
                    return None
                self._tenths[event.name] = tenth
                at = f"{event.done}/{event.total}"
                return f"  {pad(event.name, NAME_COLUMNS - 1)} {at} {printable(event.detail)}"
            case StageFinished():
                return finished_line(event, self.surface)
            case Finding():
                return diagnostics_text([event.diagnostic], self.surface)


class JsonProgress(LineProgress):
    """One JSON object a line, every event; `type` says which."""

    def _text(self, event: Progress) -> str:
        return msgspec.json.encode(event).decode()


def open_progress(fmt: Format) -> LineProgress:
    """Return the progress display that fits: text on stdout, JSON lines on stderr.

    In JSON the progress goes to stderr, so that stdout carries exactly one document.
    """
    if fmt == "json":
        return JsonProgress(sys.stderr)
    if surface_of(sys.stdout).live:
        from .bars import BarProgress  # noqa: PLC0415  # rich takes a while

        return BarProgress(sys.stdout)
    return LineProgress(sys.stdout)
