"""GPUs, fabrics, volumes and add-ons: what each kind of cluster is given for its machines."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec
import pytest
import yaml

from gcluster.inventory.bare_metal import bare_metal_hosts
from gcluster.inventory.compile.gpu.nccl import job_environment
from gcluster.inventory.compile.kubernetes_objects.addons import chosen_addons
from gcluster.inventory.compile.kubernetes_objects.devices.fabric import (
    FabricAccess,
    fabric_access,
    rail_subnets,
)
from gcluster.inventory.compile.kubernetes_objects.devices.google import (
    google_environment,
    google_folders,
    google_network_objects,
    google_networks,
    unknown_networks,
)
from gcluster.inventory.compile.kubernetes_objects.devices.gpus import (
    nvidia_values,
)
from gcluster.inventory.compile.kubernetes_objects.facts import kubernetes_facts, units_per_gpu
from gcluster.inventory.compile.kubernetes_objects.queues import flavors
from gcluster.inventory.compile.kubernetes_objects.registration import (
    nodes,
)
from gcluster.inventory.compile.kubernetes_objects.volumes import storage_classes, volumes
from gcluster.inventory.hosts import ClusterInventory
from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.load import load_text

from .compiled import NAMES, facts_of, files_of, of_kind, spec_of


def values(case: str, addon: str) -> dict[str, Any]:
    """Return an add-on's Helm values."""
    found: dict[str, Any] = yaml.safe_load(files_of(case)[f"addons/{addon}.values.yaml"])
    return found


def addons(case: str) -> list[str]:
    """Return the add-ons in the order in which they are applied."""
    return [one["name"] for one in yaml.safe_load(files_of(case)["addons/addons.yaml"])]


def ranks(case: str) -> dict[str, Any]:
    """Return the pod of a case's AllReduce."""
    (job,) = of_kind(case, "Job")
    pod: dict[str, Any] = job["spec"]["template"]["spec"]
    return pod


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("amd", ["cilium", "amd-gpu-operator", "network-operator", "azurelustre-csi-driver",
                 "blob-csi-driver", "kueue"]),
        ("cloud", ["calico-crds", "tigera-operator", "gpu-operator", "aws-efa-device-plugin",
                   "aws-fsx-csi-driver", "aws-mountpoint-s3-csi-driver", "kube-prometheus-stack"]),
        ("google", ["gpu-operator", "gke-device-injector", "gke-tcpxo-installer", "kueue"]),
        ("local", ["local-path-provisioner", "kueue"]),
    ],
)  # fmt: skip
def test_a_cluster_gets_the_add_ons_of_its_machines(case: str, expected: list[str]) -> None:
    assert addons(case) == expected


def test_a_precompiled_driver_is_named_by_its_branch() -> None:
    driver = values("cloud", "gpu-operator")["driver"]
    assert (driver["usePrecompiled"], driver["version"].isdigit()) == (True, True)


def test_a_driver_of_the_host_is_left_to_the_roles() -> None:
    assert values("campus", "gpu-operator")["driver"] == {"enabled": False}


def test_gke_brings_driver_and_plugin_itself_unless_the_operator_is_to() -> None:
    facts = facts_of(spec_of("google"))
    gpu = msgspec.structs.replace(facts.scheduler.gpu, driver="host")
    scheduler = msgspec.structs.replace(facts.scheduler, gpu=gpu)
    names = {
        c.addon.name for c in chosen_addons(msgspec.structs.replace(facts, scheduler=scheduler))
    }
    assert "gpu-operator" not in names
    assert "gpu-operator" in {c.addon.name for c in chosen_addons(facts)}


def test_time_slices_are_what_the_quota_counts_too() -> None:
    config = values("google", "gpu-operator")["devicePlugin"]["config"]
    shared = yaml.safe_load(config["data"]["2-at-once"])["sharing"]["timeSlicing"]["resources"]
    assert shared == [{"name": "nvidia.com/gpu", "replicas": 2}]
    (root,) = [one for one in of_kind("google", "Cohort") if "parentName" not in one["spec"]]
    group = root["spec"]["resourceGroups"][0]
    found = {r["name"]: r["nominalQuota"] for r in group["flavors"][0]["resources"]}
    assert found["nvidia.com/gpu"] == str(2 * 8 * 2)


