"""Slow resources get more time than their providers give them by themselves."""

from __future__ import annotations

import importlib
from pathlib import Path

import pulumi
import pulumi_aws as aws
import pytest
from tests.stacks.recorded_graph import Graph

from gcluster.stacks.pulumi.component import slow_kinds, wait_for_slow_kinds
from gcluster.stacks.pulumi.recording.graph import RecordedGraph, Timeouts, from_json
from gcluster.stacks.pulumi.recording.record import record

_CASES = Path(__file__).parents[2] / "cases" / "stacks"
_SDKS = {
    "aws": "pulumi_aws", "azure": "pulumi_azure_native", "gcp": "pulumi_gcp", "oci": "pulumi_oci",
}  # fmt: skip


def golden(cloud: str) -> RecordedGraph:
    return from_json((_CASES / cloud / "graph.json").read_bytes())


@pytest.mark.parametrize("cloud", _SDKS)
def test_every_slow_kind_is_one_of_the_sdk(cloud: str) -> None:
    for token in slow_kinds(cloud):
        _, module, name = token.split(":")
        sdk = importlib.import_module(f"{_SDKS[cloud]}.{module.partition('/')[0].lower()}")
        assert getattr(sdk, name).pulumi_type == token


@pytest.mark.parametrize(
    ("cloud", "kinds"),
    [
        ("aws", {"Instance", "LustreFileSystem", "DataRepositoryAssociation"}),
        ("azure", {"VirtualMachineScaleSet", "AmlFilesystem"}),
        ("gcp", {"Instance"}),
        (
            "oci",
            {
                "ClusterNetwork",
                "FileStorageLustreFileSystem",
                "FileStorageObjectStorageLink",
                "Instance",
            },
        ),
    ],
)
def test_what_a_site_makes_of_slow_kinds_has_their_time(cloud: str, kinds: set[str]) -> None:
    found = set()
    for resource in golden(cloud).resources:
        slow = slow_kinds(cloud).get(resource.type)
        wanted = Timeouts()
        if slow is not None:
            found.add(resource.type.rpartition(":")[2])
            wanted = Timeouts(
                create=slow.create or "", update=slow.update or "", delete=slow.delete or ""
            )
        assert resource.options.timeouts == wanted
    assert found == kinds


def test_a_resource_that_has_its_own_times_keeps_them() -> None:
    def run() -> None:
        wait_for_slow_kinds("aws")
        own = pulumi.ResourceOptions(custom_timeouts=pulumi.CustomTimeouts(create="5m"))
        aws.ec2.Instance("own", opts=own)
        aws.ec2.Instance("other", opts=pulumi.ResourceOptions(retain_on_delete=True))

    graph = Graph(record(run, project="p", stack="s"))
    own, other = (graph.named(name) for name in ("own", "other"))
    assert own.options.timeouts == Timeouts(create="5m")
    assert other.options.timeouts.create == "30m"
    assert other.options.retain_on_delete
