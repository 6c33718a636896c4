"""Reads the log of an AllReduce: nccl-tests 2.11-2.20, rccl-tests, and the payload of our own.

Line by line, so that a log can be followed while it is written. Nothing is believed that isn't
there: what is missing stays None or empty, and the judge decides what that means.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

import msgspec

from .labels import LinesByRank, decoded, strip, without_other_label
from .log import AllReduceLog, Footer, NcclFacts, Options, Rank, Row, Transport
from .nccl import NcclReader
from .rails import RailReader
from .table import RowReader, is_row, layout_of

MOST_ERRORS = 20
"""Most failure lines that are kept: one fault can make every rank print one."""
MOST_RANKS, MOST_ROWS, MOST_TABLES = 100_000, 10_000, 100
"""More than any run has; what goes beyond is counted as overflow, and memory stays bounded."""

_RANK = re.compile(
    r"#\s+Rank\s+(\d+)\s+(?:Group\s+(\d+)\s+)?Pid\s+\d+ on\s+(\S+) device\s+(\d+)"
    r" \[[0-9a-fA-Fx:.]+\] (.*)"
)
_OPTIONS = re.compile(r"#\s+nThread:? \d+.*?minBytes:? (\d+) maxBytes:? (\d+) step: (\d+)\((\w+)\)")
_ITERATIONS = re.compile(r"(?<!warmup )iters: (\d+)")
_VALIDATION = re.compile(r"validation: (\d+)")
_WRONG = re.compile(r"#\s*Out of bounds values\s*:\s*(\S+)\s+(OK|FAILED)")
_AVERAGE = re.compile(r"#\s*Avg bus bandwidth\s*:\s*(\S+)(?:\s+(OK|FAILED))?")
_LAST_ERROR = re.compile(r"#\s*error: (.+)")
_FAILED = re.compile(r"#\s*[A-Z][\w ]+:\s*\S+\s+FAILED")
"""A check that a fork of nccl-tests added."""
_REDUCED = re.compile(r"#\s*Reducing maxBytes to (\d+)")
_STARTING = re.compile(r"#\s*Collective test starting:?\s*(\S*)")
_TRANSPORT = re.compile(r"# gcluster transport: (\S+)( \(simulated\))?(?: (.*))?")
_ROW_INSIDE = re.compile(r"\d\s+\d+\s+[a-z]\w*\s+[a-z]+\s+-?\d")
"""A row with another process's line inside; rows are set in columns, with many blanks."""
_ERROR = re.compile(
    r"""Test\ (?:NCCL|CUDA|HIP|timeout|failure)
    |   :\ Test\ failure
    |   \b(?:srun|salloc|prterun|mpirun|slurmstepd(?:-[\w.-]+)?):\ (?:error|fatal)
        (?!:\ couldn.t\ chdir\ to\ .*:\ going\ to\ /tmp\ instead)  # and so the job runs on
    |   \bsrun:\ Force\ Terminated|\bslurmstepd(?:-[\w.-]+)?:.*CANCELLED
    |   \bmpirun\ detected\ that|\bPrimary\ job\s+terminated|exited\ on\ signal
    |   MPI_ABORT\ was\ invoked|\*\*\*\ Process\ received\ signal
    |   BAD\ TERMINATION\ OF\ ONE|TERMINATED\ WITH\ THE\ EXIT\ STRING     # Hydra, Intel MPI
    |   \brank\ \d+\ (?:died\ from\ signal|exited\ with\ code\ [1-9])      # PALS
    |   command\ terminated\ with\ exit\ code                             # kubectl exec
    |   Command\ (?:exited\ with\ non-zero\ status|terminated\ by\ signal)  # GNU time
    |   core\ dumped|terminate\ called\ after\ throwing|ChildFailedError
    |   Speicherzugriffsfehler|Erreur\ de\ segmentation|Violaci.n\ de\ segmento|段错误  # glibc's
    |   [Ss]egmentation\ fault|Traceback\ \(most\ recent|Out\ Of\ Memory|oom[-_]kill
    |   ^allreduce:[ ]
    """,
    re.VERBOSE,
)


