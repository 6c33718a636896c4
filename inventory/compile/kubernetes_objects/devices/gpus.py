"""How pods get GPUs: the operators' values, AMD's devices, and claims of them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from ...slurm.nodes import gpu_count
from ...steps import Json
from ..facts import (
    DEVICE_CLASSES,
    KubernetesFacts,
    gpu_resource,
    units_per_gpu,
)
from ..nodes import POOL, SIMULATED, of_plugins, slices_name
from ..objects import BUILT, SIMULATED_GPU, SYSTEM_NAMESPACE, Object, new, to_yaml
from .nvlink import channel_pools

AMD_NAMESPACE = "kube-amd-gpu"
TIME_SLICING = "time-slicing"
CLAIM = "gpu"
"""Template of a claim of one GPU, in every account's namespace; gpus-8 claims eight."""


def gpu_pools(facts: KubernetesFacts, vendor: str) -> list[str]:
    """Return the compute pools with real GPUs of this maker."""
    return [pool for pool in facts.compute if facts.nodes[pool].has_gpu_of(vendor)]


def gke_brings_gpus(facts: KubernetesFacts) -> bool:
    """Whether GKE itself installs driver and device plugin: an operator would duplicate them.

    Its node pools then cut and share the GPUs as the spec says (set by Google Cloud's stack).
    """
    return facts.scheduler.control_plane == "gke" and facts.scheduler.gpu.driver == "host"


_OF_GPUS: Json = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
"""Default tolerations of the operator's own pods."""


_OF_CONTROL_PLANES: Json = {
    "key": "node-role.kubernetes.io/control-plane",
    "operator": "Equal",
    "value": "",
    "effect": "NoSchedule",
}
"""Further tolerations of feature discovery's workers (deployments/gpu-operator/values.yaml of
NVIDIA/gpu-operator, read 2026-11): where they don't run the operator sees no GPU."""


def nvidia_values(facts: KubernetesFacts) -> dict[str, Json]:
    """Return the values of the GPU Operator, as the chart's values.yaml of v26.7.0 names them.

    With the driver on the host the roles also install the container toolkit, fabric manager and
    DCGM's library: the operator adds device plugin, labels, MIG and metrics. With claims a
    GPUCluster replaces ClusterPolicy, without the driver: that is a NVIDIADriver. Both are not
    allowed together.
    """
    gpu = facts.scheduler.gpu
    pools = gpu_pools(facts, "nvidia")
    values: dict[str, Json] = {
        "driver": _driver(facts, pools),
        "toolkit": {"enabled": gpu.driver == "container"},
        "cdi": {"enabled": True},
        "nfd": {"enabled": not gpu_pools(facts, "amd")},
        "dcgmExporter": _exporter(facts),
        "mig": {"strategy": "single"},
        "migManager": {"enabled": any(facts.sharing(pool).mig for pool in pools)},
        "gdrcopy": {"enabled": gpu.driver == "container"},
    }
    tolerated = [_OF_GPUS, *of_plugins(facts)]
    values["daemonsets"] = {"tolerations": tolerated}
    if values["nfd"]["enabled"]:
        worker = {"tolerations": [_OF_CONTROL_PLANES, *tolerated]}
        values["node-feature-discovery"] = {"worker": worker}
    counts = {gpu.time_slices, *(facts.sharing(pool).time_slices for pool in pools)}
    if counts != {1}:
        values["devicePlugin"] = {
            "config": {
                "create": True,
                "name": TIME_SLICING,
                "default": slices_name(gpu.time_slices),
                "data": {slices_name(n): to_yaml(_time_slices(n)) for n in sorted(counts)},
            }
        }
    if gpu.resource_claims:
        values["clusterPolicy"] = {"deployCR": False}
        values["gpuCluster"] = {"deployCR": True}
        values["draDriver"] = {"computeDomains": {"enabled": bool(channel_pools(facts))}}
        if gpu.driver == "container":
            values["driver"] |= {"nvidiaDriverCRD": {"enabled": True}}
    return values


