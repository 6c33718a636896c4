"""What pods need to reach the fabric between nodes: device plugins, secondary networks, host paths.

InfiniBand and EFA need devices only: a pod gets them from a device plugin and keeps its network.
RoCE needs the rail's interface itself, with an address: one network a rail (`rdma.pods`). Google's
fabrics are for GKE, which gives pods the interfaces themselves; its installers bring the libraries.
No pod of an account has its node's network, its paths or its devices by their names.
"""

from __future__ import annotations

import json
from ipaddress import ip_network

import msgspec

from ...gpu.nccl import job_environment
from ...steps import Json
from ..facts import KubernetesFacts
from ..nodes import of_plugins
from ..objects import Object, new
from .azure import DRIVER, adapters_driver, only_on, pinned_memory
from .google import (
    DAEMON_ANNOTATIONS,
    INSTALLERS,
    HostFolder,
    google_daemon,
    google_environment,
    google_folders,
    google_interfaces,
    google_networks,
)

OPERATOR_NAMESPACE = "nvidia-network-operator"
EFA_RESOURCE = "vpc.amazonaws.com/efa"
INFINIBAND_RESOURCE = "rdma/ib"
EFA_HUGE_PAGES = "5120Mi"
"""Huge pages (2 MiB) that libfabric's EFA provider takes in a pod with all of a p5's interfaces
(EKS user guide, node-efa: hugepages-2Mi: 5120Mi; read 2026-11)."""
_SHARED_PLUGIN = "k8s-rdma-shared-dev-plugin"
_MELLANOX = "15b3"
"""PCI vendor of ConnectX adapters."""


class FabricAccess(msgspec.Struct, frozen=True, kw_only=True):
    """What a pod on a whole node of a pool requests in addition to its GPUs."""

    networks: tuple[str, ...] = ()
    """Secondary networks, one a rail, as namespace/name (Multus)."""
    interfaces: tuple[str, ...] = ()
    """GKE's networks, whose interfaces are called eth1, eth2 and so on in the pod."""
    resources: dict[str, str] = {}
    folders: tuple[HostFolder, ...] = ()
    daemon: str = ""
    """Image of the receive daemon, a sidecar of the ranks."""
    environment: dict[str, str] = {}
    """The fabric class's and the machine's: the same that Slurm gives jobs; the value of NAME+ goes
    before what NAME has."""

    @property
    def annotations(self) -> dict[str, str]:
        """A pod's settings of its interfaces, and of the devices of the daemon in it."""
        found: dict[str, str] = {}
        if self.networks:
            found["k8s.v1.cni.cncf.io/networks"] = ", ".join(self.networks)
        if self.interfaces:
            found |= google_interfaces(self.interfaces)
        if self.daemon:
            found |= DAEMON_ANNOTATIONS
        return found


def fabric_access(facts: KubernetesFacts, pool: str) -> FabricAccess:
    """Return what pods on a pool's nodes need of the fabric; nothing on simulated nodes."""
    node = facts.nodes[pool]
    fabric, count = node.fabric, node.fabric_interfaces
    if fabric is None or node.gpu is None:
        return FabricAccess()
    environment = job_environment(node)
    if fabric.plugin == "efa":
        resources = {EFA_RESOURCE: str(count), "hugepages-2Mi": EFA_HUGE_PAGES} if count else {}
        return FabricAccess(resources=resources, environment=environment)
    if fabric.name in INSTALLERS:
        return _googles(facts, fabric.name, count, environment)
    if fabric.nic_kind == "infiniband":
        return FabricAccess(resources={INFINIBAND_RESOURCE: "1"}, environment=environment)
    if fabric.nic_kind == "roce":
        return _roce(facts, pool, environment)
    return FabricAccess(environment=environment)


