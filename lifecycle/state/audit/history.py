"""What was done to a cluster, read from its events: every run, and one run step by step."""

from __future__ import annotations

import difflib
from datetime import datetime
from typing import Any

import msgspec

from ...cluster.cluster import Cluster
from ...cluster.outcome import Exit, failure
from .. import Event, Journal, RunRecord
from .artifacts import read_artifacts
from .trail import event_data


class EventView(msgspec.Struct, frozen=True, kw_only=True):
    """One event as it is shown."""

    seq: int
    time: datetime
    actor: str
    kind: str
    data: dict[str, Any]
    """The event's own fields; of one that can't be read, why."""


class RunView(msgspec.Struct, frozen=True, kw_only=True):
    """One run with all that it wrote down."""

    run: RunRecord
    events: tuple[EventView, ...]
    has_artifacts: bool
    """Whether its logs are in the state."""


def history(cluster: Cluster) -> tuple[RunRecord, ...]:
    """Return every run, oldest first."""
    return Journal(cluster.events).runs()


def show(cluster: Cluster, run: str) -> RunView:
    """Return one run; a unique prefix of its id is enough.

    Raises:
        LifecycleError: no run, or several, have that id (exit code USAGE).
    """
    record = _find(history(cluster), run, cluster.name)
    return RunView(
        run=record,
        events=tuple(_view(e) for e in cluster.events.known() if e.run == record.id),
        has_artifacts=read_artifacts(cluster.store, record.id) is not None,
    )


def _find(runs: tuple[RunRecord, ...], wanted: str, name: str) -> RunRecord:
    found = [run for run in runs if run.id == wanted] or [
        run for run in runs if wanted and run.id.startswith(wanted)
    ]
    if len(found) == 1:
        return found[0]
    if found:
        ids = ", ".join(run.id for run in found)
        raise failure("GC907", f'several runs begin with "{wanted}": {ids}', exit_code=Exit.USAGE)
    near = difflib.get_close_matches(wanted, [run.id for run in runs], n=1)
    raise failure(
        "GC907",
        f'{name} had no run "{wanted}"',
        hint=f'did you mean "{near[0]}"?' if near else f"gcluster history {name} lists them",
        exit_code=Exit.USAGE,
    )


def _view(event: Event) -> EventView:
    return EventView(
        seq=event.seq,
        time=event.time,
        actor=event.actor,
        kind=event.kind,
        data=event_data(event),
    )
