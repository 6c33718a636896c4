"""Progress in a pipe, as JSON lines, and as bars on a terminal."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import threading
from collections.abc import Callable
from typing import Any

import pytest

from gcluster.cli.console import Console
from gcluster.cli.render.progress import JsonProgress, LineProgress, finished_line, open_progress
from gcluster.lifecycle.cluster.progress import Finding, StageFinished, StageProgress, StageStarted
from gcluster.schemas.diagnostics import Diagnostic, Severity

NOTE = Diagnostic(code="GC903", severity=Severity.NOTE, summary="a lock was released")


def _converge(report: Callable[..., None], total: int = 40) -> Any:
    report(StageStarted(name="converge", total=total))
    for done in range(total + 1):
        report(StageProgress(name="converge", done=done, total=total, detail=f"gpu{done:03d} x"))
    report(Finding(diagnostic=NOTE))
    report(StageFinished(name="converge", ok=True, summary=f"{total}/{total} steps", seconds=21.3))


def _written(kind: str) -> Any:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    _converge(kind(stream))
    stream.seek(0)
    return stream.read().splitlines()


def test_a_pipe_gets_a_line_at_the_start_each_tenth_and_the_end() -> None:
    lines = _written(LineProgress)
    assert lines[0] == "  converge  started (40)"
    assert lines[1] == "  converge  4/40 gpu004 x"
    assert lines[2] == "  converge  8/40 gpu008 x"
    assert lines[-2] == "note[GC903]: a lock was released"
    assert lines[-1].split() == ["✔", "converge", "40/40", "steps", "21", "s"]
    assert len(lines) == 1 + 9 + 2


def test_json_shows_every_event_on_a_line_of_its_own() -> None:
    events = [json.loads(line) for line in _written(JsonProgress)]
    kinds = [event["type"] for event in events]
    assert kinds == ["StageStarted", *["StageProgress"] * 41, "Finding", "StageFinished"]


def test_progress_without_a_total_is_a_line_each_time_that_it_has_something_else() -> None:
    stream = io.StringIO()
    write = LineProgress(stream)
    for detail in ("", "waiting for gpu001", "waiting for gpu001", "waiting for gpu002"):
        write(StageProgress(name="drain", done=0, total=0, detail=detail))
    assert [line.split()[-1] for line in stream.getvalue().splitlines()] == ["gpu001", "gpu002"]


@pytest.mark.parametrize(
    ("ok", "mark"), [(True, "✔ nodes     5/5 up"), (False, "✘ nodes     5/5 up")]
)
def test_a_stage_ends_on_one_line_with_its_time_at_the_right(ok: bool, mark: str) -> None:
    line = finished_line(
        StageFinished(name="nodes", ok=ok, summary="5/5 up", seconds=6.2), Console()
    )
    assert line.startswith(mark)
    assert line.endswith("   6.2 s")
    assert len(line) == 76


def test_a_long_summary_keeps_its_distance_from_the_time() -> None:
    line = finished_line(StageFinished(name="x", ok=True, summary="y" * 99, seconds=1), Console())
    assert line.endswith("y   1.0 s")


def test_in_json_progress_goes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    with open_progress("json") as report:
        report(StageStarted(name="nodes"))
    answer = capsys.readouterr()
    assert answer.out == ""
    assert json.loads(answer.err) == {"type": "StageStarted", "name": "nodes", "total": None}


def _drain(terminal: int, into: list[bytes]) -> None:
    """Read what a terminal gets until its other end is closed."""
    with contextlib.suppress(OSError):  # how Linux says that the other end is closed
        while True:
            into.append(os.read(terminal, 2**16))


def test_a_terminal_shows_bars_that_leave_only_the_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "90")
    from gcluster.cli.render.progress import BarProgress  # noqa: PLC0415  # rich, only here

    got: list[bytes] = []
    ours, theirs = pty.openpty()
    reader = threading.Thread(target=_drain, args=(ours, got))
    reader.start()
    with os.fdopen(theirs, "w", encoding="utf-8") as stream, BarProgress(stream) as report:
        report(StageFinished(name="spec", ok=True, summary="0 errors", seconds=0.1))
        report(StageStarted(name="nodes", total=5))
        report(StageProgress(name="nodes", done=2, total=5, detail="[bold]gpu003[/] slurm"))
        report.pause()
        _converge(report, total=4)
        assert report._bars is None  # noqa: SLF001  # nothing is left running
    reader.join()
    os.close(ours)
    shown = b"".join(got).decode()
    assert "✔" in shown
    assert "converge" in shown
    assert "\x1b[?25l" in shown  # the cursor is hidden while bars are drawn ...
    assert shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l")  # ... and shown again