def _exporter(facts: KubernetesFacts) -> dict[str, Json]:
    """Return the exporter of GPUs, with the metrics that rules have; none without monitoring.

    Who scrapes it is an object of gcluster's own. Of GPUs that pods share it names each of them.
    """
    if facts.monitoring is None:
        return {"enabled": False}
    shared = any(facts.sharing(pool).time_slices > 1 for pool in gpu_pools(facts, "nvidia"))
    return {
        "enabled": True,
        "serviceMonitor": {"enabled": False},
        "config": {"name": "gcluster-dcgm-metrics", "create": True, "data": gpu_counters()},
        **({"env": [{"name": "KUBERNETES_VIRTUAL_GPUS", "value": "true"}]} if shared else {}),
    }


@cache
def gpu_counters() -> str:
    """Return DCGM exporter's table of metrics, which role dcgm_exporter installs as well."""
    collection = Path(__file__).parents[4] / "ansible_collections/gcluster/cluster"
    return (collection / "roles/dcgm_exporter/files/counters.csv").read_text(encoding="utf-8")


def _driver(facts: KubernetesFacts, pools: list[str]) -> dict[str, Json]:
    """Return who brings the driver; a precompiled one is named by its branch, so that is known."""
    if facts.scheduler.gpu.driver == "host":
        return {"enabled": False}
    version = next(filter(None, (facts.nodes[pool].version("driver") for pool in pools)), None)
    requested = any(facts.spec.pools[pool].gpus.modules == "precompiled" for pool in pools)
    precompiled = requested and version is not None
    peer_memory = any(facts.spec.pools[pool].gpus.peer_memory == "nvidia-peermem" for pool in pools)
    driver: dict[str, Json] = {
        "enabled": True,
        "kernelModuleType": "open",
        "usePrecompiled": precompiled,
        "rdma": {"enabled": peer_memory, "useHostMofed": facts.scheduler.control_plane != "aks"},
    }
    if version is not None:
        driver["version"] = version.split(".")[0] if precompiled else version
    return driver


def _time_slices(replicas: int) -> dict[str, Json]:
    """Return the device plugin's configuration: each GPU is offered so many times."""
    if replicas == 1:
        return {"version": "v1"}
    shared = {"resources": [{"name": "nvidia.com/gpu", "replicas": replicas}]}
    return {"version": "v1", "sharing": {"timeSlicing": shared}}


_OF_AMD: tuple[Json, ...] = (
    {"key": "amd-dcm", "operator": "Equal", "value": "up", "effect": "NoExecute"},
    {"key": "amd-gpu-unhealthy", "operator": "Exists", "effect": "NoSchedule"},
)
"""What workers of feature discovery tolerate in AMD's chart (helm-charts-k8s/values.yaml of
ROCm/gpu-operator at 6df13c1788c99dca734337287ebd317b15df9c71)."""


_AMD_EXPORTER_IMAGE = "docker.io/rocm/device-metrics-exporter:v1.5.0"
"""Of the operator's own release; without one it takes v0.0.1 (internal/metricsexporter, v1.5.0)."""


def amd_values(facts: KubernetesFacts) -> dict[str, Json]:
    """Return the values of AMD's GPU Operator: the devices are configured by `amd_devices`.

    Its own feature discovery labels the nodes; NVIDIA's is then off. Nodes bring the driver
    themselves (GC621), so nothing builds kernel modules.
    """
    return {
        "node-feature-discovery": {
            "enabled": True,
            "worker": {"tolerations": [*_OF_AMD, *of_plugins(facts)]},
        },
        "kmm": {"enabled": False},
        "crds": {"defaultCR": {"install": False}},
    }


def amd_devices(facts: KubernetesFacts) -> list[Object]:
    """Return the DeviceConfig of each pool with AMD's GPUs.

    Fields as in AMD's documentation of the operator, fulldeviceconfig (read 2026-11).
    """
    gpu, tolerated = facts.scheduler.gpu, of_plugins(facts)
    made = []
    for pool in gpu_pools(facts, "amd"):
        spec: dict[str, Json] = {
            "driver": {"enable": False},
            "devicePlugin": {
                "enableDevicePlugin": not gpu.resource_claims,
                "devicePluginTolerations": tolerated,
                "enableNodeLabeller": True,
                "nodeLabellerTolerations": tolerated,
            },
            "metricsExporter": {
                "enable": facts.monitoring is not None,
                "image": _AMD_EXPORTER_IMAGE,
                "serviceType": "ClusterIP",
                "tolerations": tolerated,
            },
            "selector": {POOL: pool},
        }
        if gpu.resource_claims:
            spec["draDriver"] = {"enable": True, "tolerations": tolerated}
        made.append(
            new("amd.com/v1alpha1", "DeviceConfig", pool, namespace=AMD_NAMESPACE, spec=spec)
        )
    return made


