"""A node joins the GPFS cluster that owns its file systems; recordings answer for GPFS."""

from __future__ import annotations

from typing import Any

import pytest
from recorded_machine import Machine

ASKED: dict[str, Any] = {
    "cluster": "storage.example.edu", "contacts": [], "node": "node01",
    "settings": {"autoload": "yes", "pagepool": "17179869184"},
    "mounts": [{"filesystem": "fs1", "path": "/gpfs/fs1"}],
}  # fmt: skip


@pytest.fixture
def node(machine: Machine) -> Machine:
    """Return a node whose own tools are well."""
    machine.play("gpfs_client", "good")
    machine.tool("systemctl", "")
    machine.tool("stat", "")
    return machine


@pytest.mark.parametrize(
    ("case", "answer"),
    [
        ("other-cluster", "the node is in old.example.edu"),
        ("arbitrating", "GPFS is arbitrating here"),
        ("not-mounted", "/gpfs/fs1 is not mounted"),
        ("small-pagepool", "GPFS runs with pagepool 1073741824"),
    ],
)
def test_verify_names_what_is_wrong_with_a_recorded_machine(
    node: Machine, case: str, answer: str
) -> None:
    requested = {**ASKED, "state": "verified"}
    assert not node.call("gpfs_client", requested)["failed"]
    node.play("gpfs_client", case)
    assert answer in node.call("gpfs_client", requested)["msg"]


def test_check_mode_reports_what_would_change_and_queries_nothing(node: Machine) -> None:
    assert node.call("gpfs_client", ASKED, check=True)["changes"] == []
    node.play("gpfs_client", "not-joined")
    node.tool("ssh", f"touch {node.root}/asked")
    would = node.call("gpfs_client", {**ASKED, "contacts": ["nsd01"]}, check=True)
    assert "in the cluster storage.example.edu" in would["changes"]
    assert not (node.root / "asked").exists()
    refused = node.call("gpfs_client", ASKED)
    assert "mmaddnode -N node01 --accept" in refused["msg"]
