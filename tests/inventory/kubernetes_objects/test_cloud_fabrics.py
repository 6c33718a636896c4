"""EFA, GPUDirect-TCPXO, gIB and AKS' InfiniBand against the manifests that the clouds publish.

What a published pod has of devices, interfaces, folders, settings and rights is written here as
facts, with file and commit (read 2026-11); what ours has otherwise is listed with its reason.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import msgspec

from gcluster.inventory.compile.kubernetes_objects.addons import chosen_addons
from gcluster.inventory.compile.kubernetes_objects.devices.azure import LIFT, MEMORY, command
from gcluster.inventory.compile.kubernetes_objects.devices.fabric import network_objects
from gcluster.inventory.compile.kubernetes_objects.devices.google import (
    folder_claims,
    google_network_objects,
)
from gcluster.inventory.compile.kubernetes_objects.facts import KubernetesFacts
from gcluster.inventory.compile.kubernetes_objects.jobs.templates import JobTemplate
from gcluster.inventory.compile.kubernetes_objects.nodes import MACHINE, POOL, pool_labels
from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.load import load_text

from .compiled import facts_of, spec_of
from .test_network_operator import AKS

Facts = dict[str, str]


def facts_from(text: str) -> KubernetesFacts:
    spec = load_text(text).spec
    assert spec is not None
    return facts_of(spec)


def worker(facts: KubernetesFacts) -> dict[str, Any]:
    """Return the pod of the only partition's template for torchrun: a whole node and its fabric."""
    (partition,) = facts.partitions
    job = JobTemplate(facts, partition, next(iter(facts.accounts))).torchrun()[-1]
    made: dict[str, Any] = json.loads(json.dumps(job["spec"]["template"]))
    return made


def seen(facts: KubernetesFacts, pod: dict[str, Any], name: str) -> Facts:
    """Return what a container has of its node, in the words of the published pods' facts."""
    spec = pod["spec"]
    containers = [*spec["containers"], *spec.get("initContainers", [])]
    (one,) = [c for c in containers if c["name"] == name]
    claimed = {
        made["spec"]["claimRef"]["name"]: made["spec"]["hostPath"]["path"]
        for made in folder_claims(facts)
        if made["kind"] == "PersistentVolume"
    }
    sources = {v["name"]: claimed.get(v["name"], "memory") for v in spec["volumes"]}
    found = {f"limit {k}": str(v) for k, v in one.get("resources", {}).get("limits", {}).items()}
    for mount in one["volumeMounts"]:
        read_only = ", read-only" if mount.get("readOnly") else ""
        found[f"at {mount['mountPath']}"] = sources[mount["name"]] + read_only
    found |= {f"variable {v['name']}": v["value"] for v in one.get("env", [])}
    added = one.get("securityContext", {}).get("capabilities", {}).get("add", [])
    return found | {f"right {right}": "yes" for right in added}


def interfaces(pod: dict[str, Any]) -> Facts:
    """Return interface -> network, and which is the pod's own."""
    notes = pod["metadata"]["annotations"]
    named = json.loads(notes["networking.gke.io/interfaces"])
    found = {one["interfaceName"]: one["network"] for one in named}
    return found | {"default": notes["networking.gke.io/default-interface"]}


def differences(theirs: Facts, ours: Facts) -> dict[str, tuple[str | None, str | None]]:
    """Return fact -> (theirs, ours) of what differs; None: it is not there."""
    names = sorted({*theirs, *ours})
    return {n: (theirs.get(n), ours.get(n)) for n in names if theirs.get(n) != ours.get(n)}


