"""The roles lustre_client and lustre_server: Lustre for a node's kernel, mounts and targets."""

from __future__ import annotations

import re
from typing import cast

from ....schemas.derived.storage import mount_point
from ....schemas.spec import LustreStorage
from ..node import NodeFacts
from ..roles import role_compiler
from ..steps import Json, Phase, Stage, Step

_SOURCES = {"aws": "fsx-lustre", "gcp": "gcp-lustre", "azure": "amlfs"}
"""Provider -> who builds clients for its kernels; elsewhere they are Whamcloud's."""
_MODULE_OPTIONS = {"aws": ("ptlrpc ptlrpcd_per_cpt_max=32", "ksocklnd credits=2560")}
"""For clients with more than 64 cores (FSx for Lustre guide, performance tips, 2026-11)."""
_MOUNT_OPTIONS = {"aws": ("relatime", "flock")}
"""Cloud that runs a file system -> options of a mount, where its guide has others than `_OPTIONS`
(FSx for Lustre, "Mounting from an Amazon Elastic Compute Cloud instance", 2026-11)."""
_OPTIONS = ("flock", "noatime")
"""Locks hold on all nodes; reading writes nothing. Azure's guide has both, Google's and OCI's name
no options (2026-11)."""
MOUNT_SECONDS = 120
"""A mount waits for its servers' recovery, which may take minutes, but not for ever."""
_NID = re.compile(r"^(?P<host>[^@]+)@(?P<net>[a-z]+[a-z0-9]*)$")


def lustre_sources(node: NodeFacts) -> tuple[str, ...]:
    """Return the artefact source of a pool's Lustre packages."""
    if lustre_served(node):
        return ("lustre-server",)
    return (_SOURCES.get(node.provider, "lustre"),)


@role_compiler(
    "lustre_client",
    sources=("fsx-lustre", "gcp-lustre", "amlfs", "lustre", "lustre-server"),
    chosen=lustre_sources,
    components=("lustre",),
    storage=("lustre",),
)
def lustre_client_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role lustre_client: on machines that mount or serve Lustre.

    Servers get LNet and the servers' packages from it, and mount nothing by it.
    """
    served = lustre_served(node)
    mounts = [] if served else lustre_mounts(node)
    devices = [str(mount["device"]) for mount in mounts] or [lustre_device(node, n) for n in served]
    if not node.is_machine or not any(devices):
        return []
    version: dict[str, Json] = {"lustre_client_version": node.version("lustre") or ""}
    install: dict[str, Json] = version | {
        "lustre_client_source": lustre_sources(node)[0],
        "lustre_client_kind": server_backend(node, served[0]) if served else "client",
        "lustre_client_kernel": node.version("kernel") or "",
        "lustre_client_rollback": node.is_version_given("lustre"),
    }
    state: dict[str, Json] = {
        "lustre_client_networks": _networks(node, devices, [*served, *_mounted(node)]),
        "lustre_client_routes": _routes(node),
        "lustre_client_mounts": mounts,
        "lustre_client_seconds": MOUNT_SECONDS,
    }
    options: dict[str, Json] = {
        "lustre_client_module_options": list(_MODULE_OPTIONS.get(node.provider, ())),
    }
    phases: tuple[tuple[Phase, dict[str, Json]], ...] = (
        ("install", install),
        ("configure", state | options),
        ("join", state | version),
        ("verify", state | version),
    )
    return [
        Step(stage=Stage.STORAGE, role="lustre_client", phase=phase, variables=variables)
        for phase, variables in phases
    ]


def lustre_served(node: NodeFacts) -> list[str]:
    """Return the Lustre file systems that a pool serves."""
    return [n for n in node.storage.serves if isinstance(node.spec.storage[n], LustreStorage)]


def lustre_mounts(node: NodeFacts) -> list[dict[str, Json]]:
    """Return the file systems to mount, those whose servers are known, the outer first."""
    return [_mount(node, name) for name in _mounted(node) if lustre_device(node, name)]


def lustre_device(node: NodeFacts, name: str) -> str:
    """Return what is mounted of a file system, "10.0.0.5@o2ib:/scratch"; "" while unknown."""
    storage = cast("LustreStorage", node.spec.storage[name])
    if storage.mgs is not None:
        return f"{storage.mgs}:/{storage.fsname}"
    if storage.servers is None:
        return node.storage.devices.get(name, "")
    hosts = node.storage.servers.get(name, ())
    managers = hosts[: 2 if storage.servers.failover else 1]
    if not managers:
        return ""
    nids = ":".join(f"{host.address}@{storage.servers.network}" for host in managers)
    return f"{nids}:/{lustre_fsname(name, storage)}"


def lustre_fsname(name: str, storage: LustreStorage) -> str:
    """Return a file system's name: from the spec, else from the storage's, at most 8 letters."""
    return storage.fsname or re.sub("[^A-Za-z0-9_]", "", name)[:8]


def server_backend(node: NodeFacts, name: str) -> str:
    """Return what a served file system's disks are formatted with: ldiskfs or zfs."""
    servers = cast("LustreStorage", node.spec.storage[name]).servers
    return "ldiskfs" if servers is None else servers.backend


