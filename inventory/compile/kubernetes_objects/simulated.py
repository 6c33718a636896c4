"""GPUs that don't exist: a device plugin for the nodes of simulated machines, named as that."""

from __future__ import annotations

from ..slurm_nodes import gpu_count
from .capacity import gpu_resource, units_per_gpu
from .facts import KubernetesFacts
from .images import BUILT, SIMULATED_GPU
from .nodes import POOL, SIMULATED
from .objects import SYSTEM_NAMESPACE, Object, new

_SOCKETS = "/var/lib/kubelet/device-plugins"


def simulated_plugins(facts: KubernetesFacts) -> list[Object]:
    """Return a device plugin for each pool of simulated machines with GPUs.

    Pods take the real way to them: they ask for nvidia.com/gpu and get a name of no device.
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
