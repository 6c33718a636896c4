"""When a cluster's time is up, by its spec, its history and its use. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

import msgspec

from ....schemas.spec import Budget
from ...state import Event, ExpiryAnnounced, ExpiryKind, ExpiryWithdrawn, RunFinished, RunStarted
from .jobs import Jobs


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """What makes a cluster end."""

    kind: ExpiryKind
    due: datetime
    """When its time is up."""
    notice: timedelta
    """How long before the end it is announced."""
    why: str


class Lifetime(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster from its first `up` on, until it is taken down."""

    began: datetime
    announced: ExpiryAnnounced | None = None
    """The last announcement that is still in effect."""


def lifetime(events: Iterable[Event]) -> Lifetime | None:
    """Return the life that a cluster is in; None: it was never made, or was taken down."""
    now: Lifetime | None = None
    commands: dict[str, str] = {}
    for event in events:
        match event.body:
            case RunStarted(command=command):
                commands[event.run] = command
                if command == "up" and now is None:
                    now = Lifetime(began=event.time)
            case RunFinished(exit_code=0) if commands.get(event.run) == "down":
                now = None
            case ExpiryAnnounced() as announced if now is not None:
                now = msgspec.structs.replace(now, announced=announced)
            case ExpiryWithdrawn() if now is not None:
                now = msgspec.structs.replace(now, announced=None)
    return now


def ending(budget: Budget | None, began: datetime, jobs: Jobs, now: datetime) -> Ending | None:
    """Return what ends the cluster first, if that must be announced by now."""
    if budget is None:
        return None
    ahead = [each for each in _endings(budget, began, jobs, now) if now >= each.due - each.notice]
    return min(ahead, key=lambda each: each.due, default=None)


def expires_at(budget: Budget, began: datetime) -> datetime | None:
    """Return when a cluster that began then expires; None: it doesn't."""
    if budget.expires is not None:
        return began + timedelta(seconds=budget.expires.value)
    if budget.expires_on is not None:
        return datetime.fromisoformat(budget.expires_on).replace(tzinfo=UTC)
    return None


def _endings(budget: Budget, began: datetime, jobs: Jobs, now: datetime) -> Iterator[Ending]:
    expires = expires_at(budget, began)
    if expires is not None:
        why = (
            f"it expires on {budget.expires_on}"
            if budget.expires is None
            else f"its time of {budget.expires} is up"
        )
        notice = timedelta(seconds=budget.expiry_notice_s)
        yield Ending(kind="expires", due=expires, notice=notice, why=why)
    if budget.idle_shutdown is not None and jobs.idle_s is not None:
        since = max(began, now - timedelta(seconds=jobs.idle_s))
        yield Ending(
            kind="idle",
            due=since + timedelta(seconds=budget.idle_shutdown.value),
            notice=timedelta(seconds=budget.idle_notice_s),
            why=f"no job has run for {budget.idle_shutdown}",
        )