def _googles(
    facts: KubernetesFacts, fabric: str, count: int, environment: dict[str, str]
) -> FabricAccess:
    """Return what pods need of a fabric of Google's on GKE's nodes; others don't get it (GC741)."""
    if facts.scheduler.control_plane != "gke":
        return FabricAccess()
    return FabricAccess(
        interfaces=google_networks(fabric, count),
        folders=google_folders(fabric),
        daemon=google_daemon(fabric, facts.catalog.addons),
        environment=google_environment(fabric, count, environment),
    )


def _roce(facts: KubernetesFacts, pool: str, environment: dict[str, str]) -> FabricAccess:
    names = rail_names(facts, pool)
    if not names:  # GC741 reports it
        return FabricAccess()
    return FabricAccess(
        networks=tuple(f"{OPERATOR_NAMESPACE}/{name}" for name in names),
        resources={f"nvidia.com/{rail_resource(name)}": "1" for name in names},
        environment=environment | {"NCCL_SOCKET_IFNAME": "eth0"},
    )


def rail_names(facts: KubernetesFacts, pool: str) -> list[str]:
    """Return the networks of a RoCE pool's rails; [] where pods have no addresses on them."""
    pods = facts.spec.pools[pool].rdma.pods
    if pods is None or _kind(facts, pool) != "roce":
        return []
    return [f"{pool}-rail-{number}" for number in range(len(pods.interfaces))]


def rail_resource(network: str) -> str:
    """Return what a rail's interfaces are counted as: its network's name, without hyphens.

    The SR-IOV device plugin takes letters, digits and underscores, and with any other name in its
    configuration it offers nothing at all (sriov-network-device-plugin, README and
    ValidResourceName; read 2026-11).
    """
    return network.replace("-", "_")


def rail_subnets(network: str, rails: int) -> list[str]:
    """Return one network a rail, all of one size, out of the one that the spec gives."""
    whole = ip_network(network)
    bits = max(1, (rails - 1).bit_length()) if rails > 1 else 0
    parts = whole.subnets(prefixlen_diff=bits)
    return [str(part) for part, _ in zip(parts, range(rails), strict=False)]


def with_daemon(facts: KubernetesFacts) -> dict[str, str]:
    """Return account -> image of the receive daemon in its pods."""
    found: dict[str, str] = {}
    for account in facts.accounts:
        pools = {p for name in facts.partitions_of(account) for p in facts.partitions[name].pools}
        images = {fabric_access(facts, pool).daemon for pool in pools} - {""}
        found |= dict.fromkeys([account], *images) if images else {}
    return found


def uses_network_operator(facts: KubernetesFacts) -> bool:
    """Whether a pool's adapters are InfiniBand's or RoCE's."""
    return bool(_pools_of(facts, "infiniband", "roce"))


def network_objects(facts: KubernetesFacts) -> list[Object]:
    """Return the Network Operator's policy and, for RoCE, addresses and a network a rail."""
    if not uses_network_operator(facts):
        return []
    made = [_nic_policy(facts)]
    if facts.scheduler.control_plane == "aks":
        pools = _pools_of(facts, "infiniband")
        made += pinned_memory(facts, pools, OPERATOR_NAMESPACE, _image(facts, _SHARED_PLUGIN))
    for pool in facts.compute:
        names, pods = rail_names(facts, pool), facts.spec.pools[pool].rdma.pods
        if pods is None or not names:
            continue
        for name, subnet in zip(names, rail_subnets(pods.network, len(names)), strict=True):
            made += [_address_pool(facts, pool, name, subnet), _rail_network(name)]
    return made


def _kind(facts: KubernetesFacts, pool: str) -> str | None:
    node = facts.nodes[pool]
    known = node.fabric is not None and node.gpu is not None and node.fabric.plugin == "ofed"
    return node.fabric.nic_kind if known and node.fabric is not None else None


def _pools_of(facts: KubernetesFacts, *kinds: str) -> list[str]:
    return [pool for pool in facts.compute if _kind(facts, pool) in kinds]


