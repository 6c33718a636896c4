"""A sign of life beside a lock, so that whoever finds it held can tell a run from its ghost.

`lock/<site>/000042.seen` is replaced every minute while the lock is held. It ends no lock: a holder
that is only cut off from the store may still be at work on the cluster.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from ..outcome import LifecycleError

if TYPE_CHECKING:
    from .store import StateStore

EVERY_S = 60.0
SILENT = timedelta(minutes=10)
"""A holder that has not been seen for so long is called silent: ten signs in a row got lost."""
SEEN = ".seen"


class Seen(msgspec.Struct, frozen=True):
    """When the holder of a lock was last alive, by its own clock."""

    at: datetime


class Heartbeat:
    """Says that a lock's holder is alive, in a thread, until it is stopped."""

    def __init__(
        self, store: StateStore, clock: Callable[[], datetime], every_s: float = EVERY_S
    ) -> None:
        """Say nothing yet."""
        self._store = store
        self._clock = clock
        self._every_s = every_s
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self, keys: Iterable[str]) -> None:
        """Say it for these locks from now on, first in a minute: short runs write nothing."""
        names = tuple(keys)
        self._thread = threading.Thread(target=self._beat, args=(names,), daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Say it no more."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _beat(self, keys: tuple[str, ...]) -> None:
        while not self._ended.wait(self._every_s):
            for key in keys:
                # A store that is away for a moment ends no run here: the next event will tell.
                with suppress(LifecycleError):
                    self._store.put(key + SEEN, msgspec.json.encode(Seen(self._clock())))


def last_seen(store: StateStore, key: str) -> datetime | None:
    """Return when the holder of the lock `key` was last seen; None: not since it took the lock."""
    with suppress(LifecycleError):  # a damaged sign is no sign
        seen = store.read(key + SEEN, Seen)
        return None if seen is None else seen.at
    return None
