"""InfiniBand and RoCE under Kubernetes against the examples that NVIDIA publishes, field by field.

The examples are those of the catalog's release of the Network Operator. What they have and we
don't is listed with its reason, and so is each field that is another.
"""

from __future__ import annotations

import json
from typing import Any

import yaml

from gcluster.inventory.compile.kubernetes_objects.devices.fabric import network_objects
from gcluster.inventory.compile.kubernetes_objects.devices.gpus import nvidia_values
from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.load import load_text

from .compiled import CASES, facts_of, of_kind, spec_of
from .test_nvlink import leaves

VERSION = load_catalog().addons["network-operator"].version
PUBLISHED = CASES / "published" / f"network-operator-{VERSION}.yaml"
NOT_SET_UP = {
    "ofedDriver": "role ofed brings the drivers",
    "ibKubernetes": "pods share InfiniBand's adapters, and have no partition keys of their own",
    "nicFeatureDiscovery": "pools say what adapters their nodes have",
    "docaTelemetryService": "node_exporter reads the adapters' counters",
    "nicConfigurationOperator": "roles infiniband, roce and firmware set adapters up",
    "secondaryNetwork.ipoib": "InfiniBand's pods get devices, and no interface",
}
"""Components of the full example -> why we have none."""


def published(kind: str, name: str = "") -> dict[str, Any]:
    """Return what is written down of an example of a kind."""
    settings = yaml.safe_load(PUBLISHED.read_text(encoding="utf-8"))["settings"]
    found: list[dict[str, Any]] = [
        one for one in settings if one["kind"] == kind and one["metadata"]["name"].startswith(name)
    ]
    (example,) = found
    return example


def ours(case: str, kind: str) -> dict[str, Any]:
    """Return the first object of a kind, its texts of JSON read and what is empty left out."""
    made: dict[str, Any] = _read(of_kind(case, kind)[0])
    del made["metadata"]["labels"]
    return made


def _read(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _read(one) for k, one in value.items() if one != []}
    return json.loads(value) if isinstance(value, str) and value.startswith("{") else value