EKS = """\
apiVersion: gcluster/v1
name: demo
sites:
  w:
    provider: aws
    region: us-east-1
    zone_id: use1-az4
    network: {admin_cidrs: [192.0.2.0/24]}
pools: {gpu: {site: w, machine: p5.48xlarge, count: 2}}
scheduler: {type: kubernetes, control_plane: eks, kueue: false, accounts: {nlp: {users: [ada]}}}
users: [{name: ada, uid: 2001}]
smoke: {allreduce: {image: registry.example.edu/allreduce:1.4}}
"""
EFA_WORKER = {
    "limit nvidia.com/gpu": "8",
    "limit vpc.amazonaws.com/efa": "32",
    "limit hugepages-2Mi": "5120Mi",
    "limit memory": "32000Mi",
    "at /dev/shm": "/dev/shm",  # noqa: S108  # of the pod
    "variable FI_PROVIDER": "efa",
    "variable FI_EFA_FORK_SAFE": "1",
    "variable NCCL_BUFFSIZE": "8388608",
    "variable NCCL_P2P_NET_CHUNKSIZE": "524288",
    "variable NCCL_TUNER_PLUGIN": "/opt/aws-ofi-nccl/install/lib/libnccl-ofi-tuner.so",
}
"""A worker on p5.48xlarge, with the settings that its mpirun passes on: aws-samples/
awsome-distributed-training, micro-benchmarks/nccl-tests/kubernetes/nccl-tests.yaml at 0162aac."""


def test_a_pod_on_efa_differs_from_awss_in_memory_and_in_what_newer_libraries_choose() -> None:
    facts = facts_from(EKS)
    assert differences(EFA_WORKER, seen(facts, worker(facts), "main")) == {
        # of each pod's own: the node's /dev/shm is every pod's, and a path of the host
        "at /dev/shm": ("/dev/shm", "memory"),  # noqa: S108  # of the pod
        # huge pages want a limit of memory (Kubernetes, "Manage HugePages"), whatever it is
        "limit memory": ("32000Mi", "64Gi"),
        # nothing else from libfabric 1.18 and aws-ofi-nccl 1.7 on (the same repository's EFA cheat
        # sheet): both choose provider, chunks and tuner themselves
        "variable FI_EFA_FORK_SAFE": ("1", None),
        "variable FI_PROVIDER": ("efa", None),
        "variable NCCL_BUFFSIZE": ("8388608", None),
        "variable NCCL_P2P_NET_CHUNKSIZE": ("524288", None),
        "variable NCCL_TUNER_PLUGIN": (EFA_WORKER["variable NCCL_TUNER_PLUGIN"], None),
        # interfaces of the node that lead nowhere from a pod
        "variable NCCL_SOCKET_IFNAME": (None, "^docker,lo,veth,virbr,br-,cni,usb,enx,bmc"),
    }


EFA_MACHINES = {
    *("g4dn.8xlarge", "g5.8xlarge", "g5.48xlarge", "g6.48xlarge", "g6e.48xlarge", "g7e.48xlarge"),
    *("p4d.24xlarge", "p4de.24xlarge", "p5.4xlarge", "p5.48xlarge", "p5e.48xlarge"),
    *("p5en.48xlarge", "p6-b200.48xlarge", "p6-b300.48xlarge", "p6e-gb200.36xlarge"),
}
"""Of the catalog's machines those that the plugin's chart runs on by default: aws/eks-charts,
stable/aws-efa-k8s-device-plugin/values.yaml (supportedInstanceLabels) at 5239609, v0.5.30."""


def test_efas_plugin_runs_on_machines_that_awss_chart_names_too() -> None:
    catalog = load_catalog()
    efa = {
        one.name
        for one in catalog.machines.values()
        if one.sites == ["aws"] and any(nic.kind == "efa" for nic in one.nics or ())
    }
    assert efa == EFA_MACHINES
    assert catalog.addons["aws-efa-device-plugin"].version == "v0.5.30"


def test_efas_plugin_is_placed_by_our_label_since_other_nodes_have_no_cloud_that_labels_them() -> (
    None
):
    facts = facts_of(spec_of("cloud"))
    (plugin,) = [c for c in chosen_addons(facts) if c.addon.name == "aws-efa-device-plugin"]
    # theirs: key node.kubernetes.io/instance-type, and tolerations: []
    assert plugin.values["supportedInstanceLabels"] == {
        "keys": [MACHINE],
        "values": ["p5.48xlarge"],
    }
    assert pool_labels(facts, "train")[MACHINE] == "p5.48xlarge"
    assert {one["key"] for one in plugin.values["tolerations"]} == {"gcluster.local/startup"}
    # all other values are the chart's own
    assert plugin.values.keys() == {"supportedInstanceLabels", "tolerations"}


