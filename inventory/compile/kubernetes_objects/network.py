"""The pod network by choice: values for Cilium or Calico; the routed one is the nodes' own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias

from ..network.cloud_fabrics import DAEMON
from ..steps import Json

if TYPE_CHECKING:
    from ....schemas.catalog import Addon
    from .facts import KubernetesFacts


Cni: TypeAlias = Literal["cilium", "calico", "routed", "cloud"]
API_PORT = 6443
"""Port of the API server: kubeadm's default."""


def cni(facts: KubernetesFacts) -> Cni:
    """Return the pod network; auto: routed where all nodes are made on this machine.

    A cloud's own control plane brings its cloud's.
    """
    if facts.scheduler.control_plane != "self":
        return "cloud"
    wanted = facts.scheduler.cni
    if wanted != "auto":
        return wanted
    here = all(site.is_made_here for site in facts.spec.sites.values())
    return "routed" if here else "cilium"


def spans_sites(facts: KubernetesFacts) -> bool:
    """Whether nodes are at several sites, or in a cloud: pods' addresses aren't routed there."""
    sites = {pool.site for pool in facts.spec.pools.values()}
    return len(sites) > 1 or any(facts.spec.sites[name].is_cloud for name in sites)


def api_endpoint(facts: KubernetesFacts) -> str:
    """Return what agents on nodes reach the API server by; "" while it isn't known."""
    if facts.scheduler.virtual_address is not None:
        return facts.scheduler.virtual_address.address
    controllers = facts.inventory.with_role("controller")
    return (controllers[0].address or controllers[0].name) if controllers else ""


def cilium_values(facts: KubernetesFacts) -> dict[str, Json]:
    """Return Cilium's values: addresses from the nodes' pod networks, services by kube-proxy.

    `cni.exclusive: false` leaves Multus' configuration in place. kube-proxy stays: role kubernetes
    sets it up, and Cilium beside it needs no address of the API server to start.
    """
    values: dict[str, Json] = {
        "ipam": {"mode": "kubernetes"},
        "k8s": {"requireIPv4PodCIDR": True},
        "kubeProxyReplacement": False,
        "cni": {"exclusive": False},
        "operator": {"replicas": 1 if len(facts.inventory.with_role("controller")) < 2 else 2},  # noqa: PLR2004  # of two one may fail
        "hubble": {"enabled": facts.spec.monitoring is not None},
    }
    if spans_sites(facts):
        return values | {"routingMode": "tunnel", "tunnelProtocol": "vxlan"}
    return values | {
        "routingMode": "native",
        "autoDirectNodeRoutes": True,
        "ipv4NativeRoutingCIDR": facts.scheduler.pod_cidr,
    }


def calico_values(facts: KubernetesFacts) -> dict[str, Json]:
    """Return the values of Tigera's operator, which sets Calico up."""
    encapsulation = "VXLAN" if spans_sites(facts) else "VXLANCrossSubnet"
    return {
        "installation": {
            "enabled": True,
            "cni": {"type": "Calico"},
            "calicoNetwork": {
                "bgp": "Disabled",
                "ipPools": [
                    {
                        "cidr": facts.scheduler.pod_cidr,
                        "encapsulation": encapsulation,
                        "natOutgoing": "Enabled",
                        "nodeSelector": "all()",
                    }
                ],
            },
        }
    }


INSTALLERS = {"gpudirect-tcpxo": "gke-tcpxo-installer", "gib": "gke-gib-installer"}
"""Fabric class -> add-on that puts its libraries on GKE's nodes."""
HOST_LIBRARIES = "/home/kubernetes/bin"
"""Where the installers put nvidia/lib64 and gib: gpudirect-tcpxo/nccl-tcpxo-installer.yaml and
gpudirect-rdma/nccl-rdma-installer.yaml of container-engine-accelerators (read 2026-11)."""
_NVIDIA, _GIB = "/usr/local/nvidia", "/usr/local/gib"
_DEVICES = {"gpudirect-tcpxo": ("/dev/aperture_devices",), "gib": ("/dev/infiniband",)}
_TUNED = ("NCCL_TUNER_CONFIG_PATH", "NCCL_SHIMNET_GUEST_CONFIG_CHECKER_CONFIG_FILE")
"""Settings that are a file beside the plugin's libraries."""


def devices(fabric: str) -> tuple[str, ...]:
    """Return the paths of a fabric's devices, the same on the node and in pods."""
    return _DEVICES.get(fabric, ())


def libraries(fabric: str) -> dict[str, str]:
    """Return folder on the node -> folder in pods, as Google's own tests mount them."""
    folders = {f"{HOST_LIBRARIES}/nvidia": _NVIDIA}
    return folders | ({f"{HOST_LIBRARIES}/gib": _GIB} if fabric == "gib" else {})


def environment(fabric: str, interfaces: int, given: dict[str, str]) -> dict[str, str]:
    """Return a fabric's settings by the names that GKE's nodes have.

    Args:
        fabric: gpudirect-tcpxo or gib.
        interfaces: network interfaces beside the node's own, for TCPXO.
        given: the fabric class's settings, as Slurm's nodes have them.
    """
    folder = f"{_NVIDIA}/lib64"
    if fabric == "gib":
        named = {"NCCL_SOCKET_IFNAME": "eth0,eth1"}
        return given | named | {"LD_LIBRARY_PATH+": f"{_GIB}/lib64:{folder}"}
    ours = ",".join(f"eth{number}" for number in range(1, interfaces + 1))
    named = {
        "NCCL_FASTRAK_CTRL_DEV": "eth0",
        "NCCL_SOCKET_IFNAME": "eth0",
        "NCCL_FASTRAK_IFNAME": ours,
        "LD_LIBRARY_PATH+": folder,
    }
    tuned = {name: f"{folder}/{given[name].rpartition('/')[2]}" for name in _TUNED if name in given}
    return given | named | tuned


def daemon(fabric: str, addons: Mapping[str, Addon]) -> str:
    """Return the image of the receive daemon of a fabric's installer; "": it has none."""
    images = addons[INSTALLERS[fabric]].images
    found = [(name, digest) for name, digest in images.items() if f"/{DAEMON}:" in name]
    return "".join(f"{name}@{digest}" if digest else name for name, digest in found)
