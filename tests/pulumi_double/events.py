"""Streams what the double does to its caller, as JSON events of the engine."""

from __future__ import annotations

import json
import queue
import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import grpc
from pulumi.runtime.proto import events_pb2, events_pb2_grpc

from .clouds import type_of

Json = dict[str, Any]  # the engine's JSON


class EventStream:
    """Sends events to `--event-log tcp://HOST:PORT`; without one they are only counted."""

    def __init__(self, target: str) -> None:
        """Connect.

        Raises:
            ValueError: a log in a file, which older SDKs want.
        """
        if target and not target.startswith("tcp://"):
            raise ValueError(f"this double of pulumi sends events to tcp://, not to {target}")
        self._queue: queue.Queue[Json | None] = queue.Queue()
        self._sequence = 0
        self.changes: Counter[str] = Counter()
        self.errors: list[str] = []
        self._sender: threading.Thread | None = None
        if target:
            channel = grpc.insecure_channel(target.removeprefix("tcp://"))
            stub = events_pb2_grpc.EventsStub(channel)
            self._sender = threading.Thread(
                target=lambda: stub.StreamEvents(self._requests()), daemon=True
            )
            self._sender.start()

    def step(
        self, moment: str, op: str, *, old: Json | None = None, new: Json | None = None,
        keys: list[str] | None = None, planning: bool = False,
    ) -> None:  # fmt: skip
        """Emit an event: `moment` is resourcePreEvent, resOutputsEvent or resOpFailedEvent."""
        state = new or old or {}
        if _is_default_provider(state):
            return
        if moment == "resOutputsEvent":
            self.changes[op] += 1
        metadata = {
            "op": op,
            "urn": state["urn"],
            "type": type_of(state["urn"]),
            "old": _event_state(old),
            "new": _event_state(new),
            "keys": None,
            "diffs": keys,
            "detailedDiff": {k: {"diffKind": "update", "inputDiff": True} for k in keys or ()},
            "provider": state.get("provider", ""),
            "logical": True,
        }
        self._send({moment: {"metadata": metadata, "planning": planning}})

    def emit_diagnostic(self, severity: str, message: str, urn: str = "") -> None:
        """Emit a diagnostic."""
        if severity == "error":
            self.errors.append(message)
        expected = {"urn": urn, "message": message, "color": "never", "severity": severity}
        self._send({"diagnosticEvent": expected})

    def close(self) -> None:
        """Emit the summary and the end."""
        summary = {
            "maybeCorrupt": False, "durationSeconds": 0, "resourceChanges": dict(self.changes),
            "PolicyPacks": {},
        }  # fmt: skip
        self._send({"summaryEvent": summary})
        self._send({"cancelEvent": {}})
        self._queue.put(None)
        if self._sender is not None:
            self._sender.join(30)

    def _send(self, event: Json) -> None:
        self._queue.put({"sequence": self._sequence, "timestamp": int(time.time()), **event})
        self._sequence += 1

    def _requests(self) -> Iterator[events_pb2.EventRequest]:
        while (event := self._queue.get()) is not None:
            yield events_pb2.EventRequest(event=json.dumps(event))


def _event_state(state: Json | None) -> Json | None:
    if state is None:
        return None
    kept = ("type", "urn", "custom", "id", "parent", "protect", "retainOnDelete", "provider")
    return {key: state[key] for key in kept if key in state}


def _is_default_provider(state: Json) -> bool:
    """Whether the engine made it for itself: it has no events for those."""
    return state["type"].startswith("pulumi:providers:") and "::default" in state["urn"]
