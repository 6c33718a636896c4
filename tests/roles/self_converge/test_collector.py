"""The collector lists Slurm's waiting nodes, stops where too many failed, and says what fails."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "roles/self_converge/files"))
from self_converge import collector, slurm  # the path comes first

SBATCH = """\
for word; do
  case $word in --priority=*) priority=${word#*=} ;; --nodelist=*) node=${word#*=} ;; esac
done
[ "$priority" -lt 4294967294 ] || { echo "Priority must be < 4294967294" >&2; exit 1; }
echo "$node" >> submitted
"""
"""Refuses what the real one refuses."""


class Controller:
    """A controller whose Slurm is lines of shell in a folder."""

    def __init__(self, folder: Path) -> None:
        """Start with an empty queue and one partition."""
        self.folder = folder
        self.programs = folder / "bin"
        self.programs.mkdir()
        (folder / "reports").mkdir()
        (folder / "converge").mkdir()
        self.has("sinfo", "echo main")
        self.has("squeue", "cat queue 2>/dev/null; true")
        self.has("sbatch", SBATCH)
        self.has("scancel", 'echo "$@" >> cancelled')
        manifest = json.dumps({"serial": 3, "max_failed": 0})
        (folder / "converge/gpu.signed").write_text(json.dumps({"manifest": manifest}))

    def has(self, name: str, script: str) -> None:
        """Install a program."""
        path = self.programs / name
        path.write_text(f"#!/bin/sh\ncd {self.folder}\n{script}\n")
        path.chmod(0o755)

    def answer(self, node: str, state: str, **more: Any) -> None:
        """Have a report of a node."""
        report = {"node": node, "pool": "gpu", "state": state, "serial": 3} | more
        (self.folder / f"reports/{node}.json").write_text(json.dumps(report))

    def lines(self, name: str) -> list[str]:
        """Return what a program has written down."""
        path = self.folder / name
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def controller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Controller:
    made = Controller(tmp_path)
    monkeypatch.setenv("PATH", f"{made.programs}:{os.environ['PATH']}")
    monkeypatch.setattr(collector, "REPORTS", tmp_path / "reports")
    monkeypatch.setattr(collector, "PUBLISHED", tmp_path / "converge")
    monkeypatch.setattr(collector, "SILENT", tmp_path / "reports/collector.silent")
    return made


def test_slurm_is_requested_each_waiting_node_once(controller: Controller) -> None:
    for node in ("gpu001", "gpu002", "gpu003"):
        controller.answer(node, "waiting")
    controller.answer("gpu004", "converged")
    (controller.folder / "queue").write_text("gcluster-update-gpu002 7 PENDING\nsleep 8 RUNNING\n")
    collector.Collector().turn()
    assert controller.lines("submitted") == ["gpu001", "gpu003"]


def test_after_a_failure_what_waits_is_cancelled_and_nothing_more_is_requested(
    controller: Controller,
) -> None:
    controller.answer("gpu001", "failed", drain=True)
    controller.answer("gpu002", "waiting")
    controller.answer("gpu003", "waiting")
    queue = "gcluster-update-gpu002 7 PENDING\ngcluster-update-gpu003 8 RUNNING\n"
    (controller.folder / "queue").write_text(queue)
    collector.Collector().turn()
    assert controller.lines("submitted") == []
    assert controller.lines("cancelled") == ["--state=PENDING 7"]
    assert json.loads((controller.folder / "reports/gpu.stopped").read_text())["failed"] == [
        "gpu001"
    ]


def test_what_slurm_refuses_is_written_down_for_up_and_taken_back_when_it_takes_it(
    controller: Controller,
) -> None:
    controller.answer("gpu001", "waiting")
    controller.has("sbatch", "echo 'sbatch: error: invalid partition' >&2; exit 1")
    with pytest.raises(slurm.Silent, match="invalid partition"):
        collector.Collector().turn()
    answer = collector.emit("", "invalid partition")
    silent = controller.folder / "reports/collector.silent"
    assert json.loads(silent.read_text()) == {"reason": "invalid partition"}
    assert collector.emit(answer, "") == ""
    assert not silent.exists()
