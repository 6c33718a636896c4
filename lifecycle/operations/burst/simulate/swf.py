"""Reads job traces in the Standard Workload Format 2.2, each mistake with its line.

The format: https://www.cs.huji.ac.il/labs/parallel/workload/swf.html (read 2026-11): comments begin
with a semicolon, header comments are `; Key: value`; a job is a line of 18 numbers, sorted by
submit time; -1 means unknown. Times are seconds since the trace began and may be fractions. Status
0 failed, 1 completed, 5 cancelled; 2, 3 and 4 mark parts of a job that also has a line as a whole.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from io import BufferedIOBase
from pathlib import Path
from typing import NamedTuple

import msgspec

from .....schemas.diagnostics import Diagnostic, Severity, Span
from ....cluster.outcome import Exit, LifecycleError

FIELDS = (
    "job number", "submit time", "wait time", "run time", "allocated processors",
    "average CPU time", "used memory", "requested processors", "requested time",
    "requested memory", "status", "user", "group", "executable", "queue", "partition",
    "preceding job", "think time",
)  # fmt: skip
"""The 18 fields in their order."""
_UNKNOWN = -1.0
_GZIP = b"\x1f\x8b"
_LONGEST_LINE = 10_000
_LARGEST = 1e15
_MOST_SHOWN = 10
_SHOWN_CHARS = 40
_PARTS = {2, 3, 4}
_CANCELLED = 5


class TraceJob(NamedTuple):
    """A job as it ran."""

    number: int
    submit: float
    """Seconds since the trace's beginning."""
    run: float
    processors: int
    requested: float | None
    """Requested run time, in seconds; None: unknown."""
    user: int
    group: int
    queue: int
    preceding: int
    """Job that must have ended before; -1: none."""
    think: float
    """Seconds from that end to the submission."""
    wait: float = 0.0
    """Seconds in the queue as it was; 0 where the trace doesn't say."""


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """A trace that can be replayed."""

    file: str
    jobs: list[TraceJob]
    """By submit time."""
    header: dict[str, str]
    """Of header comments the first of each key: Computer, MaxProcs, UnixStartTime ..."""
    left_out: dict[str, int]
    """Why lines are not replayed, and how many."""

    @property
    def begins(self) -> float:
        """Start of the trace, in seconds since the epoch; 0 where not given."""
        parts = self.header.get("UnixStartTime", "").split()
        return float(parts[0]) if parts and parts[0].isdigit() else 0.0


def read_swf(path: Path) -> Trace:
    """Read a trace, plain or gzip.

    Raises:
        LifecycleError: a line is wrong (GC957), or the file can't be read; exit code 2.
    """
    reading = _Reading(path)
    for number, line in _lines(path):
        reading.take(number, line)
    wrong = reading.diagnostics()
    if wrong:
        raise LifecycleError(*wrong, exit_code=Exit.SPEC)
    reading.jobs.sort(key=lambda job: job.submit)
    return Trace(
        file=str(path), jobs=reading.jobs, header=reading.header, left_out=reading.left_out
    )


class _Reading:
    """What was read so far, and what is wrong with it."""

    def __init__(self, path: Path) -> None:
        self.jobs: list[TraceJob] = []
        self.header: dict[str, str] = {}
        self.left_out: dict[str, int] = {}
        self._path = path
        self._wrong: list[Diagnostic] = []
        self._count = 0

    def take(self, number: int, line: str) -> None:
        """Read a line."""
        if line.startswith(";"):
            key, colon, value = line.lstrip("; ").partition(":")
            if colon:
                self.header.setdefault(key.strip(), value.strip())
            return
        words = line.split()
        read = _job(words) if words else None
        if isinstance(read, TraceJob):
            self.jobs.append(read)
        elif isinstance(read, _LeftOut):
            self.left_out[read.why] = self.left_out.get(read.why, 0) + 1
        elif read is not None:
            self._count += 1
            if self._count <= _MOST_SHOWN:
                self._wrong.append(_wrong(self._path, read, number, len(line)))

    def diagnostics(self) -> list[Diagnostic]:
        """Return what is wrong, shortened."""
        if self._count > _MOST_SHOWN:
            more = f"{self._count - _MOST_SHOWN} more lines are wrong"
            return [*self._wrong, _wrong(self._path, more)]
        if not self._wrong and not self.jobs:
            return [_wrong(self._path, "no job in it can be replayed")]
        return self._wrong


class _LeftOut(NamedTuple):
    why: str


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines with their numbers; what can't be read becomes an error of the trace."""
    try:
        with path.open("rb") as raw:
            packed = raw.read(2) == _GZIP
        with _open(path, packed=packed) as stream:
            number = 0
            while line := stream.readline(_LONGEST_LINE + 1):
                number += 1
                if len(line) > _LONGEST_LINE or b"\0" in line:
                    where = _wrong(path, "this is no line of text", number, 1)
                    raise LifecycleError(where, exit_code=Exit.SPEC)
                yield number, line.decode("utf-8", "replace").strip()
    except EOFError as error:
        cut = _wrong(path, "the archive ends too early: load it again")
        raise LifecycleError(cut, exit_code=Exit.SPEC) from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise LifecycleError(
            _wrong(path, f"{path} can't be read: {reason}"), exit_code=Exit.SPEC
        ) from error


def _open(path: Path, *, packed: bool) -> BufferedIOBase:
    return gzip.open(path, "rb") if packed else path.open("rb")


def _job(words: list[str]) -> TraceJob | _LeftOut | str:
    """Return the job of a line, why it is left out, or what is wrong with it."""
    if len(words) != len(FIELDS):
        return f"a job has {len(FIELDS)} numbers, this line has {len(words)} words"
    try:
        values = [float(word) for word in words]
    except ValueError:
        return _first_no_number(words)
    for position, value in enumerate(values):
        if not (value >= 0 or value == _UNKNOWN) or value > _LARGEST:
            return f'{FIELDS[position]} is "{words[position][:_SHOWN_CHARS]}": no count, and not -1'
    if values[0] < 0 or values[1] < 0:
        field = FIELDS[0 if values[0] < 0 else 1]
        return f"{field} is not known: no job can be replayed without"
    return _replayed(values)


def _replayed(values: list[float]) -> TraceJob | _LeftOut:
    number, submit, wait, run, allocated, _cpu, _memory, wanted, requested = values[:9]
    status, user, group, _executable, queue, _partition, preceding, think = values[10:]
    processors = wanted if wanted > 0 else allocated
    if status in _PARTS:
        return _LeftOut("part of a job that has a line as a whole")
    if run < 0 or (run == 0 and status == _CANCELLED):
        return _LeftOut("never ran")
    if processors <= 0:
        return _LeftOut("number of processors not known")
    return TraceJob(
        number=int(number),
        submit=submit,
        run=run,
        processors=int(processors),
        requested=requested if requested > 0 else None,
        user=int(user),
        group=int(group),
        queue=int(queue),
        preceding=int(preceding),
        think=max(0.0, think),
        wait=max(0.0, wait),
    )


def _first_no_number(words: list[str]) -> str:
    for position, word in enumerate(words):
        try:
            float(word)
        except ValueError:
            return f'{FIELDS[position]} is "{word[:_SHOWN_CHARS]}": no number'
    return "a number can't be read"


def _wrong(path: Path, summary: str, line: int = 1, width: int = 1) -> Diagnostic:
    return Diagnostic(
        code="GC957",
        severity=Severity.ERROR,
        summary=summary,
        file=str(path),
        span=Span(line=line, column=1, end_line=line, end_column=width + 1),
        hint="a trace is in the Standard Workload Format 2.2",
    )
