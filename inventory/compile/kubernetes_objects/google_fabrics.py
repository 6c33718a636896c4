"""Google's fabrics under GKE: its installers' folders on its own node images, and TCPXO's daemon.

No role of ours runs there. The installers (add-ons gke-tcpxo-installer and gke-gib-installer) leave
their libraries where Container-Optimized OS lets programs be run from, its network interfaces are
called eth0 and on, and TCPXO's receive daemon runs beside each pod's ranks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..gpudirect_tcpx import DAEMON

if TYPE_CHECKING:
    from ....schemas.catalog import Addon

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
