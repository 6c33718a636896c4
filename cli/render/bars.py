"""Live bars on a terminal: one line per running stage, with the node and the step at work."""

from __future__ import annotations

from types import TracebackType
from typing import TextIO

from rich.console import Console
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

from ...lifecycle.progress import Progress, StageFinished, StageProgress, StageStarted
from .cells import printable
from .progress import NAME_COLUMNS, LineProgress


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
            self._bars = _columns(Console(file=self.stream, highlight=False), self.surface.unicode)
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
            self._bars.console.print(Text.from_ansi(self.surface.plain(text)), soft_wrap=True)
        else:
            self.stream.write(f"{self.surface.plain(text)}\n")
            self.stream.flush()


def _columns(console: Console, unicode: bool) -> Bars:
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
