"""Google's fabrics for pods of GKE: networks, folders of the node, the receive daemon.

GKE gives a pod the interfaces themselves (multi-networking), so it needs no network of its node.
Libraries are in folders of the node; accounts mount them by claims of volumes with these folders,
since pods may mount none themselves. All names are those of Google's own tests
(GoogleCloudPlatform/container-engine-accelerators at 992db81, gpudirect-tcpxo/
nccl-test-latest.yaml and gpudirect-rdma/nccl-test.yaml; read 2026-11).
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import msgspec

from .....schemas.catalog import Addon
from ...network.cloud_fabrics import DAEMON
from ...steps import Json
from ..facts import KubernetesFacts
from ..objects import Object, new

TCPXO = "gpudirect-tcpxo"
INSTALLERS = {TCPXO: "gke-tcpxo-installer", "gib": "gke-gib-installer"}
"""Fabric class -> add-on that puts its libraries on GKE's nodes."""
INJECTOR = "gke-device-injector"
"""Add-on that gives the receive daemon its devices, so that it need not be privileged."""
HOST_LIBRARIES = "/home/kubernetes/bin"
"""Where the installers put nvidia/lib64 and gib: gpudirect-tcpxo/nccl-tcpxo-installer.yaml and
gpudirect-rdma/nccl-rdma-installer.yaml of container-engine-accelerators (read 2026-11)."""
DAEMON_NAME = "tcpxo-daemon"
DEVICES = "devices.gke.io/"
"""Prefix of the annotations by which Google's injector gives containers devices of their node: any
device, with any owner (nri_device_injector/README.md). So they are forbidden to all others."""
_OF_DAEMON = (
    *(f"/dev/nvidia{number}" for number in range(8)),
    *("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/dmabuf_import_helper"),
)
DAEMON_ANNOTATIONS = {
    f"{DEVICES}container.{DAEMON_NAME}": "".join(f"- path: {path}\n" for path in _OF_DAEMON)
}
"""Devices that the daemon opens."""
DAEMON_RIGHTS = ("NET_ADMIN", "NET_BIND_SERVICE")
"""Capabilities of the daemon, in its pod's own network."""
_START = "/fts/entrypoint_rxdm_container.sh"
DAEMON_COMMAND = [
    "/bin/sh",
    "-c",
    f"chmod 755 {_START}; exec {_START} --num_hops=2 --uid= --alsologtostderr",
]
_GKE_NVIDIA, _GKE_GIB = "/usr/local/nvidia", "/usr/local/gib"
_APERTURES = "/dev/aperture_devices"
"""Where the installer binds the NICs' files of sysfs: no devices, so a mount is enough."""
_SETTINGS, _IN_DAEMON = "/proc/sys/net", "/hostprocsysfs/net"
"""What the daemon's start script writes (rp_filter, buffers of TCP): the kernel shows each reader
the settings of its own network, so these are the pod's. Google's example mounts /proc/sys whole,
by whose `kernel` a writer becomes root on the node."""
_TUNED = ("NCCL_TUNER_CONFIG_PATH", "NCCL_SHIMNET_GUEST_CONFIG_CHECKER_CONFIG_FILE")
"""Settings in a file next to the plugin's libraries."""
_NETWORKS = "networking.gke.io"
_AFTER_GVNIC = "gvnic-1"
"""gIB's second interface of the node, before those of RDMA."""


class HostFolder(msgspec.Struct, frozen=True, kw_only=True):
    """A folder of the node that pods see: an account's by a claim, so that it names no path."""

    name: str
    """Of the claim."""
    path: str
    """On the node."""
    at: str
    """In the pod."""
    writable: bool = False
    of_daemon: bool = False
    """Only mounted in the receive daemon."""
    of_ranks: bool = False
    """Never mounted in the receive daemon."""

    def mount(self) -> dict[str, Json]:
        """Return its mount in a container."""
        mount: dict[str, Json] = {"name": self.name, "mountPath": self.at}
        return mount if self.writable else mount | {"readOnly": True}


