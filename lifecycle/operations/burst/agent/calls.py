"""Who makes the calls that take long: each in a thread of its own, none for nodes of another."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor

import msgspec

CALLS = 16
"""Calls at once. Each is a bulk call or a converge of many nodes; clouds throttle far below."""


class CallPool:
    """Concurrent calls: a cloud that is slow by minutes holds up its own nodes alone."""

    def __init__(
        self,
        *,
        is_fault: Callable[[BaseException], bool],
        on_error: Callable[[BaseException], None],
    ) -> None:
        """Start nothing yet.

        Args:
            is_fault: whether an error ends the agent.
            on_error: receives each other error: what it stopped is tried again in the next round.
        """
        self._pool = ThreadPoolExecutor(CALLS, thread_name_prefix="burst")
        self._is_fault = is_fault
        self._on_error = on_error
        self._lock = threading.Lock()
        self._busy: set[str] = set()
        self._fault: BaseException | None = None

    def start(self, nodes: Collection[str], call: Callable[[], object]) -> None:
        """Make a call for these nodes."""
        mine = frozenset(nodes)
        with self._lock:
            self._busy |= mine
        self._pool.submit(self._run, mine, call)

    def busy(self) -> frozenset[str]:
        """Return the nodes that a call is at work for."""
        with self._lock:
            return frozenset(self._busy)

    def raise_failures(self) -> None:
        """Raise what ended a call that nothing can go on after."""
        if self._fault is not None:
            raise self._fault

    def close(self) -> None:
        """Wait for the calls that are at work; those not begun are dropped: they are on record."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _run(self, nodes: frozenset[str], call: Callable[[], object]) -> None:
        try:
            call()
        except BaseException as error:  # noqa: BLE001  # raised or reported by the caller
            if self._is_fault(error):
                self._fault = error
            else:
                self._on_error(error)
        finally:
            with self._lock:
                self._busy -= nodes


class AgentEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the agent's output."""

    what: str
    """A step of nodes (`requested`, made, refused, joined, leaving, gone); moved or not-moved;
    gave-up, may-come-again, let-go; not-joined-yet, unsure, failed, not-done, silent; note,
    spec-changed."""
    nodes: str = ""
    job: str = ""
    pool: str = ""
    option: str = ""
    reason: str = ""
