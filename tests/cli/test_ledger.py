"""`gcluster ledger check`: leftovers as text and as JSON, and their exit code."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gcluster.stacks.provider import Leftover
from gcluster.stacks.simulated.provider import SimulatedProvider

Run = Callable[..., Any]

LEFT = (
    Leftover(kind="node", name="gpu009", provider_id="i-9", usd_per_hour=98.32),
    Leftover(kind="address", name="nat", provider_id="eip-1"),
)


@pytest.fixture
def made(run: Run, spec: Path) -> str:
    """Bring the simulated cluster up; return its spec."""
    assert run("up", str(spec), "--yes").exit_code == 0
    return str(spec)


def test_a_clean_cluster_reports_how_much_was_checked(run: Run, made: str) -> None:
    done = run("ledger", "check", made)
    assert done.exit_code == 0
    assert done.stdout == "demo: 5 things with its tag, none of it left over\n"


def test_leftovers_have_their_price_and_the_way_out(
    run: Run, made: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SimulatedProvider, "sweep", lambda *_: LEFT)
    done = run("ledger", "check", made)
    assert done.exit_code == 5
    first, machine, _, address, _, *way = done.stdout.splitlines()
    assert first == (
        "demo: 2 leftovers of 2 things with its tag, $98.32/h and more: prices are unknown"
    )
    assert machine == "  ! node gpu009   $98.32/h   site lab: i-9"
    assert address == "  ! address nat   price unknown   site lab: eip-1"
    assert any("gcluster down demo" in line for line in way)


def test_json_has_each_leftover_as_a_value(
    run: Run, made: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SimulatedProvider, "sweep", lambda *_: LEFT)
    done = run("ledger", "check", made, "--format", "json")
    answer = json.loads(done.stdout)
    assert done.exit_code == 5
    assert [left["item"]["provider_id"] for left in answer["leftovers"]] == ["i-9", "eip-1"]
    assert (answer["usd_per_hour"], answer["known_usd_per_hour"]) == (None, 98.32)
