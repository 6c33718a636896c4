"""Reads jobs with GPUs out of what sacct prints, each mistake with its line.

The table is that of `sacct --allocations --parsable2 --format=Start,End,AllocTRES` with its header
(further columns don't matter): times as Slurm prints them (2026-11-28T09:30:00), trackable
resources as `billing=8,cpu=8,gres/gpu=4,node=1` (https://slurm.schedmd.com/sacct.html and
tres.html, read 2026-11).
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from .....schemas.diagnostics import Diagnostic, Severity, Span
from ....cluster.outcome import Exit, LifecycleError

_COLUMNS = ("Start", "End", "AllocTRES")
_GPUS = re.compile(r"(?:^|,)gres/gpu=(\d+)(?:,|$)")
_NO_TIME = {"Unknown", "None", ""}


class HeldGpus(NamedTuple):
    """A job that held GPUs."""

    begin: float
    """s since 1970, in the time zone of the table."""
    end: float
    gpus: int


def is_sacct(path: Path) -> bool:
    """Return whether a file's first line is a header of sacct."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            first = file.readline(10_000)
    except OSError:
        return False
    return "|" in first and set(_COLUMNS) <= set(first.strip().split("|"))


def read_sacct(path: Path) -> list[HeldGpus]:
    """Return the jobs that held GPUs and ended, in the order of the table.

    Raises:
        LifecycleError: a line is wrong (GC957), or no job held GPUs; exit code 2.
    """
    found: list[HeldGpus] = []
    with path.open(encoding="utf-8", errors="replace") as file:
        titles = file.readline().strip().split("|")
        places = [titles.index(name) for name in _COLUMNS]
        for number, line in enumerate(file, start=2):
            if not line.strip():
                continue
            cells = line.rstrip("\n").split("|")
            if len(cells) < len(titles):
                raise _wrong(path, f"{len(cells)} columns, not {len(titles)}", number)
            start, end, tres = (cells[place] for place in places)
            gpus = _GPUS.search(tres)
            if gpus is None or start in _NO_TIME or end in _NO_TIME:
                continue  # no GPUs, never began, or still runs
            begin, until = _time(path, start, number), _time(path, end, number)
            if until > begin:
                found.append(HeldGpus(begin, until, int(gpus[1])))
    if not found:
        raise _wrong(path, "no job that ended held GPUs (gres/gpu= in AllocTRES)", 1)
    return found


def _time(path: Path, text: str, line: int) -> float:
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise _wrong(path, f'"{text[:40]}" is no time such as 2026-11-28T09:30:00', line) from None


def _wrong(path: Path, why: str, line: int) -> LifecycleError:
    found = Diagnostic(
        code="GC957",
        severity=Severity.ERROR,
        summary=why,
        hint="sacct --allocations --parsable2 --format=Start,End,AllocTRES",
        file=str(path),
        span=Span(line=line, column=1, end_line=line, end_column=2),
    )
    return LifecycleError(found, exit_code=Exit.SPEC)
