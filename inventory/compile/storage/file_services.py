"""How the clouds' NFS services are mounted: what each vendor recommends over the role's options."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import get_args

from ....schemas.spec import (
    AzureFilesStorage,
    EfsStorage,
    FileService,
    FilestoreStorage,
    OciFileStorage,
    OpenZfsStorage,
    Storage,
)
from ...hosts import AFTER_APPLY
from ..steps import Json

SERVICES: tuple[type[FileService], ...] = tuple(
    kind for kind in get_args(Storage) if issubclass(kind, FileService)
)
"""The file services of the spec language."""

_PORTS = range(20049, 21050)
"""Ports of 127.0.0.1 that tunnels listen on: those of Microsoft's aznfs and of amazon-efs-utils
(20049 on; 1,001 of them, by the storage's name, so that another storage moves none)."""

_HIGH_CAPACITY = 10 * 2.0**40
"""Bytes from which zonal and regional Filestore is of the higher capacity range."""


def _efs(storage: FileService) -> list[str]:
    """Return what EFS' own mount helper takes; its other options are the role's own.

    EFS user guide, "Mount settings used by EFS mount helper", read 2026-11.
    """
    del storage
    return ["vers=4.1", "noresvport"]


def _openzfs(storage: FileService) -> list[str]:
    """Return the version that FSx for OpenZFS' console shows, which the role takes anyway."""
    del storage
    return ["vers=4.2"]


def _filestore(storage: FileService) -> list[str]:
    """Return the version that an instance was created with; for an existing one the spec has it."""
    later = isinstance(storage, FilestoreStorage) and storage.protocol == "nfs-v4.1"
    return ["vers=4.1"] if later else ["vers=3"]


def _azure_files(storage: FileService) -> list[str]:
    """Return what Microsoft recommends ("Mount NFS Azure file shares on Linux", read 2026-11)."""
    del storage
    return ["vers=4.1", "sec=sys", "noresvport"]


def _oci(storage: FileService) -> list[str]:
    """Return the one version of File Storage; exports of ours require a privileged port.

    docs.oracle.com/iaas/Content/File/Tasks/mountingunixstyleos.htm, read 2026-11.
    """
    del storage
    return ["vers=3", "resvport"]


_OPTIONS: Mapping[type[FileService], Callable[[FileService], list[str]]] = {
    EfsStorage: _efs,
    OpenZfsStorage: _openzfs,
    FilestoreStorage: _filestore,
    AzureFilesStorage: _azure_files,
    OciFileStorage: _oci,
}


def vendor_options(storage: FileService) -> list[str]:
    """Return a vendor's options, except those that the spec overrides."""
    said = {_key(option) for option in storage.options}
    return [each for each in _OPTIONS[type(storage)](storage) if _key(each) not in said]


def _key(option: str) -> str:
    """Return the subject of an option: `nfsvers=4` and `vers=4.1` have the same."""
    word = option.partition("=")[0]
    return {"nfsvers": "vers", "resvport": "noresvport"}.get(word, word)


def connections(storage: FileService) -> int:
    """Return the TCP connections of a mount (nconnect).

    EFS' mount helper and OCI take one; FSx for OpenZFS' console shows 16; Microsoft recommends 4
    ("Improve performance for NFS Azure file shares"); Filestore recommends 2, or 7 from 10 TiB on,
    and one on the basic tiers ("Mounting file shares on Compute Engine clients", read 2026-11). The
    size of an existing instance isn't known: 2.
    """
    if isinstance(storage, OpenZfsStorage):
        return 16
    if isinstance(storage, AzureFilesStorage):
        return 4
    if isinstance(storage, FilestoreStorage) and not storage.tier.startswith("basic"):
        size = 0.0 if storage.capacity is None else storage.capacity.value
        return 7 if size >= _HIGH_CAPACITY else 2
    return 1


def tunnel(storage: FileService, name: str, names: Sequence[str]) -> dict[str, Json]:
    """Return how a mount goes through TLS: its tunnel's name and its port on the node; {} without.

    Args:
        storage: the file service.
        name: of the storage.
        names: of all storages of the spec that are reached by TLS, in its order.
    """
    if not storage.tls:
        return {}
    ports: dict[str, int] = {}
    for each in sorted(names):
        port = _PORTS.start + zlib.crc32(each.encode()) % len(_PORTS)
        while port in ports.values():
            port = _PORTS.start + (port + 1 - _PORTS.start) % len(_PORTS)
        ports[each] = port
    return {"tls": name, "tls_port": ports[name]}


def export_of(device: str) -> tuple[str, str]:
    """Return server and path of what is mounted, HOST:/PATH; both are unknown before it is made."""
    server, _, path = device.partition(":/")
    return (server, f"/{path}") if path or device.endswith(":/") else (AFTER_APPLY, "/")
