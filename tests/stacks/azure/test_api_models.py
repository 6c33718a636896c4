"""Every input of every site on Azure is one that models of its interfaces take.

Each resource of each example and case, with ids of the real form, is held to the models that
`tests.azure_double.models` names: those of Microsoft's REST specifications for all services, and
those of Azure's own SDK for compute too.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.azure_double.cloud import AzureCloud
from tests.azure_double.models import complaints, limits, paths
from tests.pulumi_double.clouds import InventedCloud
from tests.pulumi_double.replay import Made, replay
from tests.pulumi_double.sites import cloud_sites

from gcluster.schemas.spec import ClusterSpec
from gcluster.stacks.pulumi.recording.graph import RecordedGraph

from .recorded_cases import CASES, FULL, parsed, recorded
from .test_control_plane import AKS, THREE

Json = dict[str, Any]  # a provider's JSON
SLURM = (CASES / f"specs/{FULL}.yaml").read_text(encoding="utf-8")
BLOBS = "azure-native:storage:BlobServiceProperties"
GRAPHS: dict[str, Callable[[], RecordedGraph]] = {
    **{site.id: site.recorded for site in cloud_sites() if site.cloud == "azure"},
    "longest names of aks": lambda: recorded(longest(AKS)),
    "longest names of three controllers": lambda: recorded(longest(THREE)),
    "longest names of slurm": lambda: recorded(longest(SLURM)),
}


def longest(text: str) -> ClusterSpec:
    """Return a spec with a cluster, a site and a pool whose names are as long as they may be."""
    for name in ("demo", "research", "here", "east", "train"):
        text = re.sub(rf"(?<![/\w]){name}(?=[:,}}\n])", f"{name:n<32}", text)
    return parsed(text)


def made(graph: RecordedGraph, folder: Path) -> list[Made]:
    return [
        one for one in replay(graph, InventedCloud(folder / "cloud.json"))
        if one.resource.type.startswith("azure-native:")
    ]  # fmt: skip


@pytest.mark.parametrize("name", GRAPHS)
def test_azure_takes_every_input(name: str, tmp_path: Path) -> None:
    """Names too, as the provider makes them of ours."""
    provider = AzureCloud("", "")
    found = [
        f"{one.resource.name}: {answer}"
        for one in made(GRAPHS[name](), tmp_path)
        for answer in complaints(one.resource.type, named(provider, one))
    ]
    assert found == []


def named(provider: AzureCloud, one: Made) -> Json:
    inputs = provider.checked(one.resource.urn, one.inputs, None)
    return {key: item for key, item in inputs.items() if key != "azureApiVersion"}


_FREE = ("tags", "notifications")
"""Members whose keys are the user's own."""


def _leaves(value: Any) -> list[tuple[Any, Any]]:
    """Return (holder, key) of every member of a body, at any depth."""
    if isinstance(value, list):
        return [leaf for item in value for leaf in _leaves(item)]
    if not isinstance(value, dict):
        return []
    inside = [leaf for key, item in value.items() if key not in _FREE for leaf in _leaves(item)]
    return [(value, key) for key in value] + inside


def test_each_member_that_is_renamed_is_seen(tmp_path: Path) -> None:
    unseen = []
    for one in made(GRAPHS["azure-Standard_ND96isr_H100_v5-east"](), tmp_path):
        for holder, key in _leaves(one.inputs):
            holder[f"{key}x"] = holder.pop(key)
            if not list(complaints(one.resource.type, one.inputs)):
                unseen.append(f"{one.resource.name}: {key}")
            holder[key] = holder.pop(f"{key}x")
    assert unseen == []


def test_an_input_that_no_model_has_is_seen() -> None:
    rule = {
        "name": "ssh", "priority": "100", "direction": "Inward", "access": "Allow",
        "protocol": "Tcp", "sourceAddressPrefixes": "10.0.0.0/8", "shade": "blue",
    }  # fmt: skip
    given = {"location": 7, "tags": {"a": 1}, "securityRules": [rule]}
    answer = complaints("azure-native:network:NetworkSecurityGroup", given)
    assert [result.partition(" is none of")[0] for result in answer] == [
        "NetworkSecurityGroup.location: 7 is no str",
        "NetworkSecurityGroup.tags: 1 is no str",
        "NetworkSecurityGroup.securityRules.priority: '100' is no int",
        "NetworkSecurityGroup.securityRules.direction: Inward",
        "NetworkSecurityGroup.securityRules.sourceAddressPrefixes: a list is wanted",
        "NetworkSecurityGroup.securityRules.shade: SecurityRuleArgs has no such member",
        "NetworkSecurityGroup: NetworkSecurityGroupInitArgs requires resourceGroupName",
        "network.NetworkSecurityGroup.securityRules.priority: '100' is not from 100 to 4096",
    ]


def test_what_is_out_of_its_range_or_not_of_its_pattern_is_seen() -> None:
    rule = {
        "name": "-ssh", "priority": 99, "direction": "Inbound", "access": "Allow", "protocol": "*",
    }  # fmt: skip
    group = {"resourceGroupName": "g", "networkSecurityGroupName": "n", "securityRules": [rule]}
    told = [*complaints("azure-native:network:NetworkSecurityGroup", group)]
    assert [answer.partition(": ")[2].partition(" of ")[0] for answer in told] == [
        "'-ssh' is not", "99 is not from 100 to 4096",
    ]  # fmt: skip
    service = {
        "resourceGroupName": "g", "accountName": "a-b", "blobServicesName": "default",
        "deleteRetentionPolicy": {"enabled": True, "days": 400},
    }  # fmt: skip
    assert [s.partition(":")[0] for s in complaints(BLOBS, service)] == [
        "storage.BlobServiceProperties.accountName",
        "storage.BlobServiceProperties.deleteRetentionPolicy.days",
    ]


def test_every_limit_is_of_something_that_is_sent(tmp_path: Path) -> None:
    provider, sent = AzureCloud("", ""), set[str]()
    for number, graph in enumerate(GRAPHS.values()):
        (tmp_path / str(number)).mkdir()
        for one in made(graph(), tmp_path / str(number)):
            module, kind = one.resource.type.split(":")[1:]
            sent |= {path for path, _ in paths(f"{module}.{kind}", named(provider, one))}
    assert limits().keys() <= sent


def test_compute_is_held_to_its_sdk_too() -> None:
    given = {
        "resourceGroupName": "g", "diskName": "d", "location": "eastus",
        "creationData": {"createOption": "Emptied"},
    }  # fmt: skip
    answer = complaints("azure-native:compute:Disk", given)
    assert [result.partition(":")[0] for result in answer] == [
        "Disk.creationData.createOption", "SDK Disk.creationData.createOption",
    ]  # fmt: skip