def _mounted(node: NodeFacts) -> list[str]:
    return [n for n in node.storage.mounts if isinstance(node.spec.storage[n], LustreStorage)]


def _mount(node: NodeFacts, name: str) -> dict[str, Json]:
    storage = cast("LustreStorage", node.spec.storage[name])
    hosts = len(node.storage.servers.get(name, ()))
    return {
        "name": name,
        "path": mount_point(storage),
        "device": lustre_device(node, name),
        "options": [*_mount_options(node, storage), *storage.options],
        "tunables": storage.tunables,
        "osts": 0 if storage.servers is None else hosts * len(storage.servers.object_devices),
    }


def _mount_options(node: NodeFacts, storage: LustreStorage) -> tuple[str, ...]:
    site = node.spec.sites.get(storage.site or "")
    if site is None or not storage.is_managed:
        return _OPTIONS
    return _MOUNT_OPTIONS.get(str(site.provider), _OPTIONS)


def _has_efa(node: NodeFacts) -> bool:
    """Whether the nodes have EFA devices: others mount the same file system over TCP."""
    nics = () if node.machine is None else node.machine.nics or ()
    return node.pool.fabric != "ethernet" and any(nic.kind == "efa" for nic in nics)


def _networks(node: NodeFacts, devices: list[str], names: list[str]) -> list[Json]:
    """Return LNet's networks: those of the servers' NIDs, or of the routers to them, and EFA.

    EFA is there where both sides have it. Interfaces are those of the spec; several in one network
    are used together, and servers find them by themselves (LNet's dynamic discovery).
    """
    stores = [cast("LustreStorage", node.spec.storage[name]) for name in names]
    routed = {store.mgs: store.routers for store in stores if store.routers}
    found: dict[str, dict[str, Json]] = {}
    for device in filter(None, devices):
        servers = device.rsplit(":/", 1)[0]
        for nid in routed.get(servers) or re.split("[:,]", servers):
            if match := _NID.match(nid):
                found.setdefault(match["net"], {"net": match["net"], "towards": match["host"]})
    for store in stores:
        nid = store.routers[0] if store.routers else (store.mgs or "")
        network = found.get(nid.rpartition("@")[2])
        if store.interfaces and network is not None:
            network["interfaces"] = store.interfaces
    if found and _has_efa(node) and any(store.efa for store in stores):
        towards = next(iter(found.values()))["towards"]
        found.setdefault("efa", {"net": "efa", "towards": towards})
    return list(found.values())


def _routes(node: NodeFacts) -> list[Json]:
    """Return LNet's routes: the servers' networks that only routers reach."""
    return [
        {"net": str(storage.mgs).rpartition("@")[2], "gateway": router}
        for name in _mounted(node)
        for storage in [cast("LustreStorage", node.spec.storage[name])]
        for router in storage.routers
    ]


@role_compiler("lustre_server", after=("lustre_client",))
def lustre_server_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role lustre_server; a pool serves at most one file system.

    Every server has the list of all of them in order, by which targets are numbered: hosts are
    added at the end. Formatting requires `format: true` under `servers`.
    """
    served = lustre_served(node)
    if not node.is_machine or not served:
        return []
    name = served[0]
    storage = cast("LustreStorage", node.spec.storage[name])
    servers = storage.servers
    if servers is None:
        return []
    variables: dict[str, Json] = {
        "lustre_server_fsname": lustre_fsname(name, storage),
        "lustre_server_hosts": [
            {"name": host.name, "address": host.address}
            for host in node.storage.servers.get(name, ())
        ],
        "lustre_server_network": servers.network,
        "lustre_server_backend": servers.backend,
        "lustre_server_failover": servers.failover,
        "lustre_server_format": servers.format,
        "lustre_server_metadata_devices": list(servers.metadata_devices),
        "lustre_server_object_devices": list(servers.object_devices),
    }
    phases: tuple[Phase, ...] = ("preflight", "join", "verify")
    return [
        Step(stage=Stage.STORAGE, role="lustre_server", phase=phase, variables=variables)
        for phase in phases
    ]
