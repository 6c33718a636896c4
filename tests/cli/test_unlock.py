"""`gcluster unlock`: takes the lock as a refusal names it. The store is a double."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest


@pytest.fixture
def unlocked(run: Callable[..., Any], stand_in: Callable[..., None]) -> Callable[..., Any]:
    """Run the verb on a double and return the result and what was released."""

    def invoke(lock: str, *words: str) -> Any:
        seen: list[Any] = []
        cluster = SimpleNamespace(store="store")
        stand_in("cluster", open_cluster=lambda _target, *, running: cluster if running else None)
        stand_in("state.lock", unlock=lambda *arguments: seen.append(arguments))
        return run("unlock", "demo", "--lock", lock, *words), seen

    return invoke


def test_the_lock_is_read_as_site_and_epoch(unlocked: Callable[..., Any]) -> None:
    done, seen = unlocked("campus/000042")
    assert (done.exit_code, done.stdout) == (0, "campus/000042 is released\n")
    assert seen == [("store", "campus", 42)]


@pytest.mark.parametrize("lock", ["campus", "campus/", "/7", "campus/x", "campus/-1", ""])
def test_what_is_no_lock_is_a_usage_error_and_releases_nothing(
    unlocked: Callable[..., Any], lock: str
) -> None:
    done, seen = unlocked(lock)
    assert done.exit_code == 64
    assert seen == []