POOLS = """\
apiVersion: gcluster/v1
name: demo
sites: {hall: {provider: bare-metal, ssh: {user: ops}, network: {cidr: 10.20.0.0/16}}}
pools:
  head: {site: hall, role: controller, hosts: [{name: head01, address: 10.20.0.1}]}
  train: {site: hall, machine: dgx-h100, hosts: [{name: t1, address: 10.20.1.1}]}
  serve:
    site: hall
    machine: dgx-h100
    hosts: [{name: s1, address: 10.20.2.1}]
    kubernetes: {mig: all-1g.10gb}
  try:
    site: hall
    machine: dgx-h100
    hosts: [{name: y1, address: 10.20.3.1}]
    kubernetes: {time_slices: 4, labels: {example.edu/team: nlp}}
scheduler: {type: kubernetes, cni: cilium}
"""


def test_each_pool_cuts_and_shares_its_gpus_as_it_has() -> None:
    spec = load_text(POOLS).spec
    assert spec is not None
    hosts = ClusterInventory(cluster="demo", hosts=bare_metal_hosts(spec, "hall"))
    facts = kubernetes_facts(spec, hosts, load_catalog())
    assert [units_per_gpu(facts, pool) for pool in ("train", "serve", "try")] == [1, 7, 4]
    labels = {name: one["labels"] for name, one in nodes(facts).items()}
    assert labels["s1"]["nvidia.com/mig.config"] == "all-1g.10gb"
    assert labels["y1"]["nvidia.com/device-plugin.config"] == "4-at-once"
    assert labels["y1"]["example.edu/team"] == "nlp"
    assert not any(name.startswith("nvidia.com/") for name in labels["t1"])
    values = nvidia_values(facts)
    assert values["migManager"] == {"enabled": True}
    config = values["devicePlugin"]["config"]
    assert config["default"] == "1-at-once"
    assert yaml.safe_load(config["data"]["1-at-once"]) == {"version": "v1"}
    shared = yaml.safe_load(config["data"]["4-at-once"])["sharing"]["timeSlicing"]
    assert shared["resources"] == [{"name": "nvidia.com/gpu", "replicas": 4}]


MARKED = POOLS.replace(
    "kubernetes: {mig: all-1g.10gb}",
    "kubernetes: {taints: [{key: example.edu/serving, value: x, effect: NoExecute}]}",
).replace(
    "kubernetes: {time_slices: 4, labels: {example.edu/team: nlp}}", "kubernetes: {system: true}"
)


def test_a_pool_has_the_taints_that_it_has_and_its_jobs_tolerate_them() -> None:
    spec = load_text(MARKED).spec
    assert spec is not None
    hosts = ClusterInventory(cluster="demo", hosts=bare_metal_hosts(spec, "hall"))
    facts = kubernetes_facts(spec, hosts, load_catalog())
    taint = {"key": "example.edu/serving", "value": "x", "effect": "NoExecute"}
    found = nodes(facts)
    assert (found["s1"]["taints"], found["t1"]["taints"]) == ([taint], [])
    assert found["s1"]["labels"]["taint.gcluster.local/example.edu_serving"] == "true"
    (tolerated,) = (f["spec"].get("tolerations") for f in flavors(facts) if named(f, "serve"))
    assert tolerated == [{**taint, "operator": "Equal"}]


def named(made: dict[str, Any], name: str) -> bool:
    return bool(made["metadata"]["name"] == name)


def test_a_system_pool_takes_the_clusters_own_pods_and_no_jobs() -> None:
    loaded = load_text(MARKED)
    assert loaded.spec is not None
    assert [d.code for d in loaded.diagnostics if d.code in {"GC507", "GC739"}] == []
    hosts = ClusterInventory(cluster="demo", hosts=bare_metal_hosts(loaded.spec, "hall"))
    facts = kubernetes_facts(loaded.spec, hosts, load_catalog())
    own = nodes(facts)["y1"]
    assert own["taints"] == []
    assert not [label for label in own["labels"] if label.startswith("partition.")]
    assert not [one for one in flavors(facts) if named(one, "try")]


def test_slices_of_mig_are_counted_and_the_nodes_are_reported() -> None:
    (quota,) = [q for q in of_kind("cloud", "ResourceQuota") if q["metadata"]["name"] == "gpus"]
    assert quota["spec"]["hard"] == {"requests.nvidia.com/gpu": str(16 * 7)}
    labels = [one["labels"] for one in nodes(facts_of(spec_of("cloud"))).values()]
    assert {one["nvidia.com/mig.config"] for one in labels} == {"all-1g.10gb"}


