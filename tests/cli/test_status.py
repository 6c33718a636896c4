"""`gcluster status`: the exit code says whether all is well. The status comes from a double."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from gcluster.lifecycle.status.conditions import ClusterStatus, Condition


@pytest.fixture
def looking(run: Callable[..., Any], put_doubles: Callable[..., None]) -> Callable[..., Any]:
    """Run the verb on a double that sees one condition."""

    def invoke(condition: Condition, *words: str) -> Any:
        status = ClusterStatus(
            cluster="demo", conditions=(condition,), nodes=(), queue=None, certificate=None
        )
        put_doubles(
            "cluster.cluster", open_cluster=lambda target, *, running: target if running else None
        )
        put_doubles("status.health", read_status=lambda _cluster: status)
        return run("status", "demo", *words)

    return invoke


def test_a_healthy_cluster_is_exit_code_0(looking: Callable[..., Any]) -> None:
    done = looking(Condition(name="NodesReady", status="true", reason="5/5"))
    assert done.exit_code == 0
    assert "✔ NodesReady" in done.stdout


@pytest.mark.parametrize("status", ["false", "unknown"])
def test_a_condition_that_does_not_hold_is_exit_code_1(
    looking: Callable[..., Any], status: Any
) -> None:
    assert looking(Condition(name="NodesReady", status=status)).exit_code == 1


def test_json_is_the_status(looking: Callable[..., Any]) -> None:
    done = looking(Condition(name="NodesReady", status="false", reason="x"), "--format", "json")
    assert done.exit_code == 1
    assert json.loads(done.stdout)["conditions"][0]["reason"] == "x"
