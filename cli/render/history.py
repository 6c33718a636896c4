"""Runs of a cluster as text: a line each, and one run event by event."""

from __future__ import annotations

import json
from collections.abc import Iterable

from ...lifecycle.audit.history import ToldRun
from ...lifecycle.state import RunRecord
from .cells import pad, printable
from .quantities import duration
from .surface import Surface, Tone

_TONES: dict[str, Tone] = {"ok": "good", "running": "note"}


def history_text(runs: Iterable[RunRecord], surface: Surface) -> str:
    """Return a line for each run; says so where there was none."""
    lines = [_line(run, surface) for run in runs]
    return surface.plain("\n".join(lines) or "no run has changed this cluster yet")


def run_text(told: ToldRun, surface: Surface) -> str:
    """Return a run and its events, in order."""
    run = told.run
    commit = f" of commit {printable(run.commit)}" if run.commit else ""
    why = f", for {printable(run.why)}" if run.why else ""
    lines = [_line(run, surface), f"  spec {run.spec_hash[:12]}{commit}{why}"]
    for event in told.events:
        data = " ".join(f"{key}={_value(value)}" for key, value in event.data.items())
        head = f"{event.time:%H:%M:%S}  {pad(event.kind, 18)}"
        lines.append(f"  {surface.paint('faint', head)} {printable(data)}".rstrip())
    if told.has_artifacts:
        lines.append("  its logs: --artifacts FILE")
    return surface.plain("\n".join(lines))


def _line(run: RunRecord, surface: Surface) -> str:
    outcome = run.outcome or run.state
    took = duration((run.ended - run.started).total_seconds()) if run.ended is not None else ""
    ended = f" (exit {run.exit_code})" if run.exit_code else ""
    shown = surface.paint(_TONES.get(outcome, "error"), outcome)
    who = f"{run.started:%Y-%m-%d %H:%M} UTC  {pad(printable(run.actor), 24)}"
    return f"{pad(run.id, 24)} {who} {pad(run.command, 12)} {shown}{ended}  {took}".rstrip()


def _value(value: object) -> str:
    """Return a value on one line; lists and maps are told by how many they hold."""
    if isinstance(value, (list, dict)):
        return f"{len(value)} entries"
    return json.dumps(value, ensure_ascii=False)
