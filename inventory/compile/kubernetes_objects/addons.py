"""The add-ons that a cluster needs, in the order in which they are applied, with their values."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ....schemas.catalog import Addon
from ..steps import Json
from .fabric import EFA_RESOURCE, fabric_access
from .fabric import (
    uses_network_operator as has_adapters,
)
from .facts import KubernetesFacts
from .google_fabrics import INSTALLERS
from .gpus import (
    amd_values,
    gke_brings_gpus,
    gpu_pools,
    nvidia_values,
)
from .kueue_values import kueue_values
from .nodes import MACHINE
from .objects import Object, new
from .pod_network import (
    calico_values,
    cilium_values,
    cni,
)
from .storage_classes import (
    LOCAL_PATH,
    local_folders,
)
from .volumes import csi_addons


class ChosenAddon(msgspec.Struct, frozen=True, kw_only=True):
    """An add-on that the cluster needs."""

    addon: Addon
    values: dict[str, Json] = {}
    """Helm values; {} for manifests, and where the chart's own are right."""


ORDER = (
    "cilium", "calico-crds", "tigera-operator", "amd-gpu-operator", "gpu-operator",
    "network-operator", "aws-efa-device-plugin", "gke-tcpxo-installer", "gke-gib-installer",
    "aws-fsx-csi-driver", "azurelustre-csi-driver", "csi-driver-nfs",
    "aws-mountpoint-s3-csi-driver", "blob-csi-driver", "local-path-provisioner",
    "jobset", "mpi-operator", "kueue",
)  # fmt: skip
"""The pod network first, what jobs need next, and last what admits jobs of kinds that are there."""
_NETWORKS = {"cilium": ("cilium",), "calico": ("calico-crds", "tigera-operator")}


def chosen_addons(facts: KubernetesFacts) -> list[ChosenAddon]:
    """Return the add-ons that the spec needs or names, with their values, in order."""
    needed = (_needed(facts) | set(facts.scheduler.addons)) - facts.without
    ranked = sorted(needed, key=lambda n: (ORDER.index(n) if n in ORDER else len(ORDER), n))
    values = _values()
    return [
        ChosenAddon(
            addon=facts.catalog.addons[name],
            values=values[name](facts) if name in values else {},
        )
        for name in ranked
    ]


def addon_namespaces(facts: KubernetesFacts) -> list[Object]:
    """Return the namespaces of the add-ons; the one of the system is there already."""
    found: dict[str, bool] = {}
    for chosen in chosen_addons(facts):
        name = chosen.addon.namespace
        found[name] = found.get(name, False) or chosen.addon.privileged
    return [
        new(
            "v1",
            "Namespace",
            name,
            labels={"pod-security.kubernetes.io/enforce": "privileged" if host else "baseline"},
        )
        for name, host in sorted(found.items())
        if name != "kube-system"
    ]


def unfilled(facts: KubernetesFacts) -> dict[str, list[str]]:
    """Return add-on -> what of it has no digest: "" is the chart or manifest itself."""
    found = {one.addon.name: one.addon.unfilled for one in chosen_addons(facts)}
    return {name: missing for name, missing in found.items() if missing}


def _needed(facts: KubernetesFacts) -> set[str]:
    needed = set(_NETWORKS.get(cni(facts), ()))
    if gpu_pools(facts, "nvidia") and not gke_brings_gpus(facts):
        needed.add("gpu-operator")
    if gpu_pools(facts, "amd"):
        needed.add("amd-gpu-operator")
    if has_adapters(facts):
        needed.add("network-operator")
    if _efa_machines(facts):
        needed.add("aws-efa-device-plugin")
    if facts.scheduler.kueue:
        needed.add("kueue")
    if facts.scheduler.control_plane == "gke":
        classes = {facts.nodes[pool].fabric_class for pool in facts.compute}
        needed |= {addon for name, addon in INSTALLERS.items() if name in classes}
    return needed | csi_addons(facts)


def _efa_machines(facts: KubernetesFacts) -> list[str]:
    return sorted(
        {
            facts.machine(pool).name
            for pool in facts.compute
            if EFA_RESOURCE in fabric_access(facts, pool).resources
        }
    )


def _efa_values(facts: KubernetesFacts) -> dict[str, Json]:
    """Return which nodes the plugin runs on: the label is ours, for nodes that no cloud labels."""
    return {"supportedInstanceLabels": {"keys": [MACHINE], "values": _efa_machines(facts)}}


def _local_path_values(facts: KubernetesFacts) -> dict[str, Json]:
    """Return where on nodes volumes are made; its class is written beside the others."""
    return {
        "storageClass": {"create": False, "provisionerName": "rancher.io/local-path"},
        "nodePathMap": [
            {"node": "DEFAULT_PATH_FOR_NON_LISTED_NODES", "paths": [LOCAL_PATH]},
            *({"node": n, "paths": [path]} for n, path in local_folders(facts).items()),
        ],
    }


def _values() -> dict[str, Callable[[KubernetesFacts], dict[str, Json]]]:
    return {
        "cilium": cilium_values,
        "tigera-operator": calico_values,
        "gpu-operator": nvidia_values,
        "amd-gpu-operator": amd_values,
        "network-operator": lambda _: {
            "nfd": {"enabled": False},
            "sriovNetworkOperator": {"enabled": False},
        },
        "aws-efa-device-plugin": _efa_values,
        "local-path-provisioner": _local_path_values,
        "kueue": kueue_values,
    }
