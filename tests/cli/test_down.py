"""`gcluster down`: the prompt, the counts, leftovers. Removing is a double's work."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from gcluster.lifecycle.cluster.outcome import Exit
from gcluster.stacks.provider import Leftover

NODES = tuple(Leftover(kind="node", name=f"gpu{n:03d}", provider_id="x") for n in range(1, 5))


class DownResult(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of lifecycle.down.down.DownResult."""

    cluster: str = "demo"
    nothing_there: bool = False
    removed: dict[str, int] = {}
    untouched: tuple[str, ...] = ()
    leftovers: tuple[Leftover, ...] = ()
    kept: tuple[Leftover, ...] = ()
    exit_code: Exit = Exit.OK


@pytest.fixture
def removing(run: Callable[..., Any], put_doubles: Callable[..., None]) -> Callable[..., Any]:
    """Run the verb on a double that prompts about four nodes and ends as the test sets."""

    def invoke(result: DownResult, *words: str, named: tuple[str, ...] = ()) -> Any:
        def down(
            _cluster: str,
            _report: object,
            *,
            confirm: Any,
            delete_data: tuple[str, ...],
            skip_kubernetes: bool,
        ) -> DownResult:
            assert delete_data == named
            assert skip_kubernetes == ("--skip-kubernetes" in words)
            assert result.nothing_there or confirm((*NODES, *result.kept))
            return result

        put_doubles(
            "cluster.cluster", open_cluster=lambda target, *, running: target if running else None
        )
        put_doubles("down.down", down=down)
        return run("down", "demo", *words)

    return invoke


def test_what_was_removed_is_counted(removing: Callable[..., Any]) -> None:
    done = removing(DownResult(removed={"network": 1, "node": 5}), "--yes")
    assert done.exit_code == 0
    assert "demo: removed 5 nodes, 1 network" in done.stdout
    assert "nothing is left" in done.stdout


def test_where_nothing_is_it_reports_it(removing: Callable[..., Any]) -> None:
    done = removing(DownResult(nothing_there=True))
    assert (done.exit_code, done.stdout) == (0, "demo: there is nothing to remove\n")


def test_a_control_plane_that_gives_no_answer_can_be_left_out(removing: Callable[..., Any]) -> None:
    assert removing(DownResult(removed={"node": 1}), "--yes", "--skip-kubernetes").exit_code == 0


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


def test_machines_that_were_not_created_are_reported_as_kept(removing: Callable[..., Any]) -> None:
    done = removing(DownResult(removed={}, untouched=("room1",)), "--yes")
    assert "site room1: its machines were not made by gcluster" in done.stdout


KEPT = (
    Leftover(
        kind="file-system", name="fs-1", provider_id="fs-1", kept_data=True, storage=("scratch",),
        usd_per_month=730.0, usd_per_hour=1.0,
    ),
    Leftover(kind="bucket", name="b", provider_id="b", kept_data=True, storage=("runs",)),
    Leftover(kind="subnet", name="subnet-1", provider_id="subnet-1", kept_data=True),
)  # fmt: skip


@pytest.mark.parametrize("nothing_there", [False, True])
def test_what_is_kept_is_reported_each_time_with_its_price_and_how_to_remove_it(
    removing: Callable[..., Any], nothing_there: bool
) -> None:
    done = removing(DownResult(kept=KEPT, nothing_there=nothing_there), "--yes")
    assert done.exit_code == 0
    assert "file-system fs-1 (scratch)   $1.00/h   $730.00/month" in done.stdout
    assert "bucket b (runs)   price not known" in done.stdout
    assert "1 subnet, which the data depends on" in done.stdout
    assert "gcluster down demo --delete-data scratch --delete-data runs" in done.stdout


def test_the_question_names_the_data_that_will_be_destroyed(
    removing: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    requested: list[str] = []

    def ask(question: str, *, possible: bool) -> bool:
        requested.append(question)
        return possible

    monkeypatch.setattr("gcluster.cli.remove.down.ask", ask)
    going = msgspec.structs.replace(KEPT[1], kept_data=False)
    done = removing(DownResult(kept=(going,)), "--delete-data", "runs", named=("runs",))
    assert requested == ["remove it, and destroy the data of runs for ever?"]
    assert "- bucket b (runs)   data: DESTROYED" in done.stdout


def test_json_is_the_result(removing: Callable[..., Any]) -> None:
    answer = json.loads(
        removing(DownResult(removed={"node": 5}), "--yes", "--format", "json").stdout
    )
    assert answer["removed"] == {"node": 5}
