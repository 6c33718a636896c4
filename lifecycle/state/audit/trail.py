"""The audit trail: every change as one line of JSON, with its author, reason and result.

The events of the state are the trail; this module exports them: `gcluster history --events`, a file
that is written along (GCLUSTER_AUDIT), and OpenTelemetry.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any

import msgspec

from ...cluster.cluster import Cluster
from ...cluster.outcome import failure
from .. import Event, RunFinished, RunStarted, Unreadable
from .telemetry import spans

FILE = "GCLUSTER_AUDIT"
"""Environment variable: path of a file that gets a line for each event of a run."""


class AuditLine(msgspec.Struct, frozen=True, kw_only=True):
    """One event with what has to be known of its run."""

    time: datetime
    cluster: str
    seq: int
    """Number of the event in the cluster's log."""
    who: str
    """user@host."""
    what: str
    """Kind of the event."""
    data: dict[str, Any]
    """The event's own fields; of one that can't be read, why."""
    run: str
    """Id of the run; "" outside any."""
    command: str
    """Of the run: "up", "down" ..."""
    why: str
    """Commit that the run's spec comes from; "": unknown."""
    result: str
    """Where the run ends: "ok", "failed" ...; "" before."""


class Trail:
    """Makes lines of a cluster's events; reads along which run each belongs to."""

    def __init__(self, cluster: str) -> None:
        """Begin before the first event."""
        self._cluster = cluster
        self._runs: dict[str, RunStarted] = {}

    def line(self, event: Event) -> AuditLine:
        """Return the line of an event; those of one run in their order."""
        body = event.body
        if isinstance(body, RunStarted):
            self._runs[event.run] = body
        started = self._runs.get(event.run)
        return AuditLine(
            time=event.time,
            cluster=self._cluster,
            seq=event.seq,
            who=event.actor,
            what=event.kind,
            data=event_data(event),
            run=event.run,
            command=started.command if started else "",
            why=started.commit if started else "",
            result=body.outcome if isinstance(body, RunFinished) else "",
        )


def event_data(event: Event) -> dict[str, Any]:
    """Return an event's own fields as plain data."""
    if isinstance(event.body, Unreadable):
        return {"problem": event.body.problem}
    return {k: v for k, v in msgspec.to_builtins(event.body).items() if k != "type"}


def audit_lines(cluster: Cluster) -> Iterator[bytes]:
    """Yield every event of a cluster as a line of JSON, oldest first, without the line's end."""
    trail = Trail(cluster.name)
    return (msgspec.json.encode(trail.line(event)) for event in cluster.events.read())


@contextmanager
def exported(cluster: Cluster) -> Iterator[None]:
    """Export each event that is written while the body runs to the enabled outputs.

    Raises:
        LifecycleError: the file can't be written (GC1150), or OpenTelemetry is enabled and isn't
            installed (GC1151). Afterwards nothing here ends a run: the state has the events.
    """
    trail = Trail(cluster.name)
    with _file() as write, spans() as span:
        sinks: tuple[Callable[[AuditLine], None], ...] = (write, span)

        def emit(event: Event) -> None:
            line = trail.line(event)
            for sink in sinks:
                with suppress(OSError):
                    sink(line)

        with cluster.events.subscribe(emit):
            yield


@contextmanager
def _file() -> Iterator[Callable[[AuditLine], None]]:
    place = os.environ.get(FILE, "")
    if not place:
        yield lambda _: None
        return
    try:
        descriptor = os.open(place, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise failure(
            "GC1150",
            f"the audit file {place} can't be written: {error.strerror}",
            hint=f"name another one in {FILE}, or none",
        ) from error
    try:
        # One write a line: several processes may append to one file.
        yield lambda line: _write(descriptor, msgspec.json.encode(line) + b"\n")
    finally:
        os.close(descriptor)


def _write(descriptor: int, data: bytes) -> None:
    os.write(descriptor, data)
