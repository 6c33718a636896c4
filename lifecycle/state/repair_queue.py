"""Which nodes a live cluster does without, why, and what was tried: a fold of the events."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Literal

import msgspec

from ...schemas.derived.hostlist import expand
from .event_types import RepairAction, RepairStepped
from .events import Event, is_stale


class Repair(msgspec.Struct, frozen=True, kw_only=True):
    """One node in the repair queue."""

    node: str
    site: str
    pool: str
    state: Literal["waiting", "given-up"]
    reason: str
    """Why it is not fit, as it was last seen."""
    since: datetime
    """When it was put in."""
    tried: tuple[RepairAction, ...] = ()
    """What did not help since."""
    trying: RepairAction | None = None
    """What was begun and has no result: it is at work, or its run was killed."""


class RepairFold:
    """The queue as a fold of the events, oldest first. Pure: the same events, the same queue."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.nodes: dict[str, Repair] = {}
        self._newest: dict[str, int] = {}

    def apply(self, events: Iterable[Event]) -> None:
        """Fold events, in order; stale ones change nothing."""
        for event in events:
            if is_stale(event, self._newest):
                continue
            self._newest.update(event.epochs)
            if isinstance(event.body, RepairStepped):
                for node in expand(event.body.nodes):
                    self._step(node, event.body, event.time)

    def _step(self, node: str, step: RepairStepped, time: datetime) -> None:
        before = self.nodes.get(node)
        if step.step in {"admitted", "dropped"}:
            self.nodes.pop(node, None)
        elif step.step == "queued" or before is None:
            since = before.since if before is not None and before.state == "waiting" else time
            self.nodes[node] = Repair(
                node=node,
                site=step.site,
                pool=step.pool,
                state="given-up" if step.step == "given-up" else "waiting",
                reason=step.reason,
                since=since,
            )
        else:
            self.nodes[node] = _after(before, step)


def repairs(events: Iterable[Event]) -> tuple[Repair, ...]:
    """Return the queue, oldest first."""
    fold = RepairFold()
    fold.apply(events)
    return tuple(fold.nodes.values())


def _after(before: Repair, step: RepairStepped) -> Repair:
    change = msgspec.structs.replace
    reason = step.reason or before.reason
    if step.step == "trying":
        return change(before, trying=step.action)
    if step.step == "failed" and step.action is not None:
        return change(before, trying=None, tried=(*before.tried, step.action), reason=reason)
    return change(before, trying=None, state="given-up", reason=reason)