TCPXO_INTERFACES = {"eth0": "default", "default": "eth0"} | {
    f"eth{n}": f"vpc{n}" for n in range(1, 9)
}
TCPXO_RANKS = {
    "limit nvidia.com/gpu": "8",
    "at /usr/local/nvidia/lib64": "/home/kubernetes/bin/nvidia/lib64",
    "at /dev/shm": "memory",
    "at /dev/aperture_devices": "/dev/aperture_devices",
    "variable LD_LIBRARY_PATH": "/usr/local/nvidia/lib64",
    "variable NCCL_FASTRAK_LLCM_DEVICE_DIRECTORY": "/dev/aperture_devices",
}
TCPXO_DAEMON = {
    "at /usr/local/nvidia/lib64": "/home/kubernetes/bin/nvidia/lib64",
    "at /hostsysfs": "/sys",
    "at /hostprocsysfs": "/proc/sys",
    "variable LD_LIBRARY_PATH": "/usr/local/nvidia/lib64",
    "right NET_ADMIN": "yes",
    "right NET_BIND_SERVICE": "yes",
}
"""GoogleCloudPlatform/container-engine-accelerators, gpudirect-tcpxo/nccl-test-latest.yaml at
992db81: containers nccl-test and tcpxo-daemon."""
GKE = """\
apiVersion: gcluster/v1
name: demo
sites: {w: {provider: gcp, project: acme, region: us-central1, zone: us-central1-b}}
pools: {gpu: {site: w, machine: MACHINE, count: 2, market: [{reservation: held}]}}
scheduler: {type: kubernetes, control_plane: gke, kueue: false, accounts: {nlp: {users: [ada]}}}
users: [{name: ada, uid: 2001}]
smoke: {allreduce: {image: registry.example.edu/allreduce:1.4}}
"""
_LIBRARIES = "/home/kubernetes/bin/nvidia"


def test_tcpxos_ranks_differ_from_googles_in_where_the_libraries_begin() -> None:
    facts = facts_from(GKE.replace("MACHINE", "a3-megagpu-8g"))
    pod = worker(facts)
    assert differences(TCPXO_INTERFACES, interfaces(pod)) == {}
    found = differences(TCPXO_RANKS, seen(facts, pod, "main"))
    # Google's own profile for a benchmark sets these (cluster-toolkit, nccl-env-profile.sh)
    tuned = {n for n in found if n.startswith("variable NCCL_")}
    assert {n: one for n, one in found.items() if n not in tuned} == {
        # the folder above it: its programs, nvidia-smi too, are next to the libraries
        "at /usr/local/nvidia": (None, f"{_LIBRARIES}, read-only"),
        "at /usr/local/nvidia/lib64": (f"{_LIBRARIES}/lib64", None),
    }
    assert all(theirs is None for theirs, _ in (found[n] for n in tuned))


def test_tcpxos_daemon_writes_the_settings_of_its_pods_network_and_no_others_of_the_node() -> None:
    facts = facts_from(GKE.replace("MACHINE", "a3-megagpu-8g"))
    assert differences(TCPXO_DAEMON, seen(facts, worker(facts), "tcpxo-daemon")) == {
        "at /usr/local/nvidia": (None, f"{_LIBRARIES}, read-only"),
        "at /usr/local/nvidia/lib64": (f"{_LIBRARIES}/lib64", None),
        # read-only: its start script writes one thing there, of the whole node, at its very end
        # (tcp_cubic's hystart_detect), and goes on without
        "at /hostsysfs": ("/sys", "/sys, read-only"),
        # who writes /proc/sys/kernel is root on the node; `net` is the pod's own network's
        "at /hostprocsysfs": ("/proc/sys", None),
        "at /hostprocsysfs/net": (None, "/proc/sys/net"),
    }


