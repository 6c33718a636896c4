"""Progress of a long command: bars on a terminal, lines in a pipe, JSON lines for programs."""

from __future__ import annotations

import sys
import threading
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Literal, TextIO, TypeAlias

import msgspec
from rich.console import Console as RichConsole
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.progress import Progress as Bars
from rich.table import Column
from rich.text import Text

from ...lifecycle.cluster.progress import (
    Finding,
    Progress,
    StageFinished,
    StageProgress,
    StageStarted,
)
from ..console import Console, console_of, pad, printable, width
from .diagnostics import diagnostics_text
from .quantities import duration

Format: TypeAlias = Literal["text", "json"]

NAME_COLUMNS = 10
LINE_COLUMNS = 76
"""Where the time at the end of a stage's line ends, on terminals that are wide enough."""


def finished_line(event: StageFinished, console: Console) -> str:
    """Return the line of a stage that ended: mark, name, summary, time."""
    mark = console.paint("good", "✔") if event.ok else console.paint("error", "✘")
    name = pad(printable(event.name), NAME_COLUMNS - 1)
    took = duration(event.seconds)
    summary = printable(event.summary)
    room = min(LINE_COLUMNS, console.width) - NAME_COLUMNS - 2 - len(took)
    gap = " " * max(3, room - width(summary))
    return console.plain(f"{mark} {name} {summary}{gap}{console.paint('faint', took)}")


class LineProgress(AbstractContextManager["LineProgress"]):
    """Plain lines: one where a stage starts, one per tenth of it, one where it ends.

    What a stage waits for has no count: it is a line each time that it is something else.
    """

    def __init__(self, stream: TextIO) -> None:
        """Write to `stream`."""
        self.stream = stream
        self.console = console_of(stream)
        self._tenths: dict[str, int] = {}
        self._waits: dict[str, str] = {}
        self._lock = threading.Lock()

    def __call__(self, event: Progress) -> None:
        """Write the event if it is worth a line; safe to call from several threads."""
        with self._lock:
            text = self._text(event)
            if text is not None:
                self.stream.write(f"{self._fitted(text)}\n")
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

    def _fitted(self, text: str) -> str:
        return self.console.fit(self.console.plain(text))

    def _text(self, event: Progress) -> str | None:
        match event:
            case StageStarted():
                self._tenths[event.name] = 0
                of = f" ({event.total})" if event.total else ""
                return f"  {pad(event.name, NAME_COLUMNS - 1)} started{of}"
            case StageProgress():
                return self._progress(event)
            case StageFinished():
                return finished_line(event, self.console)
            case Finding():
                return diagnostics_text([event.diagnostic], self.console)

    def _progress(self, event: StageProgress) -> str | None:
        name = pad(event.name, NAME_COLUMNS - 1)
        if not event.total:
            if not event.detail or self._waits.get(event.name) == event.detail:
                return None
            self._waits[event.name] = event.detail
            return f"  {name} {printable(event.detail)}"
        tenth = event.done * 10 // event.total
        if tenth <= self._tenths.get(event.name, 0) or event.done >= event.total:
            return None
        self._tenths[event.name] = tenth
        return f"  {name} {event.done}/{event.total} {printable(event.detail)}"


class JsonProgress(LineProgress):
    """One JSON object a line, every event; `type` says which."""

    def _fitted(self, text: str) -> str:
        return text

    def _text(self, event: Progress) -> str:
        return msgspec.json.encode(event).decode()


def open_progress(fmt: Format) -> LineProgress:
    """Return the progress display that fits: text on stdout, JSON lines on stderr.

    In JSON the progress goes to stderr, so that stdout carries exactly one document.
    """
    if fmt == "json":
        return JsonProgress(sys.stderr)
    if console_of(sys.stdout).live:
        return BarProgress(sys.stdout)
    return LineProgress(sys.stdout)


class BarProgress(LineProgress):
    """Bars while stages run; each ends as the line that a pipe would get, above the bars."""

    def __init__(self, stream: TextIO) -> None:
        """Draw on `stream`, a terminal."""
        super().__init__(stream)
        self._bars: Bars | None = None
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, event: Progress) -> None:
        """Draw the event; safe to call from several threads."""
        with self._lock:
            match event:
                case StageStarted():
                    self._task(event.name, event.total)
                case StageProgress():
                    self._live().update(
                        self._task(event.name, event.total),
                        completed=event.done,
                        total=event.total,
                        detail=printable(event.detail),
                    )
                case _:
                    if isinstance(event, StageFinished) and event.name in self._tasks:
                        self._live().remove_task(self._tasks.pop(event.name))
                    self._above(self._text(event) or "")
            if not self._tasks:
                self._stop()

    def pause(self) -> None:
        """Take the bars away to make room for a question; they come back with the next event."""
        with self._lock:
            self._stop()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Take the bars away, whatever the way out."""
        self.pause()

    def _task(self, name: str, total: int | None) -> TaskID:
        if name not in self._tasks:
            self._tasks[name] = self._live().add_task(name, total=total, detail="")
        return self._tasks[name]

    def _live(self) -> Bars:
        if self._bars is None:
            self._bars = _columns(
                RichConsole(file=self.stream, highlight=False), self.console.unicode
            )
            self._bars.start()
        return self._bars

    def _stop(self) -> None:
        if self._bars is not None:
            self._bars.stop()
            self._bars = None
            self._tasks.clear()

    def _above(self, text: str) -> None:
        """Write lines that stay, above the bars."""
        if self._bars is not None:
            self._bars.console.print(Text.from_ansi(self._fitted(text)), soft_wrap=True)
        else:
            self.stream.write(f"{self._fitted(text)}\n")
            self.stream.flush()


def _columns(console: RichConsole, unicode: bool) -> Bars:
    return Bars(
        SpinnerColumn("dots" if unicode else "line"),
        TextColumn(f"{{task.description:<{NAME_COLUMNS - 1}}}", markup=False),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn(
            "{task.fields[detail]}",
            markup=False,
            table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis"),
        ),
        console=console,
        transient=True,
        expand=True,
    )
