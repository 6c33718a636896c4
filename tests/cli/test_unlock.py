"""`gcluster unlock`: takes the lock as a refusal names it. The store is a double."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from gcluster.schemas.diagnostics import Diagnostic
from gcluster.stacks.provider import provider_error


class Unlocked(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of lifecycle.cluster.unlock.Unlocked that the verb shows."""

    lock: str
    stack_freed: bool = False
    diagnostics: tuple[Diagnostic, ...] = ()


@pytest.fixture
def unlocked(run: Callable[..., Any], put_doubles: Callable[..., None]) -> Callable[..., Any]:
    """Run the verb on a double and return the result and what was released."""

    def invoke(lock: str, *words: str, **answer: Any) -> Any:
        seen: list[Any] = []
        cluster = SimpleNamespace(name="demo")
        put_doubles(
            "cluster.cluster", open_cluster=lambda _target, *, running: cluster if running else None
        )

        def unlock(_: object, site: str, epoch: int) -> Unlocked:
            seen.append((site, epoch))
            return Unlocked(lock=f"{site}/{epoch}", **answer)

        put_doubles("cluster.unlock", unlock=unlock)
        return run("unlock", "demo", "--lock", lock, *words), seen

    return invoke


def test_the_lock_is_read_as_site_and_epoch(unlocked: Callable[..., Any]) -> None:
    done, seen = unlocked("campus/000042")
    assert (done.exit_code, done.stdout) == (0, "campus/42 is released\n")
    assert seen == [("campus", 42)]


def test_the_lock_of_the_burst_agent_is_one(unlocked: Callable[..., Any]) -> None:
    assert unlocked("burst.agent/3")[1] == [("burst.agent", 3)]


def test_a_stack_that_was_freed_is_reported(unlocked: Callable[..., Any]) -> None:
    done, _ = unlocked("campus/42", stack_freed=True)
    assert done.stdout == "campus/42 is released, and the stack of campus is free\n"


def test_why_a_stack_is_not_free_is_reported_and_is_a_failure(unlocked: Callable[..., Any]) -> None:
    [found] = provider_error("GC965", "the engine is not here").diagnostics
    done, _ = unlocked("campus/42", diagnostics=(found,))
    assert done.exit_code == 1
    assert "campus/42 is released" in done.stdout
    assert "the engine is not here" in done.stdout


@pytest.mark.parametrize(
    "lock", ["campus", "campus/", "/7", "campus/x", "campus/-1", "", "campus/../7", "../7", "a/b/7"]
)
def test_what_is_no_lock_is_a_usage_error_and_releases_nothing(
    unlocked: Callable[..., Any], lock: str
) -> None:
    done, seen = unlocked(lock)
    assert done.exit_code == 64
    assert seen == []
