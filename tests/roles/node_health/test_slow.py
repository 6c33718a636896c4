"""A job's word that a node is slow: whose counts, and how long it holds."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from node_health import main as program
from node_health.probe import Probe
from node_health.scheduler.slow import FOLDER, check_slow
from node_health.store import Store
from tests.shell_double import write_double


class Node:
    """gpu002 in a cluster of forty nodes, with Slurm's commands as lines of shell."""

    def __init__(self, folder: Path) -> None:
        """Start with a job of this user on three nodes."""
        self.folder, self.programs = folder, folder / "bin"
        self.programs.mkdir()
        self.reports = folder / FOLDER.lstrip("/")
        self.reports.mkdir(parents=True)
        self.has_job()
        self.has_drained()

    def has_job(self, uid: int | None = None, state: str = "RUNNING", shared: str = "NO") -> None:
        shown = f"{os.getuid() if uid is None else uid} {state} {shared} gpu[001-003]"
        write_double(self.programs / "squeue", f"echo '{shown}'")
        write_double(self.programs / "scontrol", "printf 'gpu001\\ngpu002\\ngpu003\\n'")

    def has_drained(self, *slow: str) -> None:
        lines = []
        for number in range(1, 41):
            name = f"gpu{number:03d}"
            why = "gcluster-health: network-slow: 0.02 GB/s" if name in slow else "none"
            lines.append(f"echo '{name} {why}'")
        write_double(self.programs / "sinfo", "\n".join(lines))

    def leaves(self, name: str = "7", text: str = '{"best": 0.02, "middle": 2.0}') -> None:
        (self.reports / name).write_text(text)

    def findings(self) -> list[tuple[str, str, bool]]:
        store = Store(self.folder / "kept")
        probe = Probe(self.folder, search=str(self.programs))
        return [(f.code, f.message, f.drains) for f in check_slow("gpu002", store, probe)]


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


SLOW = ("network-slow", "0.02 GB/s with its best peer, 2.00 in the middle of job 7", True)


def test_the_word_of_the_job_that_has_the_node_drains_it_and_holds(node: Node) -> None:
    node.leaves()
    assert node.findings() == [SLOW]
    assert list(node.reports.iterdir()) == []
    node.has_job(state="COMPLETED")
    assert node.findings() == [SLOW], "until it is acknowledged"


@pytest.mark.parametrize(
    ("job", "why"),
    [
        ({"uid": 12345}, "it is another user's"),
        ({"state": "COMPLETED"}, "it doesn't run"),
        ({"state": "PENDING", "shared": ""}, "it has no nodes"),
        ({"shared": "OK"}, "it doesn't have this node to itself"),
    ],
)
def test_the_word_of_others_is_noted_and_drains_nothing(
    node: Node, job: dict[str, str], why: str
) -> None:
    node.has_job(**job)  # type: ignore[arg-type]
    node.leaves()
    assert node.findings() == [("network-slow-not-believed", f"job 7: {why}", False)]
    assert node.findings() == []
    assert list(node.reports.iterdir()) == []


def test_a_word_that_is_acknowledged_holds_no_longer(
    look: Callable[..., dict[str, Any]], arguments: list[str], tmp_path: Path
) -> None:
    Store(tmp_path / "state").write("slow", {"job": "7", "best": 0.02, "middle": 2.0})
    assert look()["reason"] == f"{SLOW[0]}: {SLOW[1]}"
    assert program.main([*arguments, "acknowledge", "slow"]) == 0
    assert look()["reason"] == ""


def test_few_nodes_are_out_by_such_words_at_once(node: Node) -> None:
    node.has_drained("gpu011")
    node.leaves()
    assert node.findings() == [SLOW]


def test_more_are_a_matter_of_the_network_or_of_a_user_who_lies(node: Node) -> None:
    node.has_drained("gpu011", "gpu012")
    node.leaves()
    why = "job 7: 2 of 40 nodes are out as slow already"
    assert node.findings() == [("network-slow-not-believed", why, False)]


def test_without_a_controller_no_word_counts(node: Node) -> None:
    write_double(node.programs / "squeue", "echo 'Unable to contact slurm controller'; exit 1")
    node.leaves()
    (found,) = node.findings()
    assert found[0] == "network-slow-not-believed"
    assert found[1].endswith("Unable to contact slurm controller")


def test_what_is_no_report_is_removed_and_no_link_is_followed(node: Node, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(json.dumps({"best": 1, "middle": 9}))
    node.leaves("9", "no JSON")
    node.leaves("words")
    (node.reports / "8").symlink_to(secret)
    (node.reports / "10").mkdir()
    (node.reports / "10" / "file").touch()
    os.mkfifo(node.reports / "11")
    assert node.findings() == []
    assert list(node.reports.iterdir()) == []
    assert secret.exists()