GIB_INTERFACES = {"eth0": "default", "default": "eth0"} | {
    f"eth{n + 2}": f"rdma-{n}" for n in range(8)
}
GIB_RANKS = {
    "limit nvidia.com/gpu": "8",
    "at /usr/local/nvidia": _LIBRARIES,
    "at /usr/local/gib": "/home/kubernetes/bin/gib",
    "at /dev/shm": "memory",
    "variable LD_LIBRARY_PATH": "/usr/local/nvidia/lib64",
}
"""The same repository, gpudirect-rdma/nccl-test.yaml (A3 Ultra) and nccl-test-a4.yaml."""


def test_gibs_ranks_differ_from_googles_in_the_second_network_and_the_plugins_settings() -> None:
    for machine in ("a3-ultragpu-8g", "a4-highgpu-8g"):
        facts = facts_from(GKE.replace("MACHINE", machine))
        pod = worker(facts)
        # theirs leaves the second gVNIC out; NCCL's plugin spreads its sockets over both
        assert differences(GIB_INTERFACES, interfaces(pod)) == {"eth1": (None, "gvnic-1")}
        found = differences(GIB_RANKS, seen(facts, pod, "main"))
        # theirs are set by set_nccl_env.sh in the pod's shell, of the same plugin
        settings = {n for n in found if n.startswith("variable NCCL_")}
        assert {n: one for n, one in found.items() if n not in settings} == {
            "at /usr/local/gib": (
                "/home/kubernetes/bin/gib",
                "/home/kubernetes/bin/gib, read-only",
            ),
            "at /usr/local/nvidia": (_LIBRARIES, f"{_LIBRARIES}, read-only"),
            # their installer copies the plugin to nvidia/lib64 as well
            "variable LD_LIBRARY_PATH": (
                "/usr/local/nvidia/lib64",
                "/usr/local/gib/lib64:/usr/local/nvidia/lib64",
            ),
        }


def test_gkes_network_objects_are_those_of_googles_toolkit() -> None:
    """GoogleCloudPlatform/cluster-toolkit at 1047080, modules/scheduler/gke-cluster."""
    for machine, expected in (
        ("a3-megagpu-8g", {f"vpc{n}": "NetDevice" for n in range(1, 9)}),
        ("a3-ultragpu-8g", {"gvnic-1": "NetDevice"} | {f"rdma-{n}": "RDMA" for n in range(8)}),
    ):
        facts = facts_from(GKE.replace("MACHINE", machine))
        known = {"gpu": tuple(f"net-{n}/sub-{n}" for n in range(len(expected)))}
        inventory = msgspec.structs.replace(facts.inventory, networks=known)
        made = google_network_objects(msgspec.structs.replace(facts, inventory=inventory))
        for number, (name, mode) in enumerate(expected.items()):
            of, network = (one for one in made if one["metadata"]["name"] == name)
            assert of["apiVersion"] == network["apiVersion"] == "networking.gke.io/v1"
            assert (of["kind"], network["kind"]) == ("GKENetworkParamSet", "Network")
            assert of["spec"] == {
                "vpc": f"net-{number}",
                "vpcSubnet": f"sub-{number}",
                "deviceMode": mode,
            }
            assert network["spec"] == {
                "type": "Device",
                "parametersRef": {
                    "group": "networking.gke.io",
                    "kind": "GKENetworkParamSet",
                    "name": name,
                },
            }
        assert len(made) == 2 * len(expected)


AKS_POLICY = {
    "affinity": "feature.node.kubernetes.io/pci-15b3.present In true",
    "ofedDriver.env OFED_BLACKLIST_MODULES_FILE": (
        "/host/etc/modprobe.d/blacklist-ofed-modules.conf"
    ),
    "ofedDriver.startupProbe.periodSeconds": "20",
    "ofedDriver.forcePrecompiled": "False",
    "ofedDriver.upgradePolicy.drain.timeoutSeconds": "300",
    "docaTelemetryService": "yes",
    "rdmaSharedDevicePlugin.resourceName": "shared_ib",
    "rdmaSharedDevicePlugin.rdmaHcaMax": "63",
    "rdmaSharedDevicePlugin.vendors": "15b3",
    "rdmaSharedDevicePlugin.linkTypes": "infiniband",
}
"""Azure/aks-rdma-infiniband at 700dabb, configs/nicclusterpolicy: base, and the shared plugin."""


