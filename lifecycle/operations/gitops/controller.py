"""The controller: round after round until it is stopped, one of them for a branch and machine."""

from __future__ import annotations

import fcntl
import hashlib
import os
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ...cluster import places
from ...cluster.outcome import Exit, failure
from ...state import StateStore
from ...state.store import utc_now
from .git import Repository
from .round_record import ControllerEvent
from .rounds import Settings, World, have_round


def controllers() -> Path:
    """Return the folder of the controllers of this machine and user."""
    return places.data_home() / "reconcile"


def own_state(folder: Path) -> str:
    """Return the default URL of a controller's state."""
    return f"file://{folder / 'state'}"


def folder_of(settings: Settings) -> Path:
    """Return the folder of a branch and path: the same whenever they are the same."""
    named = f"{settings.repo}\n{settings.branch}\n{settings.path}"
    return controllers() / hashlib.sha256(named.encode()).hexdigest()[:16]


def run_controller(
    settings: Settings,
    *,
    state: str | None,
    interval_s: float | None,
    emit: Callable[[ControllerEvent], None],
) -> Exit:
    """Have rounds until a signal comes, or one round where `interval_s` is None.

    Raises:
        LifecycleError: the URL isn't taken (GC1130), another one is at work here (GC1135), or the
            controller's own state can't be used.
    """
    folder = places.private_directory(folder_of(settings))
    # The choice is of when, not of secrets.
    chance = random.Random(os.urandom(8)).random  # noqa: S311
    world = World(
        repository=Repository(settings.repo, settings.branch, folder),
        store=StateStore.open(state or own_state(folder)),
        now=utc_now,
        chance=chance,
        emit=emit,
    )
    with _exclusive(folder):
        code = have_round(settings, world)
        stopped = threading.Event()
        while interval_s is not None and not stopped.wait(interval_s * (0.95 + 0.1 * chance())):
            code = have_round(settings, world)
        return code


@contextmanager
def _exclusive(folder: Path) -> Iterator[None]:
    """Hold the folder; the system lets go of it however the process ends."""
    with (folder / "running").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise failure(
                "GC1135",
                "another gcluster reconcile follows this branch on this machine",
                hint="gcluster reconcile status shows what it does",
                exit_code=Exit.LOCKED,
            ) from None
        yield
