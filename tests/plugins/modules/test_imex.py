"""IMEX runs with its domain's nodes, and is ready when it has met them."""

from __future__ import annotations

import os

import pytest
from recorded_machine import Machine

NODES = "etc/nvidia-imex/nodes_config.cfg"


@pytest.fixture
def node(machine: Machine) -> Machine:
    """Return a node with a channel, whose daemon was started at 1000 with a list of then."""
    machine.file("dev/nvidia-caps-imex-channels/channel0")
    machine.file(NODES, "10.0.0.1\n10.0.0.2\n")
    os.utime(machine.root / NODES, (900, 900))
    machine.tool(
        "systemctl",
        f'echo "$*" >>{machine.root}/calls\n[ $1 != show ] || echo ActiveEnterTimestamp=@1000',
    )
    machine.tool("nvidia-imex-ctl", f"cat {machine.root}/said")
    machine.file("said", "READY\n")
    return machine


def test_a_ready_domain_passes_and_nothing_is_due(node: Machine) -> None:
    assert node.call("imex", {})["changes"] == []
    assert node.call("imex", {"state": "verified"})["failed"] is False


def test_a_newer_list_restarts_it_but_not_under_a_job(node: Machine) -> None:
    os.utime(node.root / NODES, (1100, 1100))
    wrong = node.call("imex", {"state": "verified"})
    assert wrong["differences"] == ["nvidia-imex was started with another list of nodes"]
    node.tool("pgrep", "echo '10 slurmstepd: [7.batch]'")
    refused = node.call("imex", {})
    assert refused["msg"] == "a job runs here: not changed: nvidia-imex knows its nodes"
    node.tool("pgrep", "exit 1")
    assert node.call("imex", {})["changes"] == ["nvidia-imex knows its nodes"]
    assert "restart nvidia-imex" in (node.root / "calls").read_text()


def test_a_domain_whose_other_nodes_are_away_is_not_ready(node: Machine) -> None:
    node.file("said", "WAITING_FOR_PEERS\n")
    wrong = node.call("imex", {"state": "verified", "seconds": 0})
    assert wrong["differences"] == [
        "the NVLink domain of 2 nodes isn't ready: IMEX says WAITING_FOR_PEERS"
    ]


def test_a_driver_without_channels_is_named(node: Machine) -> None:
    (node.root / "dev/nvidia-caps-imex-channels/channel0").unlink()
    node.file("proc/devices", "Character devices:\n195 nvidia\n")
    assert "the driver has no IMEX channels" in node.call("imex", {})["msg"]