def _aks_policy() -> Facts:
    (policy,) = [o for o in network_objects(facts_from(AKS)) if o["kind"] == "NicClusterPolicy"]
    spec: Any = policy["spec"]
    required = spec["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    (term,) = required["nodeSelectorTerms"][0]["matchExpressions"]
    driver, (env,) = spec["ofedDriver"], spec["ofedDriver"]["env"]
    config = json.loads(spec["rdmaSharedDevicePlugin"]["config"])
    (shared,) = config["configList"]
    return {
        "affinity": f"{term['key']} {term['operator']} {','.join(term['values'])}",
        f"ofedDriver.env {env['name']}": env["value"],
        "ofedDriver.startupProbe.periodSeconds": str(driver["startupProbe"]["periodSeconds"]),
        "ofedDriver.upgradePolicy.drain.timeoutSeconds": str(
            driver["upgradePolicy"]["drain"]["timeoutSeconds"]
        ),
        "rdmaSharedDevicePlugin.resourceName": shared["resourceName"],
        "rdmaSharedDevicePlugin.rdmaHcaMax": str(shared["rdmaHcaMax"]),
        "rdmaSharedDevicePlugin.vendors": ",".join(shared["selectors"]["vendors"]),
        "rdmaSharedDevicePlugin.linkTypes": ",".join(shared["selectors"]["linkTypes"]),
    }


def test_aks_policy_differs_from_microsofts_in_which_nodes_it_is_for() -> None:
    assert differences(AKS_POLICY, _aks_policy()) == {
        # theirs goes with a rule of their own for two devices, and without the GPU Operator's
        # discovery, which labels Azure's accelerated networking on every node with it too
        "affinity": (AKS_POLICY["affinity"], f"{POOL} In gpu"),
        "docaTelemetryService": ("yes", None),  # node_exporter reads the adapters' counters
        "ofedDriver.forcePrecompiled": ("False", None),  # what it is when left out
        "rdmaSharedDevicePlugin.resourceName": ("shared_ib", "ib"),
    }


def test_microsofts_pods_add_ipc_lock_and_under_aks_ours_need_no_right_to_pin_memory() -> None:
    facts = facts_from(AKS)
    (daemons,) = [o for o in network_objects(facts) if o["kind"] == "DaemonSet"]
    pod: Any = daemons["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert daemons["metadata"]["name"] == f"{MEMORY}-gpu"
    assert (pod["hostPID"], pod["nodeSelector"]) == (True, {POOL: "gpu"})
    assert container["command"] == command("x86_64")
    assert container["command"][-1] == LIFT
    images = facts.catalog.addons["network-operator"].images
    assert container["image"].partition("@")[0] in images


def test_the_nodes_limit_is_lifted_for_the_containerd_that_runs_and_for_the_next(
    tmp_path: Path,
) -> None:
    drop_in = "/etc/systemd/system/containerd.service.d/50-gcluster-memlock.conf"
    assert drop_in in LIFT
    for name in ("systemctl", "pidof", "prlimit", "sleep"):
        program = tmp_path / name
        answer = "echo 41 42" if name == "pidof" else f'echo {name} "$@" >> {tmp_path}/ran'
        program.write_text(f"#!/bin/sh\n{answer}\n", encoding="utf-8")
        program.chmod(0o755)
    script = LIFT.replace("/etc/", f"{tmp_path}/etc/")
    path = f"{tmp_path}:{os.environ['PATH']}"
    subprocess.run(["/bin/sh", "-c", script], check=True, env={"PATH": path})
    written = Path(f"{tmp_path}{drop_in}").read_text(encoding="utf-8")
    assert written == "[Service]\nLimitMEMLOCK=infinity\n"
    assert (tmp_path / "ran").read_text(encoding="utf-8").splitlines() == [
        "systemctl daemon-reload",
        "prlimit --pid 41 --memlock=unlimited:unlimited",
        "prlimit --pid 42 --memlock=unlimited:unlimited",
        "sleep infinity",
    ]
