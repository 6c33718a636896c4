"""The driver of a rolling change: observe, drain, change, resume, until all nodes are done.

A scheduler may be unavailable briefly, since the same change may restart it: calls are retried.
"""

from __future__ import annotations

import time
from collections.abc import (
    Callable,  # msgspec reads it
    Collection,
    Mapping,
    Sequence,
)
from typing import TypeVar

import msgspec

from ...scheduler.base import MARK, NodeUse, Scheduler, SchedulerSilent
from .window import Window

Work = Callable[[Collection[str]], Mapping[str, str]]
"""Changes and verifies nodes; returns node -> why for those that failed."""

POLL_S = 3.0
"""Seconds between polls of nodes whose jobs have not ended."""
REASON_CHARS = 80
"""Longest part of a failure that becomes the scheduler's reason of a drain."""


class Rolled(msgspec.Struct, frozen=True, kw_only=True):
    """How a rolling change ended, node by node."""

    changed: tuple[str, ...]
    failed: dict[str, str]
    """Node -> why; it stays out of service."""
    held: dict[str, str]
    """Node -> why it was left as it was, in service."""


class Clock(msgspec.Struct, frozen=True):
    """Clock and sleep of the driver; tests replace them."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


def roll(
    windows: Sequence[Window],
    service: Scheduler,
    work: Work,
    *,
    why: str,
    emit: Callable[[str], None],
    clock: Clock = Clock(),  # noqa: B008  # frozen
) -> Rolled:
    """Change the nodes of all windows; each pool keeps its own pace and limit.

    A node is never changed while a job is on it. One that failed stays out of service with the
    reason; one that we took out and did not change is resumed. Killed anywhere, it leaves nodes out
    with our mark, and the next run begins with those.

    Args:
        windows: one a pool.
        service: the scheduler.
        work: changes nodes that are out of service and free.
        why: the reason that the scheduler shows for drained nodes.
        emit: receives what is waited for, as text.
        clock: the time.
    """
    try:
        while not all(window.is_over for window in windows):
            _turn(windows, service, work, f"{MARK}{why}", emit, clock)
    except SchedulerSilent as silent:
        for window in windows:
            window.stop(f"the scheduler does not answer: {silent}")
    return Rolled(
        changed=tuple(node for window in windows for node in window.changed),
        failed={node: reason for window in windows for node, reason in window.failed.items()},
        held={node: reason for window in windows for node, reason in window.held.items()},
    )


def _turn(  # noqa: PLR0917  # the parts of one turn
    windows: Sequence[Window],
    service: Scheduler,
    work: Work,
    reason: str,
    emit: Callable[[str], None],
    clock: Clock,
) -> None:
    uses = service.nodes([n for w in windows for n in (*w.waiting, *w.out)])
    taken = [node for window in windows for node in window.take(uses, clock.now())]
    if fresh := [node for node in taken if node not in uses or not uses[node].out]:
        service.drain(fresh, reason)
    if jobs := _to_requeue(windows, taken, uses):
        service.requeue(jobs)
    if fresh:
        uses = {**uses, **service.nodes([node for window in windows for node in window.out])}
    if ready := [node for window in windows for node in window.ready(uses)]:
        failures = work(ready)
        for node, why in failures.items():
            service.drain([node], f"{reason}: failed: {_in_short(why)}")
        for window in windows:
            good = window.end([node for node in ready if node in window.out], failures)
            _give_back(service, good, uses)
            if window.has_stopped:
                _give_back(service, window.stop(_stopped(window)), uses)
        return
    late = [node for window in windows for node in window.late(uses, clock.now())]
    _give_back(service, late, uses)
    waiting = {n: uses[n].jobs for w in windows for n in w.out if n in uses and uses[n].jobs}
    if waiting:
        some = ", ".join(f"{node} (job {' '.join(jobs)})" for node, jobs in waiting.items())
        emit(f"waiting for {some}")
    if any(window.out for window in windows):
        clock.sleep(POLL_S)


def _give_back(service: Scheduler, nodes: Collection[str], before: Mapping[str, NodeUse]) -> None:
    """Resume what we drained; nodes drained by others stay drained."""
    if mine := [node for node in nodes if node in before and before[node].is_ours]:
        service.resume(mine)


def _to_requeue(
    windows: Sequence[Window], taken: Collection[str], uses: Mapping[str, NodeUse]
) -> list[str]:
    impatient = {node for window in windows if window.requeues for node in window.out}
    jobs = (job for node in taken if node in impatient and node in uses for job in uses[node].jobs)
    return list(dict.fromkeys(jobs))


def _in_short(message: str) -> str:
    """Return what a scheduler's list of drained nodes has room for."""
    return " ".join(message.split())[:REASON_CHARS]


def _stopped(window: Window) -> str:
    return f"stopped: {', '.join(window.failed)} failed"


SILENCE_S = 90.0
"""How long a scheduler may give no answer before the nodes are left as they are."""
_T = TypeVar("_T")


class Patient:
    """Retries for a while; every call of a scheduler may be repeated."""

    def __init__(self, service: Scheduler, clock: Clock) -> None:
        """Set the scheduler; nothing is queried yet."""
        self._service, self._clock = service, clock

    def nodes(self, nodes: Collection[str]) -> Mapping[str, NodeUse]:
        """Return the use of each node."""
        return self._retried(lambda: self._service.nodes(nodes))

    def drain(self, nodes: Collection[str], reason: str) -> None:
        """Let no further job start on the nodes."""
        self._retried(lambda: self._service.drain(nodes, reason))

    def resume(self, nodes: Collection[str]) -> None:
        """Let jobs start on the nodes again."""
        self._retried(lambda: self._service.resume(nodes))

    def requeue(self, jobs: Collection[str]) -> None:
        """Put jobs back in line."""
        self._retried(lambda: self._service.requeue(jobs))

    def pinned(self, nodes: Collection[str]) -> Mapping[str, str]:
        """Return the jobs that end where these nodes are no more."""
        return self._retried(lambda: self._service.pinned(nodes))

    def _retried(self, call: Callable[[], _T]) -> _T:
        until = self._clock.now() + SILENCE_S
        while True:
            try:
                return call()
            except SchedulerSilent:
                if self._clock.now() >= until:
                    raise
                self._clock.sleep(POLL_S)