def differences(case: str, kind: str, given_up: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return dotted path -> (theirs, ours) of what differs; None: it is not there."""
    theirs, made = leaves(published(kind)), leaves(ours(case, kind))
    paths = [p for p in sorted({*theirs, *made}) if not p.startswith(given_up or ("-",))]
    return {p: (theirs.get(p), made.get(p)) for p in paths if theirs.get(p) != made.get(p)}


def test_each_component_of_nvidias_policy_is_ours_or_has_its_reason() -> None:
    theirs = published("NicClusterPolicy")["spec"]
    known = {
        *theirs.keys() - {"secondaryNetwork"},
        *(f"secondaryNetwork.{n}" for n in theirs["secondaryNetwork"]),
    }
    made: set[str] = set()
    for case in ("roce", "racks"):
        spec = ours(case, "NicClusterPolicy")["spec"]
        made |= spec.keys() - {"secondaryNetwork", "tolerations"}
        made |= {f"secondaryNetwork.{name}" for name in spec.get("secondaryNetwork", {})}
    assert known - made == NOT_SET_UP.keys()
    assert made <= known


def test_the_policy_of_roce_differs_in_what_names_its_rails() -> None:
    gone = tuple(f"spec.{name}" for name in (*NOT_SET_UP, "rdmaSharedDevicePlugin"))
    of_rails = "spec.sriovDevicePlugin.config.resourceList"
    found = differences("roce", "NicClusterPolicy", gone)
    first = {
        p: one
        for p, one in found.items()
        if not p.startswith(tuple(f"{of_rails}.{n}" for n in (1, 2, 3)))
    }
    assert first == {
        f"{of_rails}.0.resourceName": ("hostdev", "gpu_rail_0"),
        # theirs takes every adapter of the node for one resource, ours one for each rail
        f"{of_rails}.0.selectors.pfNames.0": (None, "rail0"),
        # ours run where a node still waits for its devices
        "spec.tolerations.0.effect": (None, "NoSchedule"),
        "spec.tolerations.0.key": (None, "gcluster.local/startup"),
        "spec.tolerations.0.operator": (None, "Exists"),
    }


def test_the_policy_of_infiniband_differs_in_how_adapters_are_found() -> None:
    gone = tuple(
        f"spec.{n}" for n in (*NOT_SET_UP, "sriovDevicePlugin", "secondaryNetwork", "nvIpam")
    )
    of = "spec.rdmaSharedDevicePlugin.config.configList.0"
    found = differences("racks", "NicClusterPolicy", (*gone, "spec.tolerations"))
    assert found == {
        f"{of}.resourceName": ("rdma_shared_device_a", "ib"),
        # any model of adapter, on InfiniBand alone: an Ethernet port of the same card is not one
        f"{of}.selectors.deviceIDs.0": ("101b", None),
        f"{of}.selectors.linkTypes.0": (None, "infiniband"),
    }


def test_a_cluster_without_infiniband_has_no_plugin_that_would_share_nothing() -> None:
    """It exits: "no resources configuration found" (k8s-rdma-shared-dev-plugin)."""
    assert "rdmaSharedDevicePlugin" not in ours("roce", "NicClusterPolicy")["spec"]
    shared = ours("racks", "NicClusterPolicy")["spec"]["rdmaSharedDevicePlugin"]
    assert shared["config"]["configList"]


def test_a_rails_network_and_its_addresses_differ_in_names_numbers_and_the_gateway() -> None:
    assert differences("roce", "HostDeviceNetwork") == {
        "metadata.name": ("example-hostdevice-network", "gpu-rail-0"),
        "spec.ipam.poolName": ("my-pool", "gpu-rail-0"),
        "spec.networkNamespace": ("default", "nvidia-network-operator"),
        "spec.resourceName": ("hostdev", "gpu_rail_0"),
    }
    assert differences("roce", "IPPool") == {
        "metadata.name": ("my-pool", "gpu-rail-0"),
        "spec.subnet": ("192.168.0.0/24", "10.56.0.0/18"),
        "spec.perNodeBlockSize": (100, 64),
        "spec.gateway": ("192.168.0.1", None),  # a rail reaches itself alone
    }


def test_pods_request_devices_as_theirs_do_and_add_no_capability() -> None:
    for case, name, prefix in (
        ("roce", "test-hostdev", "nvidia.com/"),
        ("racks", "rdma-test", "rdma/"),
    ):
        (theirs,) = published("Pod", name)["spec"]["containers"]
        (resource,) = theirs["resources"]["limits"]
        assert resource.startswith(prefix)
        run = [
            one for one in of_kind(case, "Job") if one["metadata"]["name"].startswith("allreduce")
        ][-1]
        pod = run["spec"]["template"]
        (container,) = pod["spec"]["containers"]
        mine = {k: v for k, v in container["resources"]["limits"].items() if k.startswith(prefix)}
        assert {str(v) for k, v in mine.items() if k != "nvidia.com/gpu"} == {"1"}
        # IPC_LOCK helps root alone; ours are ordinary users, whose memory the node's limits pin
        assert theirs["securityContext"]["capabilities"]["add"] == ["IPC_LOCK"]
        assert "add" not in container["securityContext"]["capabilities"]
    networks = pod_networks("roce")
    assert networks == [f"nvidia-network-operator/gpu-rail-{number}" for number in range(4)]


def pod_networks(case: str) -> list[str]:
    """Return the secondary networks of a case's AllReduce."""
    (job,) = of_kind(case, "Job")
    (note,) = published("Pod", "test-hostdev")["metadata"]["annotations"]
    return str(job["spec"]["template"]["metadata"]["annotations"][note]).split(", ")


def test_the_examples_are_of_the_release_that_is_installed() -> None:
    policy = published("NicClusterPolicy")["spec"]
    version = f"network-operator-v{VERSION}"
    assert policy["sriovDevicePlugin"]["version"] == version
    images = facts_of(spec_of("roce")).catalog.addons["network-operator"].images
    for name in ("sriovDevicePlugin", "rdmaSharedDevicePlugin", "nvIpam"):
        one = policy[name]
        assert f"{one['repository']}/{one['image']}:{one['version']}" in images


AKS = """\
apiVersion: gcluster/v1
name: demo
sites:
  w:
    provider: azure
    subscription: 00000000-0000-0000-0000-000000000000
    region: westus
    zone: "1"
    network: {admin_cidrs: [192.0.2.0/24]}
pools: {gpu: {site: w, machine: Standard_ND96isr_H100_v5, count: 2}}
scheduler: {type: kubernetes, control_plane: aks, gpu: {driver: container}}
smoke: {allreduce: {image: registry.example.edu/allreduce:1.4}}
"""


def test_under_aks_the_operator_brings_the_adapters_driver_as_nvidias_example_does() -> None:
    spec = load_text(AKS).spec
    assert spec is not None
    facts = facts_of(spec)
    (policy,) = [o for o in network_objects(facts) if o["kind"] == "NicClusterPolicy"]
    made, theirs = policy["spec"]["ofedDriver"], published("NicClusterPolicy")["spec"]["ofedDriver"]
    # Microsoft's, of configs/nicclusterpolicy/base (test_cloud_fabrics has its other fields)
    (extra,) = made.pop("env")
    assert extra["name"] == "OFED_BLACKLIST_MODULES_FILE"
    periods = [one["startupProbe"].pop("periodSeconds") for one in (made, theirs)]
    assert periods == [20, 10]
    assert made.pop("imagePullSecrets") == []
    assert made == theirs
    assert nvidia_values(facts)["driver"]["rdma"]["useHostMofed"] is False
