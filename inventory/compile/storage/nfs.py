"""The role nfs: exports of a pool's first host, and mounts of exports and of file services."""

from __future__ import annotations

from collections.abc import Iterator

from ....schemas.derived.links import networks_of_sites
from ....schemas.derived.storage import mount_point
from ....schemas.spec import FileService, NfsStorage
from ..node import NodeFacts
from ..roles import role_compiler
from ..steps import Json, Phase, Stage, Step
from .file_services import SERVICES, connections, export_of, tunnel, vendor_options

_CONNECTIONS = 8
"""TCP connections of a mount (nconnect, at most 16): one is bound to one core and one flow of the
network. Azure Files and Netapp advise 4 to 8; read 2026-11."""


@role_compiler(
    "nfs",
    storage=("nfs", *(str(kind.__struct_config__.tag) for kind in SERVICES)),
    after=("object_mount", "disks"),
)
def nfs_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role nfs; none where a pool neither mounts nor serves NFS.

    The containers of local sites have no NFS in the kernel: a folder simulates it (stacks/local).
    """
    if node.spec.sites[node.pool.site].is_made_here:
        return []
    mounted = [name for name in node.storage.mounts if _is_nfs(node, name)]
    served = [name for name in node.storage.serves if _is_nfs(node, name)]
    if not mounted and not served:
        return []
    by_tls = not set(mounted).isdisjoint(_by_tls(node))
    variables: dict[str, Json] = {
        "nfs_domain": node.spec.name,
        "nfs_mounts": [_mount(node, name) for name in mounted],
        "nfs_exports": [_export(node, name) for name in served],
    }
    phases: tuple[tuple[Phase, dict[str, Json]], ...] = (
        ("install", {"nfs_server": bool(served), **({"nfs_tls": True} if by_tls else {})}),
        ("configure", variables),
        ("join", variables),
        ("verify", variables),
    )
    return [
        Step(
            stage=Stage.STORAGE,
            role="nfs",
            phase=phase,
            variables=given,
            spares_jobs=phase == "install",
        )
        for phase, given in phases
    ]


def _is_nfs(node: NodeFacts, name: str) -> bool:
    return isinstance(node.spec.storage[name], NfsStorage | FileService)


def _nfs(node: NodeFacts, name: str) -> NfsStorage:
    storage = node.spec.storage[name]
    if not isinstance(storage, NfsStorage):
        raise TypeError(name)
    return storage


def _mount(node: NodeFacts, name: str) -> dict[str, Json]:
    """Return a mount; "host" is the host of the spec that serves it, "" where none does."""
    service = node.spec.storage[name]
    if isinstance(service, FileService):
        return _of_service(node, name, service)
    storage = _nfs(node, name)
    servers = node.storage.servers.get(name, ())
    first = servers[0] if servers else None
    return {
        "path": mount_point(storage),
        "server": (first.address or first.name) if first is not None else storage.server or "",
        "host": first.name if first is not None else "",
        "export": storage.export or mount_point(storage),
        "connections": _CONNECTIONS,
        "read_only": storage.read_only,
        "options": storage.options,
    }


def _of_service(node: NodeFacts, name: str, storage: FileService) -> dict[str, Json]:
    """Return the mount of a cloud's file service, the vendor's options below those of the spec."""
    server, export = export_of(node.storage.devices.get(name, ""))
    return {
        "path": mount_point(storage),
        "server": server,
        "host": "",
        "export": export,
        "connections": connections(storage),
        "read_only": storage.read_only,
        "options": [*vendor_options(storage), *storage.options],
        **tunnel(storage, name, tuple(_by_tls(node))),
    }


def _by_tls(node: NodeFacts) -> Iterator[str]:
    """Yield the storages that are reached by TLS."""
    for name, storage in node.spec.storage.items():
        if isinstance(storage, FileService) and storage.tls:
            yield name


def _export(node: NodeFacts, name: str) -> dict[str, Json]:
    """Return an export; by default every node of the sites may mount it."""
    storage = _nfs(node, name)
    of_sites = networks_of_sites(node.spec, node.spec.sites)
    servers = node.storage.servers.get(name, ())
    return {
        "path": storage.export or mount_point(storage),
        "host": servers[0].name if servers else "",
        "clients": storage.clients or of_sites,
        "root": storage.root,
        "read_only": storage.read_only,
    }