def _image(facts: KubernetesFacts, name: str) -> str:
    """Return an image of the operator's, by its digest where that is known."""
    images = facts.catalog.addons["network-operator"].images
    ((image, digest),) = ((one, at) for one, at in images.items() if f"/{name}:" in one)
    return f"{image}@{digest}" if digest else image


def _nic_policy(facts: KubernetesFacts) -> Object:
    """Return the one policy of the cluster's adapters; their drivers are the nodes' own (ofed).

    No role reaches AKS' nodes: there the operator brings the drivers, as Microsoft's own policy
    does (Azure/aks-rdma-infiniband, configs/nicclusterpolicy/base, read 2026-11).
    Fields as in NVIDIA's Network Operator 26.4.1, customizations/cr-full-example (read 2026-11).
    """
    version = f"network-operator-v{facts.catalog.addons['network-operator'].version}"
    spec: dict[str, Json] = {}
    # With nothing to share the plugin exits ("no resources configuration found").
    if _pools_of(facts, "infiniband"):
        adapters = {"vendors": [_MELLANOX], "linkTypes": ["infiniband"]}
        shared = [{"resourceName": "ib", "rdmaHcaMax": 63, "selectors": adapters}]
        spec["rdmaSharedDevicePlugin"] = _component(
            _SHARED_PLUGIN, version, config=_json({"configList": shared})
        )
        if facts.scheduler.control_plane == "aks":
            spec["ofedDriver"] = _component(*DRIVER, **adapters_driver())
            spec["nodeAffinity"] = only_on(_pools_of(facts, "infiniband"))
    rails = [
        (name, device)
        for pool in facts.compute
        for name, device in zip(rail_names(facts, pool), _devices(facts, pool), strict=True)
    ]
    if rails:
        listed = [
            {
                "resourcePrefix": "nvidia.com",
                "resourceName": rail_resource(name),
                "selectors": {"vendors": [_MELLANOX], "isRdma": True, "pfNames": [device]},
            }
            for name, device in rails
        ]
        config = _json({"resourceList": listed})
        spec["sriovDevicePlugin"] = _component(
            "sriov-network-device-plugin", version, config=config
        )
        spec["nvIpam"] = _component("nvidia-k8s-ipam", version, enableWebhook=False)
        spec["secondaryNetwork"] = {
            "cniPlugins": _component("plugins", version),
            "multus": _component("multus-cni", version),
        }
    if tolerated := of_plugins(facts):
        spec["tolerations"] = tolerated
    return new("mellanox.com/v1alpha1", "NicClusterPolicy", "nic-cluster-policy", spec=spec)


def _devices(facts: KubernetesFacts, pool: str) -> list[str]:
    """Return the interface of each rail that pods get, in order."""
    pods = facts.spec.pools[pool].rdma.pods
    return [] if pods is None or not rail_names(facts, pool) else pods.interfaces


def _component(image: str, version: str, **more: Json) -> dict[str, Json]:
    return {
        "image": image,
        "repository": "nvcr.io/nvidia/mellanox",
        "version": version,
        "imagePullSecrets": [],
        **more,
    }


def _json(value: Json) -> str:
    return json.dumps(value, indent=2)


def _address_pool(facts: KubernetesFacts, pool: str, name: str, subnet: str) -> Object:
    """Return the addresses of a rail: each node has a block of them for its pods."""
    per_node = max(2, (ip_network(subnet).num_addresses - 2) // max(1, facts.most(pool)))
    spec = {"subnet": subnet, "perNodeBlockSize": min(per_node, 64)}
    return new(
        "nv-ipam.nvidia.com/v1alpha1", "IPPool", name, namespace=OPERATOR_NAMESPACE, spec=spec
    )


def _rail_network(name: str) -> Object:
    spec = {
        "networkNamespace": OPERATOR_NAMESPACE,
        "resourceName": rail_resource(name),
        "ipam": _json({"type": "nv-ipam", "poolName": name}),
    }
    return new("mellanox.com/v1alpha1", "HostDeviceNetwork", name, spec=spec)
