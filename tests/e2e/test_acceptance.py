"""An acceptance on real nodes: killed and continued, a busy node, a report that verifies.

The tests run in order and share the pair of nodes of the other files.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .conftest import LiveCluster

pytestmark = pytest.mark.local

OPTIONS = ("--repetitions", "2", "--path", "/tmp", "--mib", "8", "--soak", "10s")  # noqa: S108  # on the nodes
TESTS = {
    *("node", "storage", "fio", "pairs", "soak"),
    *("all_reduce", "all_gather", "reduce_scatter", "alltoall", "sendrecv"),
}
"""What CPUs can do; the others of the table are not tested, for a reason."""


def accept(cluster: LiveCluster, *arguments: str, expect: int) -> Any:
    out = str(cluster.spec.parent / "accepted")
    return cluster.json("acceptance", str(cluster.spec), *arguments, "--out", out, expect=expect)


def results_of(cluster: LiveCluster) -> set[str]:
    """Return the names of the results in the state."""
    folder = cluster.spec.parent / ".gcluster" / cluster.name / "acceptance/000001/results"
    return {path.name for path in folder.glob("*")}


@pytest.fixture(scope="module", autouse=True)
def fio(pair: LiveCluster) -> None:
    """Give the nodes Debian's fio."""
    for node in ("gpu001", "gpu002"):
        pair.on(node, "apt-get update -qq && apt-get install -y -qq --no-install-recommends fio")


def test_a_killed_acceptance_keeps_what_it_has_and_its_job_continues(pair: LiveCluster) -> None:
    command = [str(Path(sys.executable).with_name("gcluster")), "acceptance", str(pair.spec)]
    running = subprocess.Popen(
        [*command, *OPTIONS, "--format", "json"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=pair.environment,
    )
    assert running.stderr is not None
    for line in running.stderr:
        event = json.loads(line)
        if event.get("detail", "").startswith("pairs"):
            running.send_signal(signal.SIGKILL)
            break
    running.wait(timeout=30)
    assert len(results_of(pair)) == 3, "node, storage and fio, over both nodes each"
    pair.gcluster("unlock", str(pair.spec), "--yes", expect=None)


def test_it_continues_only_as_it_was_begun(pair: LiveCluster) -> None:
    output = pair.gcluster("acceptance", str(pair.spec), "--repetitions", "5", expect=64)
    assert "GC1195" in output.stderr


@pytest.mark.acceptance
def test_a_busy_node_leaves_it_incomplete_and_unsigned(pair: LiveCluster) -> None:
    send = "sbatch --parsable --nodelist=gpu002 --exclusive --output=/dev/null --wrap='sleep 600'"
    job = pair.on("head", f"cd /tmp && runuser -u ada -- {send}").strip()
    before = results_of(pair)
    report = accept(pair, *OPTIONS, expect=3)
    assert report["verdict"] == "incomplete"
    assert {test["name"] for test in report["tests"] if test["outcome"] == "missing"} >= {"pairs"}
    assert results_of(pair) > before, "gpu001 alone was measured again"
    assert not (pair.spec.parent / "accepted/report.json.sig").exists()
    pair.on("head", f"scancel {job}; while squeue --noheader | grep -q .; do sleep 1; done")


def test_the_same_command_finishes_it_and_the_report_verifies(pair: LiveCluster) -> None:
    report = accept(pair, *OPTIONS, expect=0)
    assert report["verdict"] == "pass"
    outcomes = {test["name"]: test["outcome"] for test in report["tests"]}
    assert {name for name, outcome in outcomes.items() if outcome == "pass"} == TESTS
    assert set(outcomes.values()) <= {"pass", "not tested"}
    assert report["account"] == "ada"
    assert len(report["simulated"]) == 2
    figures = {m["metric"]: m["summary"] for test in report["tests"] for m in test["metrics"]}
    assert figures["memory_copy"]["count"] == 2
    assert figures["matmul"]["least"] > 0
    assert figures["read_iops"]["count"] == 2
    assert figures["pair_bandwidth"]["count"] == 1
    assert figures["runs"]["least"] >= 1
    folder = pair.spec.parent / "accepted"
    assert subprocess.run(["sh", "verify.sh"], cwd=folder, check=False).returncode == 0
    assert {path.stem for path in (folder / "certificates").iterdir()} == {"gpu001", "gpu002"}
    assert pair.on("head", "ls /var/lib/gcluster/acceptance") == ""


@pytest.mark.acceptance
def test_the_next_one_is_compared_with_it_and_an_exclusion_names_who_answers(
    pair: LiveCluster,
) -> None:
    output = pair.gcluster("acceptance", str(pair.spec), "--exclude", "gpu002", expect=64)
    assert "--reason, --accepted-by" in output.stderr
    out = ("--exclude", "gpu002", "--reason", "cable", "--accepted-by", "B. Ops")
    report = accept(pair, "--test", "node", "--repetitions", "1", *out, expect=0)
    assert (report["number"], report["compared_with"], report["nodes"]) == (2, 1, "gpu001")
    assert report["exclusions"][0]["accepted_by"] == "B. Ops"
    assert [c["verdict"] for c in report["certificates"]] == ["pass", "excluded"]


@pytest.mark.acceptance
def test_a_slurmd_stopped_on_purpose_is_noticed_and_back(pair: LiveCluster) -> None:
    drill = ("--test", "drill_service", "--drill", "gpu001", "--new")
    report = accept(pair, *drill, expect=0)
    (test,) = report["tests"]
    assert list(test["tested"]) == ["gpu001"]
    figures = {m["metric"]: m["summary"]["median"] for m in test["metrics"]}
    assert 0 < figures["noticed"] <= 90, "SlurmdTimeout of local nodes, and a minute"
    assert pair.on("head", "scontrol show reservation").strip() == "No reservations in the system"
    assert pair.on("gpu001", "systemctl is-active slurmd").strip() == "active"