def test_claimed_gpus_are_limited_and_claimed_by_device_class() -> None:
    (quota,) = [q for q in of_kind("amd", "ResourceQuota") if q["metadata"]["name"] == "gpus"]
    assert quota["spec"]["hard"] == {"gpu.amd.com.deviceclass.resource.k8s.io/devices": "8"}
    container = ranks("amd")["containers"][0]
    assert container["resources"]["claims"] == [{"name": "gpus"}]
    assert not any("gpu" in name for name in container["resources"]["limits"])


def test_amds_device_plugin_and_its_driver_of_claims_are_not_both_on() -> None:
    (config,) = of_kind("amd", "DeviceConfig")
    answer = config["spec"]
    assert (answer["draDriver"]["enable"], answer["devicePlugin"]["enableDevicePlugin"]) == (
        True,
        False,
    )


def test_a_pod_on_efa_gets_every_interface() -> None:
    limits = ranks("cloud")["containers"][0]["resources"]["limits"]
    assert (limits["vpc.amazonaws.com/efa"], limits["hugepages-2Mi"]) == ("32", "5120Mi")


def test_googles_fabric_comes_to_pods_as_googles_unprivileged_test_has_it() -> None:
    """container-engine-accelerators at 992db81, gpudirect-tcpxo/nccl-test-latest.yaml."""
    (job,) = of_kind("google", "Job")
    template = job["spec"]["template"]
    pod, notes = template["spec"], template["metadata"]["annotations"]
    assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()
    named = json.loads(notes["networking.gke.io/interfaces"])
    vpcs = [{"interfaceName": f"eth{n}", "network": f"vpc{n}"} for n in range(1, 9)]
    assert named == [{"interfaceName": "eth0", "network": "default"}, *vpcs]
    assert notes["networking.gke.io/default-interface"] == "eth0"
    devices = yaml.safe_load(notes["devices.gke.io/container.tcpxo-daemon"])
    gpus = [f"/dev/nvidia{number}" for number in range(8)]
    others = ["/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/dmabuf_import_helper"]
    assert [one["path"] for one in devices] == [*gpus, *others]
    (daemon,) = pod["initContainers"]
    assert daemon["securityContext"] == {"capabilities": {"add": ["NET_ADMIN", "NET_BIND_SERVICE"]}}
    at = {one["mountPath"] for one in daemon["volumeMounts"]}
    assert {"/usr/local/nvidia", "/hostsysfs", "/hostprocsysfs/net"} <= at
    mounts = {one["mountPath"] for one in pod["containers"][0]["volumeMounts"]}
    assert {"/usr/local/nvidia", "/dev/aperture_devices"} <= mounts
    assert "/hostsysfs" not in mounts


@pytest.mark.parametrize("case", NAMES)
def test_no_pod_of_a_cluster_is_privileged(case: str) -> None:
    texts = [json.dumps(one) for kind in ("Job", "JobSet", "MPIJob") for one in of_kind(case, kind)]
    assert texts
    assert not [text for text in texts if '"privileged": true' in text or '"hostNetwork"' in text]


@pytest.mark.parametrize("case", NAMES)
def test_accounts_are_restricted_and_only_tcpxos_are_held_to_that_by_rules(case: str) -> None:
    spaces = [one["metadata"]["labels"] for one in of_kind(case, "Namespace")]
    enforced = {
        one["pod-security.kubernetes.io/enforce"]
        for one in spaces
        if "gcluster.local/account" in one
    }
    policies = {one["metadata"]["name"] for one in of_kind(case, "ValidatingAdmissionPolicy")}
    by_rules = "gcluster-restricted-pods" in policies
    assert enforced == ({"privileged"} if by_rules else {"restricted"})
    assert by_rules == (case == "google")


def test_accounts_see_googles_folders_by_claims() -> None:
    claims = {one["metadata"]["name"] for one in of_kind("google", "PersistentVolumeClaim")}
    folders = google_folders("gpudirect-tcpxo")
    assert {one.name for one in folders} < claims
    volumes = {
        one["metadata"]["name"]: one["spec"] for one in of_kind("google", "PersistentVolume")
    }
    for one in folders:
        assert volumes[f"nlp-{one.name}"]["hostPath"] == {"path": one.path, "type": "Directory"}
        modes = ["ReadWriteMany" if one.writable else "ReadOnlyMany"]
        assert volumes[f"nlp-{one.name}"]["accessModes"] == modes


