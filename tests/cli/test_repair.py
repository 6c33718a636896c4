"""`gcluster repair`, and the queue as `plan` and `status` show it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]

FAILING = "sites: {lab: {provider: simulated, faults: {seed: 5, boot_failure_rate: 0.6}}}"


@pytest.fixture
def short(run: Run, spec: Path) -> str:
    """Bring a cluster up of which some nodes never boot; return its spec."""
    text = spec.read_text(encoding="utf-8").replace("sites: {lab: {provider: simulated}}", FAILING)
    spec.write_text(text.replace("count: 4", "count: 8, quorum: 1"), encoding="utf-8")
    assert run("up", str(spec), "--yes").exit_code == 0
    return str(spec)


def _queue(run: Run, spec: str) -> list[dict[str, Any]]:
    answer: dict[str, Any] = json.loads(run("status", spec, "--format", "json").stdout)
    repairs: list[dict[str, Any]] = answer["repairs"]
    return repairs


def test_status_and_plan_show_who_waits_and_what_to_do(run: Run, short: str) -> None:
    waiting = [entry["node"] for entry in _queue(run, short)]
    assert waiting
    for verb in ("status", "plan"):
        output = run(verb, short).stdout
        assert f"repair queue   {len(waiting)} waiting" in output
        assert "work on them with: gcluster repair demo" in output
        assert all(f"  · {node}  " in output for node in waiting)


def test_the_comment_of_a_plan_has_the_queue_and_no_times(run: Run, short: str) -> None:
    comments = {run("plan", short, "--format", "markdown").stdout for _ in range(2)}
    (comment,) = comments
    assert "repair queue" in comment


def test_repair_ends_with_who_serves_and_who_was_given_up(run: Run, short: str) -> None:
    waiting = {entry["node"] for entry in _queue(run, short)}
    done = run("repair", short, "--yes", "--format", "json")
    answer = json.loads(done.stdout)
    assert set(answer["admitted"]) | answer["given_up"].keys() == waiting
    assert done.exit_code == (1 if answer["given_up"] else 0)
    assert {e["node"] for e in _queue(run, short)} == answer["given_up"].keys()


def test_without_a_confirmation_nothing_is_tried(run: Run, short: str) -> None:
    before = _queue(run, short)
    assert run("repair", short).exit_code == 4
    assert _queue(run, short) == before


def test_an_empty_queue_has_nothing_to_do(run: Run, spec: Path) -> None:
    assert run("up", str(spec), "--yes").exit_code == 0
    done = run("repair", str(spec))
    assert done.exit_code == 0
    assert done.stdout == "demo: the repair queue has nothing that waits\n"
    assert "repair queue" not in run("status", str(spec)).stdout
