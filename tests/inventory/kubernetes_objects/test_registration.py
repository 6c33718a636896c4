"""Nodes take no pod before their devices are there, and what brings these runs there before."""

from __future__ import annotations

import msgspec
import pytest

from gcluster.inventory.compile.kubernetes_objects.devices.fabric import network_objects
from gcluster.inventory.compile.kubernetes_objects.devices.gpus import (
    amd_devices,
    amd_values,
    nvidia_values,
)
from gcluster.inventory.compile.kubernetes_objects.registration import (
    awaited,
    nodes,
    registration,
)
from gcluster.schemas.spec import PoolKubernetes
from gcluster.schemas.spec.pool import NodeTaint

from .compiled import facts_of, spec_of


@pytest.mark.parametrize(
    ("case", "pool", "waits"),
    [
        ("campus", "h200", ["nvidia.com/gpu", "rdma/ib"]),
        ("cloud", "train", ["nvidia.com/gpu", "vpc.amazonaws.com/efa"]),
        ("amd", "mi", ["gpu.amd.com", "rdma/ib"]),
        ("local", "gpu", ["nvidia.com/gpu"]),
        ("google", "mega", []),  # GKE taints nodes with GPUs itself
    ],
)
def test_nodes_take_no_pod_before_all_of_their_device_plugins_are_there(
    case: str, pool: str, waits: list[str]
) -> None:
    spec = spec_of(case)
    facts = facts_of(spec)
    assert awaited(facts, pool) == waits
    labels, taints = registration(facts.nodes[pool])
    expected = {f"awaits.gcluster.local/{name.replace('/', '_')}": "true" for name in waits}
    assert {name: labels[name] for name in expected} == expected
    assert [one["key"] for one in taints] == (["gcluster.local/startup"] if waits else [])
    for name, marks in nodes(facts).items():
        own = {label for label in marks["labels"] if label.startswith("awaits.gcluster.local/")}
        there = {host.name for host in facts.compute[pool]}
        assert own == set(expected) or name not in there
        assert all(one["key"] != "gcluster.local/startup" for one in marks["taints"])


def test_gpus_are_cut_before_a_plugin_offers_them_whole() -> None:
    facts = facts_of(spec_of("cloud"))
    labels, _ = registration(facts.nodes["train"])
    assert labels["nvidia.com/mig.config"] == "all-1g.10gb"


def test_what_brings_devices_runs_on_nodes_that_wait_for_them_and_on_tainted_pools() -> None:
    spec = spec_of("campus")
    taint = NodeTaint(key="example.edu/team")
    pools = {
        name: msgspec.structs.replace(pool, kubernetes=PoolKubernetes(taints=[taint]))
        if name == "h200"
        else pool
        for name, pool in spec.pools.items()
    }
    facts = facts_of(msgspec.structs.replace(spec, pools=pools))
    both = {"gcluster.local/startup", "example.edu/team"}
    values = nvidia_values(facts)
    worker = values["node-feature-discovery"]["worker"]
    (policy, *_) = network_objects(facts)
    for pods in (values["daemonsets"], worker, policy["spec"]):
        assert both <= {one["key"] for one in pods["tolerations"]}
    amd = facts_of(spec_of("amd"))
    (config,) = amd_devices(amd)
    assert [one["key"] for one in config["spec"]["draDriver"]["tolerations"]] == [
        "gcluster.local/startup"
    ]
    found = amd_values(amd)["node-feature-discovery"]["worker"]["tolerations"]
    assert {"amd-gpu-unhealthy", "gcluster.local/startup"} <= {one["key"] for one in found}
