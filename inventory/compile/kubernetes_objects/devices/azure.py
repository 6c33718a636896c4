"""InfiniBand on AKS' nodes, which no role reaches: the adapters' driver, and memory to pin.

AKS leaves containerd systemd's default limit of locked memory (Azure/AgentBaker at 06836ee,
parts/linux/cloud-init/artifacts/containerd.service, read 2026-11), far below what RDMA registers.
Microsoft's examples add IPC_LOCK, which helps root alone (Azure/aks-rdma-infiniband at 700dabb);
accounts' pods are ordinary users, so the limit itself is lifted where the adapters are.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...steps import Json
from ..facts import KubernetesFacts
from ..nodes import POOL, of_plugins
from ..objects import Object, new

DRIVER = "doca-driver", "doca3.4.1-26.04-1.1.0.0-1"
"""Image and version of the adapters' driver, as the Network Operator 26.4.1 has it (example/crs,
mellanox.com_v1alpha1_nicclusterpolicy_cr-full)."""
_BLACKLIST = "/host/etc/modprobe.d/blacklist-ofed-modules.conf"
MEMORY = "pinned-memory"
"""The DaemonSet that lifts the limit."""
_DROP_IN = "/etc/systemd/system/containerd.service.d/50-gcluster-memlock.conf"
"""As role containerd has it on other nodes."""
LIFT = f"""\
set -e
mkdir -p {_DROP_IN.rpartition("/")[0]}
printf '[Service]\\nLimitMEMLOCK=infinity\\n' > {_DROP_IN}
systemctl daemon-reload
for pid in $(pidof containerd); do prlimit --pid "$pid" --memlock=unlimited:unlimited; done
exec sleep infinity
"""
"""What the node's shell runs: for the containerd that runs now, whose containers inherit the limit,
and for each that starts later. Nothing is restarted."""
_HOST = "/host"
_LIBRARIES = {
    "x86_64": ("lib/x86_64-linux-gnu", "ld-linux-x86-64.so.2"),
    "aarch64": ("lib/aarch64-linux-gnu", "ld-linux-aarch64.so.1"),
}
"""Architecture -> Ubuntu's libraries and the loader among them: AKS' pools have Ubuntu's image."""


def adapters_driver() -> dict[str, Json]:
    """Return what differs from other components of the policy: NVIDIA's times, Microsoft's file."""
    drain = {"enable": True, "force": True, "deleteEmptyDir": True, "timeoutSeconds": 300}
    return {
        "env": [{"name": "OFED_BLACKLIST_MODULES_FILE", "value": _BLACKLIST}],
        "upgradePolicy": {"autoUpgrade": True, "maxParallelUpgrades": 1, "drain": drain},
        "startupProbe": {"initialDelaySeconds": 10, "periodSeconds": 20},
        "livenessProbe": {"initialDelaySeconds": 30, "periodSeconds": 30},
        "readinessProbe": {"initialDelaySeconds": 10, "periodSeconds": 30},
    }


def only_on(pools: Sequence[str]) -> dict[str, Json]:
    """Return the policy's affinity to pools.

    The operator goes by a label that the GPU Operator's feature discovery gives every node with an
    adapter of NVIDIA's for Ethernet too (deviceClassWhitelist 02 of its chart 26.7), and Azure's
    accelerated networking is such an adapter: system nodes would get the driver, and a new one.
    """
    term = {"key": POOL, "operator": "In", "values": list(pools)}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [term]}]}
    return {"requiredDuringSchedulingIgnoredDuringExecution": terms}


def pinned_memory(
    facts: KubernetesFacts, pools: Sequence[str], namespace: str, image: str
) -> list[Object]:
    """Return what lets every container of these pools' nodes pin memory, a DaemonSet each.

    Args:
        facts: the cluster.
        pools: those with InfiniBand.
        namespace: one that admits privileged pods.
        image: any that is on the nodes: all that runs is the node's own.
    """
    return [_daemons(facts, pool, namespace, image) for pool in pools]


def _daemons(facts: KubernetesFacts, pool: str, namespace: str, image: str) -> Object:
    name = f"{MEMORY}-{pool}"
    labels = {"app.kubernetes.io/name": name}
    container: dict[str, Json] = {
        "name": MEMORY,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": command(facts.machine(pool).cpu.architecture),
        "env": [{"name": "PATH", "value": "/usr/sbin:/usr/bin:/sbin:/bin"}],
        "resources": {"requests": {"cpu": "1m", "memory": "8Mi"}},
        "securityContext": {"privileged": True, "runAsUser": 0},
        "volumeMounts": [{"name": "node", "mountPath": _HOST, "readOnly": True}],
    }
    pod = {
        "priorityClassName": "system-node-critical",
        "automountServiceAccountToken": False,
        "hostPID": True,
        "nodeSelector": {POOL: pool},
        "tolerations": of_plugins(facts),
        "terminationGracePeriodSeconds": 1,
        "containers": [container],
        "volumes": [{"name": "node", "hostPath": {"path": "/"}}],
    }
    spec = {
        "selector": {"matchLabels": labels},
        "updateStrategy": {"rollingUpdate": {"maxUnavailable": "100%"}},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    return new("apps/v1", "DaemonSet", name, namespace=namespace, labels=labels, spec=spec)


def command(architecture: str, root: str = _HOST) -> list[str]:
    """Return what enters the node's own file system and runs LIFT there, from any image.

    Args:
        architecture: of the machine, as the catalog has it.
        root: where the node's file system is.
    """
    libraries, loader = _LIBRARIES[architecture]
    return [
        *(f"{root}/{libraries}/{loader}", "--library-path", f"{root}/{libraries}"),
        *(f"{root}/usr/bin/nsenter", "--target", "1", "--mount", "--"),
        *("/bin/sh", "-c", LIFT),
    ]
