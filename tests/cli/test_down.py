"""`gcluster down`: what is asked, the counts, leftovers. Removing is a double's work."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from gcluster.lifecycle.outcome import Exit
from gcluster.stacks.provider import Leftover

NODES = tuple(Leftover(kind="node", name=f"gpu{n:03d}", provider_id="x") for n in range(1, 5))


class DownResult(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of lifecycle.down.DownResult."""

    cluster: str = "demo"
    nothing_there: bool = False
    removed: dict[str, int] = {}
    untouched: tuple[str, ...] = ()
    leftovers: tuple[Leftover, ...] = ()
    exit_code: Exit = Exit.OK


@pytest.fixture
def removing(run: Callable[..., Any], stand_in: Callable[..., None]) -> Callable[..., Any]:
    """Run the verb on a double that asks about four nodes and ends as told."""

    def invoke(result: DownResult, *words: str) -> Any:
        def down(_cluster: str, _report: object, *, confirm: Any) -> DownResult:
            assert result.nothing_there or confirm(NODES)
            return result

        stand_in("cluster", open_cluster=lambda target, *, running: target if running else None)
        stand_in("down", down=down)
        return run("down", "demo", *words)

    return invoke


def test_what_was_removed_is_counted(removing: Callable[..., Any]) -> None:
    done = removing(DownResult(removed={"network": 1, "node": 5}), "--yes")
    assert done.exit_code == 0
    assert "demo: removed 5 nodes, 1 network" in done.stdout
    assert "nothing is left" in done.stdout


def test_where_nothing_is_it_says_so(removing: Callable[..., Any]) -> None:
    done = removing(DownResult(nothing_there=True))
    assert (done.exit_code, done.stdout) == (0, "demo: there is nothing to remove\n")


def test_leftovers_are_named_and_are_exit_code_5(removing: Callable[..., Any]) -> None:
    left = (Leftover(kind="volume", name="scratch", provider_id="v", usd_per_hour=0.25),)
    result = DownResult(removed={"node": 1}, leftovers=left, exit_code=Exit.LEFTOVERS)
    done = removing(result, "--yes")
    assert done.exit_code == 5
    assert "1 leftover could not be removed" in done.stdout
    assert "! volume scratch   $0.25/h" in done.stdout
    assert "nothing is left" not in done.stdout


def test_without_yes_and_without_a_terminal_nothing_is_removed(
    removing: Callable[..., Any],
) -> None:
    done = removing(DownResult())
    assert done.exit_code == 4
    assert "- node gpu001" in done.stdout
    assert "4 nodes to remove" in done.stdout


def test_machines_that_were_not_made_are_said_to_stay(removing: Callable[..., Any]) -> None:
    done = removing(DownResult(removed={}, untouched=("room1",)), "--yes")
    assert "site room1: its machines were not made by gcluster" in done.stdout


def test_json_is_the_result(removing: Callable[..., Any]) -> None:
    told = json.loads(removing(DownResult(removed={"node": 5}), "--yes", "--format", "json").stdout)
    assert told["removed"] == {"node": 5}
