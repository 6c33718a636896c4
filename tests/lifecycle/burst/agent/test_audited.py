"""What the agent does is in the audit trail as what `up` does: in the file and in the history."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.lifecycle.burst.agent.harness import Harness

from gcluster.lifecycle.cluster.cluster import Cluster, open_cluster
from gcluster.lifecycle.nodes.ssh import SshSession
from gcluster.lifecycle.operations.burst.agent import run
from gcluster.lifecycle.state.audit.history import history
from gcluster.lifecycle.state.audit.trail import audit_lines


@pytest.fixture
def harness(own_places: Path, monkeypatch: pytest.MonkeyPatch) -> Harness:
    """Give a cluster that is up, whose scheduler is the double."""
    harness = Harness(own_places / "harness")
    harness.cluster().keep_spec()

    def scheduler_of(_: Cluster, __: SshSession) -> object:
        return harness.controller

    monkeypatch.setattr(run, "scheduler_of", scheduler_of)
    return harness


def _round(harness: Harness) -> None:
    run.run_agent(str(harness.spec), once=True, interval_s=1, say=harness.events.append)


def test_each_step_of_rented_nodes_is_a_line_of_the_file_and_of_the_history(
    harness: Harness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "audit.jsonl"
    monkeypatch.setenv("GCLUSTER_AUDIT", str(file))
    harness.submit("a", partition="spill", run_s=1e6)
    harness.controller.observe()
    _round(harness)
    cluster = open_cluster(str(harness.spec))
    written: list[dict[str, Any]] = [json.loads(line) for line in file.read_text().splitlines()]
    kept = [json.loads(line) for line in audit_lines(cluster)]
    assert kept[0]["what"] == "SpecStored"  # before the round
    assert written == kept[1:]
    assert {line["command"] for line in written} == {"burst agent"}
    assert all("@" in line["who"] for line in written)
    steps = [line["data"] for line in written if line["what"] == "BurstStepped"]
    assert [(step["step"], step["nodes"]) for step in steps][:2] == [
        ("requested", "spill001"), ("made", "spill001"),
    ]  # fmt: skip
    assert (written[0]["what"], written[-1]["result"]) == ("RunStarted", "ok")
    assert [(each.command, each.outcome) for each in history(cluster)] == [("burst agent", "ok")]
