"""NVLink between nodes (NVL72): channels of IMEX for pods, by NVIDIA's DRA driver.

A ComputeDomain goes with a job: for each node that one of its pods comes to, the driver starts IMEX
there, and gives the pod a channel when it runs. Objects and fields are those of release v0.4.1 of
github.com/kubernetes-sigs/dra-driver-nvidia-gpu (its site and demo/specs/imex, read 2026-11).
GPUs stay with the device plugin, unless the spec has them claimed.
"""

from __future__ import annotations

from ...steps import Json
from ..facts import KubernetesFacts, has_channels
from ..nodes import POOL, of_plugins
from ..objects import Object, new

ADDON = "dra-driver-nvidia-gpu"
DRIVER = "compute-domain.nvidia.com"
"""Name of the driver in nodes' ResourceSlices."""
CHANNEL_CLASS = "compute-domain-default-channel.nvidia.com"
DAEMON_CLASS = "compute-domain-daemon.nvidia.com"
"""Device class of the driver's own pods, which run IMEX. The driver doesn't check whose domain a
claim of it names, so accounts may claim none."""
_CONTAINED_DRIVER = "/run/nvidia/driver"
"""Where the GPU Operator's driver containers have the driver on the node."""
_GROUP = "resource.nvidia.com"


def channel_pools(facts: KubernetesFacts) -> list[str]:
    """Return the compute pools whose pods get channels."""
    return [pool for pool in facts.compute if has_channels(facts, pool)]


def needs_driver(facts: KubernetesFacts) -> bool:
    """Whether the driver is an add-on of its own: with claimed GPUs the GPU Operator brings it."""
    return bool(channel_pools(facts)) and not facts.scheduler.gpu.resource_claims


def driver_values(facts: KubernetesFacts) -> dict[str, Json]:
    """Return the chart's values: channels alone, on the nodes whose NVLink reaches others."""
    on_pools = {"key": POOL, "operator": "In", "values": channel_pools(facts)}
    term = {"nodeSelectorTerms": [{"matchExpressions": [on_pools]}]}
    of_gpus = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
    return {
        "nvidiaDriverRoot": _CONTAINED_DRIVER if facts.scheduler.gpu.driver == "container" else "/",
        "resources": {"gpus": {"enabled": False}, "computeDomains": {"enabled": True}},
        "kubeletPlugin": {
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}},
            "tolerations": [of_gpus, *of_plugins(facts)],
        },
    }


def channel_template(name: str) -> str:
    """Return the claim template that the driver makes for the domain of a job."""
    return f"{name}-channel"


def compute_domain(name: str, namespace: str, labels: dict[str, str] | None = None) -> Object:
    """Return the domain of a job's pods.

    `numNodes` is 0, as the driver's documentation recommends: a pod starts when IMEX runs on its
    own node, and is not held back for the others.
    """
    template = {"resourceClaimTemplate": {"name": channel_template(name)}}
    return new(
        f"{_GROUP}/v1beta1",
        "ComputeDomain",
        name,
        namespace=namespace,
        labels=labels,
        spec={"numNodes": 0, "channel": template},
    )


CLAIM = "imex-channel"
"""What a pod calls its channel."""


def claim_channel(pod: dict[str, Json], name: str) -> None:
    """Have a pod's first container claim the channel of a job's domain."""
    claim: dict[str, Json] = {"name": CLAIM, "resourceClaimTemplateName": channel_template(name)}
    pod.setdefault("resourceClaims", []).append(claim)
    pod["containers"][0]["resources"].setdefault("claims", []).append({"name": CLAIM})


MEMBERS_RULE: tuple[list[str], list[str]] = ([_GROUP], ["computedomains"])
"""API group and resource of what accounts make for their jobs."""