def claim_template(facts: KubernetesFacts, vendor: str, count: int) -> str:
    """Return the template by which a pod claims so many GPUs of a maker: one, or a node's."""
    name = CLAIM if count == 1 else f"{CLAIM}s-{count}"
    return name if len(_claimed(facts)) == 1 else f"{vendor}-{name}"


def _claimed(facts: KubernetesFacts) -> dict[str, list[int]]:
    """Return maker -> how many GPUs a template claims: one, and those of each kind of node."""
    found: dict[str, set[int]] = {}
    for pool in facts.compute:
        if (gpu := facts.machine(pool).gpu) is not None:
            found.setdefault(gpu.vendor, {1}).add(gpu.count)
    return {vendor: sorted(counts) for vendor, counts in sorted(found.items())}


def claimed_counts(facts: KubernetesFacts) -> dict[str, dict[str, int]]:
    """Return maker -> template -> GPUs that it claims; {}: GPUs are not claimed."""
    if not facts.scheduler.gpu.resource_claims:
        return {}
    return {
        vendor: {claim_template(facts, vendor, count): count for count in counts}
        for vendor, counts in _claimed(facts).items()
    }


def claim_templates(facts: KubernetesFacts) -> list[Object]:
    """Return templates for each account's namespace by which its pods claim GPUs."""
    return [
        _template(name, account, vendor, count)
        for account in facts.accounts
        for vendor, templates in claimed_counts(facts).items()
        for name, count in templates.items()
    ]


def _template(name: str, account: str, vendor: str, count: int) -> Object:
    request: dict[str, Json] = {"deviceClassName": DEVICE_CLASSES[vendor]}
    request |= {"count": count} if count > 1 else {}
    devices = {"requests": [{"name": "gpu", "exactly": request}]}
    return new(
        "resource.k8s.io/v1",
        "ResourceClaimTemplate",
        name,
        namespace=account,
        spec={"spec": {"devices": devices}},
    )


_SOCKETS = "/var/lib/kubelet/device-plugins"


def simulated_plugins(facts: KubernetesFacts) -> list[Object]:
    """Return a device plugin for each pool of simulated machines with GPUs.

    Pods use the real API: they request nvidia.com/gpu and get a name without a device.
    """
    return [
        _plugin(facts, pool)
        for pool in facts.compute
        if facts.machine(pool).simulated and gpu_count(facts.machine(pool))
    ]


def _plugin(facts: KubernetesFacts, pool: str) -> Object:
    name = f"simulated-gpu-{pool}"
    labels = {"app.kubernetes.io/name": name, SIMULATED: "true"}
    count = gpu_count(facts.machine(pool)) * units_per_gpu(facts, pool)
    container = {
        "name": "simulated-gpu",
        "image": f"{BUILT}/{SIMULATED_GPU}",
        "imagePullPolicy": "IfNotPresent",
        "args": [f"-count={count}", f"-resource={gpu_resource(facts, pool)}"],
        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}},
        "volumeMounts": [{"name": "sockets", "mountPath": _SOCKETS}],
    }
    pod = {
        "priorityClassName": "system-node-critical",
        "automountServiceAccountToken": False,
        "nodeSelector": {POOL: pool, SIMULATED: "true"},
        "tolerations": [{"operator": "Exists"}],
        "containers": [container],
        "volumes": [{"name": "sockets", "hostPath": {"path": _SOCKETS}}],
    }
    spec = {
        "selector": {"matchLabels": {"app.kubernetes.io/name": name}},
        "updateStrategy": {"rollingUpdate": {"maxUnavailable": "10%"}},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    return new("apps/v1", "DaemonSet", name, namespace=SYSTEM_NAMESPACE, labels=labels, spec=spec)