def google_folders(fabric: str) -> tuple[HostFolder, ...]:
    """Return the folders of the node that a fabric's pods see."""
    library = HostFolder(name="google-nvidia", path=f"{HOST_LIBRARIES}/nvidia", at=_GKE_NVIDIA)
    if fabric != TCPXO:
        return library, HostFolder(name="google-gib", path=f"{HOST_LIBRARIES}/gib", at=_GKE_GIB)
    return (
        library,
        HostFolder(
            name="tcpxo-apertures", path=_APERTURES, at=_APERTURES, writable=True, of_ranks=True
        ),
        HostFolder(name="tcpxo-sys", path="/sys", at="/hostsysfs", of_daemon=True),
        HostFolder(
            name="tcpxo-proc-net", path=_SETTINGS, at=_IN_DAEMON, writable=True, of_daemon=True
        ),
    )


def google_networks(fabric: str, interfaces: int) -> tuple[str, ...]:
    """Return the networks of a node's interfaces after the first, in the order of its NICs.

    Args:
        fabric: gpudirect-tcpxo or gib.
        interfaces: of its GPUs.
    """
    if fabric == TCPXO:
        return tuple(f"vpc{number}" for number in range(1, interfaces + 1))
    return (_AFTER_GVNIC, *(f"rdma-{number}" for number in range(interfaces)))


def google_interfaces(networks: tuple[str, ...]) -> dict[str, str]:
    """Return the annotations by which a pod gets an interface in each of the networks."""
    named = [{"interfaceName": "eth0", "network": "default"}] + [
        {"interfaceName": f"eth{number}", "network": network}
        for number, network in enumerate(networks, 1)
    ]
    return {
        f"{_NETWORKS}/default-interface": "eth0",
        f"{_NETWORKS}/interfaces": json.dumps(named),
    }


def google_network_objects(facts: KubernetesFacts) -> list[Object]:
    """Return the networks by which pods get the nodes' interfaces, as far as they exist.

    The stack has the network and subnet of each interface, in order.
    """
    made: dict[str, list[Object]] = {}
    for pool, fabric in google_pools(facts).items():
        names = google_networks(fabric, facts.nodes[pool].fabric_interfaces)
        known = facts.inventory.networks.get(pool, ())
        for name, where in zip(names, known, strict=False):
            vpc, _, subnet = where.partition("/")
            mode = "RDMA" if name.startswith("rdma-") else "NetDevice"
            made.setdefault(name, _network(name, vpc, subnet, mode))
    return [one for name in sorted(made) for one in made[name]]


def _network(name: str, vpc: str, subnet: str, mode: str) -> list[Object]:
    """Return a network of whole interfaces and what it is of (GKE, multi-network support)."""
    of = {"vpc": vpc, "vpcSubnet": subnet, "deviceMode": mode}
    reference = {"group": _NETWORKS, "kind": "GKENetworkParamSet", "name": name}
    return [
        new(f"{_NETWORKS}/v1", "GKENetworkParamSet", name, spec=of),
        new(
            f"{_NETWORKS}/v1", "Network", name, spec={"type": "Device", "parametersRef": reference}
        ),
    ]


def unknown_networks(facts: KubernetesFacts) -> dict[str, str]:
    """Return pool -> why its networks are not written yet."""
    why = "its networks are known when they are made"
    return {pool: why for pool in google_pools(facts) if pool not in facts.inventory.networks}


def google_pools(facts: KubernetesFacts) -> dict[str, str]:
    """Return pool -> fabric class, of the pools of GKE that have one of Google's."""
    if facts.scheduler.control_plane != "gke":
        return {}
    classes = {pool: facts.nodes[pool].fabric_class or "" for pool in facts.compute}
    return {pool: fabric for pool, fabric in classes.items() if fabric in INSTALLERS}