def test_pods_networks_are_those_that_the_stack_made() -> None:
    """GKE, "Maximize GPU network bandwidth in Standard mode clusters": Network and parameters."""
    facts = facts_of(spec_of("google"))
    assert set(unknown_networks(facts)) == {"mega"}
    assert google_network_objects(facts) == []
    made = {"mega": tuple(f"west-net-{number}/west-sub-{number}" for number in range(1, 9))}
    inventory = msgspec.structs.replace(facts.inventory, networks=made)
    objects = google_network_objects(msgspec.structs.replace(facts, inventory=inventory))
    parameters = [one["spec"] for one in objects if one["kind"] == "GKENetworkParamSet"]
    assert parameters[7] == {
        "vpc": "west-net-8",
        "vpcSubnet": "west-sub-8",
        "deviceMode": "NetDevice",
    }
    networks = [one for one in objects if one["kind"] == "Network"]
    assert [one["metadata"]["name"] for one in networks] == [f"vpc{n}" for n in range(1, 9)]
    assert networks[0]["spec"]["type"] == "Device"
    assert google_networks("gib", 8) == ("gvnic-1", *(f"rdma-{number}" for number in range(8)))


def test_tcpxos_daemon_runs_with_the_ranks_that_gke_runs_none_for() -> None:
    (daemon,) = ranks("google")["initContainers"]
    assert daemon["restartPolicy"] == "Always"
    assert re.search(r"/gpudirect-tcpxo/tcpgpudmarxd-dev:v[0-9.]+$", daemon["image"])
    (launched,) = of_kind("google", "MPIJob")
    kinds = launched["spec"]["mpiReplicaSpecs"]
    beside = {name: "initContainers" in one["template"]["spec"] for name, one in kinds.items()}
    assert beside == {"Launcher": False, "Worker": True}


def test_gkes_nodes_call_their_interfaces_otherwise_than_slurms() -> None:
    answer = {one["name"]: one["value"] for one in ranks("google")["containers"][0]["env"]}
    assert answer["NCCL_FASTRAK_IFNAME"] == ",".join(f"eth{number}" for number in range(1, 9))
    assert answer["NCCL_TUNER_CONFIG_PATH"].startswith("/usr/local/nvidia/lib64/")
    gib = google_environment(
        "gib", 8, {"NCCL_SOCKET_IFNAME": "enp0s19,enp192s20", "NCCL_NET": "gIB"}
    )
    assert (gib["NCCL_SOCKET_IFNAME"], gib["NCCL_NET"]) == ("eth0,eth1", "gIB")
    assert {one.at for one in google_folders("gib")} == {"/usr/local/gib", "/usr/local/nvidia"}


def test_pods_of_nodes_that_are_not_gkes_have_nothing_of_googles_fabric() -> None:
    facts = facts_of(spec_of("google"))
    own = msgspec.structs.replace(facts.scheduler, control_plane="self")
    assert fabric_access(msgspec.structs.replace(facts, scheduler=own), "mega") == FabricAccess()


def test_roce_gives_a_pod_an_interface_and_a_network_a_rail() -> None:
    pod = ranks("roce")
    limits = pod["containers"][0]["resources"]["limits"]
    assert [name for name in limits if "rail" in name] == [
        f"nvidia.com/gpu_rail_{number}" for number in range(4)
    ]
    subnets = [one["spec"]["subnet"] for one in of_kind("roce", "IPPool")]
    assert subnets == ["10.56.0.0/18", "10.56.64.0/18", "10.56.128.0/18", "10.56.192.0/18"]
    (policy,) = of_kind("roce", "NicClusterPolicy")
    listed = json.loads(policy["spec"]["sriovDevicePlugin"]["config"])["resourceList"]
    assert [one["selectors"]["pfNames"] for one in listed] == [[f"rail{n}"] for n in range(4)]