class LogParser:
    """Reads one log as it comes."""

    def __init__(self) -> None:
        """Start with nothing read."""
        self._ranks: list[Rank] = []
        self._rows: list[Row] = []
        self._transports: list[Transport] = []
        self._nccl = NcclReader()
        self._rails = RailReader()
        self._lines = LinesByRank()
        self._groups: set[str] = set()
        self._collective = ""
        self._overflow = False
        self._errors: list[str] = []
        self._readers: list[RowReader] = []
        self._options: Options | None = None
        self._started = self._concluded = self._wrong_ok = False
        self._wrong: float | None = None
        self._average: float | None = None
        self._average_ok = True
        self._last_error: tuple[str, ...] = ()
        self._reduced_to: int | None = None

    def feed(self, line: str) -> Row | None:
        """Take one line; return the row that it completed, if any."""
        line = self._lines.join(decoded(line))
        if "NCCL" in line:
            self._nccl.feed(strip(line) if "\x1b" in line else line)
            before, info, _ = line.partition(" NCCL INFO ")
            if info and not ("  " in before and _ROW_INSIDE.search(before)):
                return None
        text = strip(line)
        if not text.startswith("#"):
            if _ERROR.search(text):
                if len(self._errors) < MOST_ERRORS:
                    self._errors.append(text.strip())
                return None
            text = without_other_label(text)
        if text.startswith("#"):
            self._comment(text)
            return None
        return self._table_line(text)

    def result(self) -> AllReduceLog:
        """Return what was read so far."""
        return AllReduceLog(
            ranks=tuple(self._ranks),
            options=self._options,
            started=self._started,
            tables=len(self._readers),
            rows=tuple(self._rows),
            footer=Footer(
                wrong=self._wrong,
                wrong_ok=self._wrong_ok,
                average=self._average,
                average_ok=self._average_ok,
                concluded=self._concluded,
            ),
            transports=tuple(self._transports),
            nccl=self._nccl_facts(),
            rails=self._rails.result(),
            groups=len(self._groups),
            collective=self._collective,
            overflow=self._overflow,
            reduced_to=self._reduced_to,
            errors=tuple(self._errors),
            damaged=(
                *(row for reader in self._readers for row in reader.damaged),
                *(piece.strip()[:200] for piece in self._lines.unfinished if is_row(piece)),
            ),
        )

    def _nccl_facts(self) -> NcclFacts:
        facts = self._nccl.result()
        return msgspec.structs.replace(facts, lines=(*facts.lines, *self._last_error))

    def _table_line(self, text: str) -> Row | None:
        row = self._readers[-1].feed(text) if self._readers else None
        if row is not None and self._fits(self._rows, MOST_ROWS):
            self._rows.append(row)
        return row

    def _fits(self, kept: list[Any], most: int) -> bool:
        self._overflow |= len(kept) >= most
        return len(kept) < most

    def _comment(self, text: str) -> None:
        if self._rails.feed(text):
            return
        if layout := layout_of(text):
            if self._fits(self._readers, MOST_TABLES):
                self._readers.append(RowReader(layout))
        elif match := _RANK.match(text):
            self._rank(match)
        elif match := _TRANSPORT.match(text):
            if self._fits(self._transports, MOST_TABLES):
                self._transports.append(_transport(match))
        elif match := _OPTIONS.match(text):
            self._options = _options(match, text)
        elif match := _STARTING.match(text):
            self._started, self._collective = True, match[1]
        else:
            self._ending(text)

    def _ending(self, text: str) -> None:
        if match := _WRONG.match(text):
            count, before = _number(match[1]), self._wrong
            self._wrong = count if before is None or count is None else max(before, count)
            self._wrong_ok = match[2] == "OK" and (before is None or self._wrong_ok)
        elif match := _AVERAGE.match(text):
            self._average = _number(match[1])
            self._average_ok &= match[2] != "FAILED"
        elif match := _REDUCED.match(text):
            self._reduced_to = int(match[1])
        elif "Collective test concluded" in text:
            self._concluded = True
        elif match := _LAST_ERROR.match(text):
            self._last_error = (f"NCCL's last error: {match[1]}"[:200],)
        elif _FAILED.match(text) and len(self._errors) < MOST_ERRORS:
            self._errors.append(text.strip("# "))

    def _rank(self, match: re.Match[str]) -> None:
        rank, group, host, device, what = match.groups()
        self._groups |= {group} if group is not None else set()
        if self._fits(self._ranks, MOST_RANKS):
            self._ranks.append(Rank(rank=int(rank), host=host, device=int(device), what=what))


def parse_log(lines: Iterable[str]) -> AllReduceLog:
    """Read a whole log."""
    parser = LogParser()
    for line in lines:
        parser.feed(line)
    return parser.result()


def _transport(match: re.Match[str]) -> Transport:
    kind, simulated, details = match.groups()
    return Transport(kind=kind, simulated=bool(simulated), details=(details or "").strip())


def _options(match: re.Match[str], text: str) -> Options:
    least, most, step, kind = match.groups()
    validation, iterations = _VALIDATION.search(text), _ITERATIONS.search(text)
    return Options(
        min_bytes=int(least),
        max_bytes=int(most),
        factor=int(step) if kind == "factor" else None,
        step_bytes=0 if kind == "factor" else int(step),
        validated=validation[1] != "0" if validation else None,
        iterations=int(iterations[1]) if iterations else None,
    )


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
