"""A real cluster goes live without a node, and repair brings that back: by another machine.

The tests run in order on one cluster of two nodes, of which one is enough.
"""

from __future__ import annotations

import subprocess

import pytest

from .conftest import LiveCluster, until

pytestmark = pytest.mark.local

BROKEN = "systemctl mask --now slurmd && rm /var/lib/gcluster/stamps/slurm.*"


@pytest.fixture(scope="module")
def pair(live: LiveCluster) -> LiveCluster:
    """A cluster of two nodes, up, that goes on with one."""
    live.write_spec(nodes=2)
    text = live.spec.read_text().replace("count: 2", "count: 2, quorum: 1")
    live.spec.write_text(text)
    live.gcluster("up", str(live.spec), "--yes")
    return live


def _machine(live: LiveCluster) -> str:
    name = f"gcluster-{live.name}-gpu002"
    requested = ["podman", "inspect", "--format", "{{.Id}}", name]
    return subprocess.run(requested, check=True, capture_output=True, text=True).stdout.strip()


def _in_queue(live: LiveCluster) -> list[str]:
    return [e["node"] for e in live.json("status", str(live.spec), expect=None)["repairs"]]


def test_a_node_that_can_not_join_waits_and_the_cluster_continues(pair: LiveCluster) -> None:
    pair.on("gpu002", BROKEN)
    result = pair.json("up", str(pair.spec), "--yes")
    assert result["failed_hosts"].keys() == {"gpu002"}
    assert result["verdict"]["verdict"] == "pass"
    assert _in_queue(pair) == ["gpu002"]
    assert "repair queue   1 waiting" in pair.gcluster("plan", str(pair.spec)).stdout
    assert pair.json("drift", str(pair.spec))["drifts"] == []


def test_repair_tries_the_node_then_another_machine_and_that_serves(pair: LiveCluster) -> None:
    before = _machine(pair)
    answer = pair.json("repair", str(pair.spec), "--yes")
    assert answer["admitted"] == ["gpu002"]
    assert answer["queue"] == []
    assert _machine(pair) != before
    state = "sinfo --noheader --Node --nodes=gpu002 --format=%T"
    until(lambda: set(pair.on("head", state).split()) == {"idle"})  # idle* until it is pinged again
    steps = pair.json("history", str(pair.spec))
    assert steps[-1]["command"] == "repair"
    assert _in_queue(pair) == []


def test_afterwards_there_is_nothing_to_do_and_nothing_has_drifted(pair: LiveCluster) -> None:
    assert pair.json("drift", str(pair.spec), "--detailed-exitcode")["drifts"] == []
    pair.gcluster("ledger", "check", str(pair.spec))
    pair.gcluster("plan", str(pair.spec), "--detailed-exitcode")
