"""Machines read back from Azure: names, addresses, keys, and the way to them."""

from __future__ import annotations

from pathlib import Path

import pytest

from gcluster.schemas.catalog import load_catalog
from gcluster.stacks.azure.hosts import Node, host_keys, nodes, read_keys, to_hosts
from gcluster.stacks.azure.plan.layout import layout
from gcluster.stacks.azure.scale_sets import ScaleSets

from .azure_double import GROUP, SETS, AzureDouble
from .recorded_cases import spec_of

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHmRn4kLqrT2jXg0o9cYbqkZ0WzT8hYp3vVd5s1nC7eQ"
PLAN = layout(spec_of("Standard_ND96isr_H100_v5"), "east", load_catalog())
SET = f"{SETS}/research-east-train1a2b3c4d"
HEAD = f"{GROUP}/providers/Microsoft.Compute/virtualMachines/research-east-head5e6f7a8b"


@pytest.fixture
def azure() -> AzureDouble:
    double = AzureDouble()
    double.scale_set("train", 3, **{"gcluster-names-0": "train001:0 train002:2"})
    double.more = [
        {
            "id": HEAD,
            "name": "research-east-head5e6f7a8b",
            "type": "Microsoft.Compute/virtualMachines",
            "tags": {
                "gcluster-cluster": "research", "gcluster-site": "east",
                "gcluster-pool": "head", "gcluster-host": "head",
            },
        }
    ]  # fmt: skip
    double.answers = {
        f"{SET}/networkInterfaces": "set_interfaces.json",
        HEAD: "head.json",
        f"{GROUP}/providers/Microsoft.Network/networkInterfaces/head": "head_interface.json",
    }
    for machine in (HEAD, *(f"{SET}/virtualMachines/{n}" for n in range(3))):
        double.scripts[machine] = f"{KEY}{machine[-1]} root@node\n"
    return double


def found(azure: AzureDouble) -> tuple[Node, ...]:
    api = azure.api()
    return nodes(api, ScaleSets(api, "research", "east"), PLAN)


def test_machines_have_the_names_of_the_book_and_their_own_addresses(azure: AzureDouble) -> None:
    assert [(n.host, n.address, n.vm_id) for n in found(azure)] == [
        ("head", "10.60.192.4", "vm-head"),
        ("train001", "10.60.0.4", "vm-research-east-train1a2b3c4d-0"),
        ("train002", "10.60.0.6", "vm-research-east-train1a2b3c4d-2"),
    ]


def test_keys_are_read_through_azure_once_for_each_machine(
    azure: AzureDouble, tmp_path: Path
) -> None:
    api, cache = azure.api(), tmp_path / "keys.json"
    machines = found(azure)
    keys = host_keys(api, machines, cache)
    assert keys["vm-head"] == (f"{KEY}b",)
    assert len([a for a in azure.asked if a.endswith("/runCommand")]) == 3
    assert host_keys(api, machines, cache) == keys
    assert len([a for a in azure.asked if a.endswith("/runCommand")]) == 3


def test_a_machine_that_is_silent_is_asked_again(azure: AzureDouble, tmp_path: Path) -> None:
    azure.scripts[HEAD] = ""
    assert "vm-head" not in host_keys(azure.api(), found(azure), tmp_path / "keys.json")
    azure.scripts[HEAD] = f"{KEY} x\n"
    assert host_keys(azure.api(), found(azure), tmp_path / "keys.json")["vm-head"] == (KEY,)


def test_decoration_and_errors_of_run_command_are_no_keys() -> None:
    message = f"Enable succeeded: \n[stdout]\n{KEY} root@n\n\n[stderr]\n{KEY}X from an error\n"
    assert read_keys(message) == (KEY,)
    assert read_keys("Enable failed: command timed out") == ()


def test_nodes_are_reached_through_the_controller_and_pinned(
    azure: AzureDouble, tmp_path: Path
) -> None:
    machines = found(azure)
    keys = host_keys(azure.api(), machines, tmp_path / "keys.json")
    head, first, _ = to_hosts(PLAN, machines, keys, key_file="/k", via=None)
    assert head.ssh.bastion is None
    assert first.ssh.bastion == "azureuser@10.60.192.4"
    assert first.ssh.host_keys == (f"{KEY}0",)
    assert (head.placement.block, first.placement.block) == (None, "train")


def test_a_public_address_is_the_way_in() -> None:
    door = Node(host="head", pool="head", id="", vm_id="h", address="10.0.0.4",
                public_address="203.0.113.9")  # fmt: skip
    node = Node(host="train001", pool="train", id="", vm_id="t", address="10.0.0.5", part="train")
    keys = {"h": (KEY,), "t": (f"{KEY}0",)}
    head, first = to_hosts(PLAN, (door, node), keys, key_file="/k", via=None)
    assert head.ssh.bastion_host_keys == first.ssh.bastion_host_keys == (KEY,)
    assert head.address == "10.0.0.4", "nodes know each other by private addresses"
    assert head.ssh.bastion == first.ssh.bastion == "azureuser@203.0.113.9"
