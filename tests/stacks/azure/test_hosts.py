"""Machines read back from Azure: names, addresses, keys, and the way to them."""

from __future__ import annotations

import pytest

from gcluster.schemas.catalog import load_catalog
from gcluster.stacks.azure.hosts import Node, host_keys, nodes, read_keys, seen
from gcluster.stacks.azure.plan.layout import site_plan
from gcluster.stacks.azure.scale_sets import ScaleSets
from gcluster.stacks.provider import ProviderError
from gcluster.stacks.pulumi.hosts import to_hosts

from .azure_double import GROUP, SETS, AzureDouble
from .recorded_cases import spec_of

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHmRn4kLqrT2jXg0o9cYbqkZ0WzT8hYp3vVd5s1nC7eQ"
PLAN = site_plan(spec_of("Standard_ND96isr_H100_v5"), "east", load_catalog())
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


def test_machines_have_the_names_of_the_table_and_their_own_addresses(azure: AzureDouble) -> None:
    assert [(n.host, n.address, n.vm_id) for n in found(azure)] == [
        ("head", "10.60.192.4", "vm-head"),
        ("train001", "10.60.0.4", "vm-research-east-train1a2b3c4d-0"),
        ("train002", "10.60.0.6", "vm-research-east-train1a2b3c4d-2"),
    ]


def head_of(azure: AzureDouble) -> Node:
    return next(node for node in found(azure) if node.host == "head")


def test_keys_are_read_through_azure(azure: AzureDouble) -> None:
    assert host_keys(azure.api(), head_of(azure)) == (f"{KEY}b",)
    azure.scripts[HEAD] = ""
    assert host_keys(azure.api(), head_of(azure)) == ()


def test_an_agent_that_takes_no_command_yet_is_no_error(azure: AzureDouble) -> None:
    api, head = azure.api(), head_of(azure)
    for status, code in ((409, "Conflict"), (400, "VMAgentStatusCommunicationError")):
        azure.refuse_commands = (status, code)
        assert host_keys(api, head) == ()
    azure.refuse_commands = (403, "AuthorizationFailed")
    with pytest.raises(ProviderError):
        host_keys(api, head)


def test_decoration_and_errors_of_run_command_are_no_keys() -> None:
    message = f"Enable succeeded: \n[stdout]\n{KEY} root@n\n\n[stderr]\n{KEY}X from an error\n"
    assert read_keys(message) == (KEY,)
    assert read_keys("Enable failed: command timed out") == ()


def test_nodes_are_reached_through_the_controller_and_pinned(
    azure: AzureDouble,
) -> None:
    machines = found(azure)
    keys = {node.vm_id: host_keys(azure.api(), node) for node in machines}
    head, first, _ = to_hosts(
        PLAN, [seen(PLAN, n) for n in machines], keys, key_file="/k", via=None
    )
    assert head.ssh.bastion is None
    assert first.ssh.bastion == "azureuser@10.60.192.4"
    assert first.ssh.host_keys == (f"{KEY}0",)
    assert (head.placement.block, first.placement.block) == (None, "train")


def test_a_public_address_is_the_way_in() -> None:
    door = Node(host="head", pool="head", id="", vm_id="h", address="10.0.0.4",
                public_address="203.0.113.9")  # fmt: skip
    node = Node(host="train001", pool="train", id="", vm_id="t", address="10.0.0.5", part="train")
    keys = {"h": (KEY,), "t": (f"{KEY}0",)}
    there = [seen(PLAN, door), seen(PLAN, node)]
    head, first = to_hosts(PLAN, there, keys, key_file="/k", via=None)
    assert head.ssh.bastion_host_keys == first.ssh.bastion_host_keys == (KEY,)
    assert head.address == "10.0.0.4", "nodes know each other by private addresses"
    assert head.ssh.bastion == first.ssh.bastion == "azureuser@203.0.113.9"