def folder_claims(facts: KubernetesFacts) -> list[Object]:
    """Return a volume and a claim for each folder and account whose partitions have the fabric."""
    pools, made = google_pools(facts), []
    for account in facts.accounts:
        of = {p for name in facts.partitions_of(account) for p in facts.partitions[name].pools}
        classes = sorted({pools[pool] for pool in of if pool in pools})
        folders = {one.name: one for fabric in classes for one in google_folders(fabric)}
        for folder in folders.values():
            made += _claim(account, folder)
    return made


def _claim(account: str, folder: HostFolder) -> list[Object]:
    """Return a volume of a folder that each node has, and an account's claim of it.

    It is passed on with what is mounted below it, which a `local` volume's is not.
    """
    volume = f"{account}-{folder.name}"
    modes = ["ReadWriteMany" if folder.writable else "ReadOnlyMany"]
    size = {"storage": "1Gi"}
    spec: dict[str, Json] = {
        "capacity": size,
        "accessModes": modes,
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": "",
        "claimRef": {"namespace": account, "name": folder.name},
        "hostPath": {"path": folder.path, "type": "Directory"},
    }
    claim = {
        "accessModes": modes,
        "resources": {"requests": size},
        "storageClassName": "",
        "volumeName": volume,
    }
    return [
        new("v1", "PersistentVolume", volume, spec=spec),
        new("v1", "PersistentVolumeClaim", folder.name, namespace=account, spec=claim),
    ]


def google_environment(fabric: str, interfaces: int, given: dict[str, str]) -> dict[str, str]:
    """Return a fabric's settings by the names that GKE's nodes have.

    Args:
        fabric: gpudirect-tcpxo or gib.
        interfaces: additional network interfaces, for TCPXO.
        given: the fabric class's settings, as Slurm's nodes have them.
    """
    folder = f"{_GKE_NVIDIA}/lib64"
    if fabric == "gib":
        named = {"NCCL_SOCKET_IFNAME": "eth0,eth1"}
        return given | named | {"LD_LIBRARY_PATH+": f"{_GKE_GIB}/lib64:{folder}"}
    ours = ",".join(f"eth{number}" for number in range(1, interfaces + 1))
    named = {
        "NCCL_FASTRAK_CTRL_DEV": "eth0",
        "NCCL_SOCKET_IFNAME": "eth0",
        "NCCL_FASTRAK_IFNAME": ours,
        "LD_LIBRARY_PATH+": folder,
    }
    tuned = {name: f"{folder}/{given[name].rpartition('/')[2]}" for name in _TUNED if name in given}
    return given | named | tuned


def google_daemon(fabric: str, addons: Mapping[str, Addon]) -> str:
    """Return the image of the receive daemon of a fabric's installer; "": it has none."""
    images = addons[INSTALLERS[fabric]].images
    found = [(name, digest) for name, digest in images.items() if f"/{DAEMON}:" in name]
    return "".join(f"{name}@{digest}" if digest else name for name, digest in found)


def daemon_folders() -> tuple[HostFolder, ...]:
    """Return the folders of the node that the receive daemon sees."""
    return tuple(one for one in google_folders(TCPXO) if not one.of_ranks)


def daemon_container(image: str) -> dict[str, Json]:
    """Return TCPXO's receive daemon as a sidecar: it is there before the ranks and ends after them.

    The injector gives it devices; its rights are over the pod's own network.
    """
    return {
        "name": DAEMON_NAME,
        "image": image,
        "restartPolicy": "Always",
        "command": list(DAEMON_COMMAND),
        "env": [{"name": "LD_LIBRARY_PATH", "value": f"{_GKE_NVIDIA}/lib64"}],
        "securityContext": {"capabilities": {"add": list(DAEMON_RIGHTS)}},
        "volumeMounts": [one.mount() for one in daemon_folders()],
    }
