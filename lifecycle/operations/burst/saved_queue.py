"""A queue as JSON: pending jobs and rented nodes at one time, and the policy's decisions."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from ....schemas.diagnostics import Diagnostic, Severity, Span
from ....schemas.structure.decoding import decode_json
from ....schemas.structure.source import decode, read_source
from ...cluster.outcome import Exit, LifecycleError, failure
from .policy import (
    Backfill,
    Decision,
    PendingJob,
    Situation,
    decide_all,
    rule_of,
)
from .replay import open_partition


class SavedQueue(Situation, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The moment, and the jobs that wait then."""

    jobs: tuple[PendingJob, ...]


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """What a round would decide."""

    partition: str
    pool: str
    decisions: tuple[Decision, ...]
    promise: Backfill | None


def read_queue(source: Path | bytes) -> SavedQueue:
    """Read a saved queue.

    Raises:
        LifecycleError: it is no JSON, or a key is wrong (GC958); exit code 2.
    """
    file = "<stdin>" if isinstance(source, bytes) else str(source)
    content = source if isinstance(source, bytes) else read_source(source)
    text = content if isinstance(content, Diagnostic) else decode(content, file=file)
    if isinstance(text, Diagnostic):
        raise LifecycleError(msgspec.structs.replace(text, code="GC958"), exit_code=Exit.SPEC)
    try:
        queue = decode_json(text, SavedQueue)
    except (msgspec.DecodeError, RecursionError) as error:
        wrong = _wrong(file, str(error), _line(text, str(error)))
        raise LifecycleError(wrong, exit_code=Exit.SPEC) from error
    seen: set[str] = set()
    for job in queue.jobs:
        if job.id in seen:
            raise LifecycleError(_wrong(file, f"job {job.id} is there twice"), exit_code=Exit.SPEC)
        seen.add(job.id)
    return queue


def try_out(spec: Path, queue: SavedQueue, partition: str | None) -> Tried:
    """Return what a round would decide about a queue.

    Args:
        spec: path of the spec.
        queue: what waits, and what is rented.
        partition: its name; None: the one whose jobs spill.

    Raises:
        LifecycleError: the spec is wrong (exit code 2), or its jobs don't spill (64).
    """
    found = open_partition(spec, partition)
    rule = rule_of(found.spec, found.catalog, found.partition)
    if rule is None:
        raise failure(
            "GC941",
            f"jobs of partition {found.partition} don't spill",
            hint="spill: {to: POOL, after: 30m} in the partition",
            exit_code=Exit.USAGE,
        )
    done = decide_all(rule, queue.jobs, queue)
    return Tried(
        partition=found.partition,
        pool=rule.target.pool,
        decisions=done.decisions,
        promise=done.promise,
    )


def _line(text: str, error: str) -> int:
    """Return the line of an error that the parser reports by byte offset; 1 for any other."""
    at = re.search(r"\(byte ([0-9]+)\)$", error)
    return 1 if at is None else text.encode()[: int(at[1])].count(b"\n") + 1


def _wrong(file: str, summary: str, line: int = 1) -> Diagnostic:
    return Diagnostic(
        code="GC958",
        severity=Severity.ERROR,
        summary=summary,
        file=file,
        span=Span(line=line, column=1, end_line=line, end_column=2),
        hint="docs/burst-simulate.md lists the keys",
    )