def test_a_rails_resource_has_a_name_that_the_device_plugin_takes() -> None:
    (policy,) = of_kind("roce", "NicClusterPolicy")
    listed = json.loads(policy["spec"]["sriovDevicePlugin"]["config"])["resourceList"]
    offered = [one["resourceName"] for one in listed]
    assert all(re.fullmatch("[a-zA-Z0-9_]+", name) for name in offered)
    networks = [one["spec"]["resourceName"] for one in of_kind("roce", "HostDeviceNetwork")]
    limits = ranks("roce")["containers"][0]["resources"]["limits"]
    requested = [name.removeprefix("nvidia.com/") for name in limits if "rail" in name]
    assert offered == networks == requested


@pytest.mark.parametrize(("rails", "prefix"), [(1, 16), (2, 17), (3, 18), (8, 19)])
def test_rails_get_networks_of_one_size(rails: int, prefix: int) -> None:
    found = rail_subnets("10.56.0.0/16", rails)
    assert (len(found), {one.partition("/")[2] for one in found}) == (rails, {str(prefix)})


@pytest.mark.parametrize(
    "case", [name for name in NAMES if name not in {"google", "local", "roce"}]
)
def test_ranks_get_the_settings_that_slurm_gives_jobs(case: str) -> None:
    facts = facts_of(spec_of(case))
    for pool in facts.compute:
        expected = job_environment(facts.nodes[pool])
        assert fabric_access(facts, pool).environment == expected


def test_values_that_take_precedence_reach_the_script() -> None:
    environment = {one["name"]: one["value"] for one in ranks("google")["containers"][0]["env"]}
    assert environment["PREPEND"] == "LD_LIBRARY_PATH=/usr/local/nvidia/lib64"
    assert "LD_LIBRARY_PATH" in environment["FORWARD"].split()


def test_what_a_cloud_has_not_made_yet_has_no_volume_and_is_reported() -> None:
    assert yaml.safe_load(files_of("cloud")["unknown.yaml"]) == {
        "volumes": {"warm": "its address is known when it is made"}
    }
    assert [one["metadata"]["name"] for one in of_kind("cloud", "PersistentVolume")] == ["nlp-sets"]


def test_a_volume_of_some_pools_keeps_its_pods_on_their_nodes() -> None:
    spec = spec_of("cloud")
    pools = spec.pools | {"other": spec.pools["train"]}
    named = msgspec.structs.replace(spec.storage["sets"], pools=["train"])
    found = {}
    for name, sets in (("some", named), ("all", spec.storage["sets"])):
        storage = spec.storage | {"sets": sets}
        facts = facts_of(msgspec.structs.replace(spec, pools=pools, storage=storage))
        found[name] = next(v for v in volumes(facts) if v["kind"] == "PersistentVolume")["spec"]
    (term,) = found["some"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term["matchExpressions"][0]["values"] == ["train"]
    assert "nodeAffinity" not in found["all"]


def test_under_eks_claims_that_name_no_class_get_a_disk_of_ebs() -> None:
    facts = facts_of(spec_of("cloud"))
    managed = msgspec.structs.replace(facts.scheduler, control_plane="eks")
    classes = storage_classes(msgspec.structs.replace(facts, scheduler=managed))
    key = "storageclass.kubernetes.io/is-default-class"
    default = [c for c in classes if c["metadata"].get("annotations", {}).get(key) == "true"]
    assert [one["provisioner"] for one in default] == ["ebs.csi.aws.com"]
    assert default[0]["volumeBindingMode"] == "WaitForFirstConsumer"


def test_every_claim_is_bound_to_its_volume_and_every_volume_to_its_claim() -> None:
    for case in NAMES:
        claims = {
            (one["metadata"]["namespace"], one["metadata"]["name"]): one["spec"]["volumeName"]
            for one in of_kind(case, "PersistentVolumeClaim")
        }
        bound = {
            (one["spec"]["claimRef"]["namespace"], one["spec"]["claimRef"]["name"]): one[
                "metadata"
            ]["name"]
            for one in of_kind(case, "PersistentVolume")
        }
        assert claims == bound


def test_simulated_gpus_are_offered_by_a_plugin_that_reports_it() -> None:
    (plugin,) = of_kind("local", "DaemonSet")
    container = plugin["spec"]["template"]["spec"]["containers"][0]
    assert container["args"] == ["-count=8", "-resource=nvidia.com/gpu"]
    assert plugin["metadata"]["labels"]["gcluster.local/simulated"] == "true"
