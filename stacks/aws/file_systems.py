"""File systems that exist: what is mounted of one, by its id."""

from __future__ import annotations

import msgspec

from ...schemas.spec import EfsStorage, OpenZfsStorage
from ..provider import provider_error
from ..pulumi.plan import ManagedStorage
from .api import Answer, Api


class _LustreConfiguration(Answer, frozen=True):
    mount_name: str


class _RootVolume(Answer, frozen=True):
    root_volume_id: str


class _FileSystem(Answer, frozen=True):
    dns_name: str = msgspec.field(name="DNSName")
    lustre_configuration: _LustreConfiguration | None = None
    zfs: _RootVolume | None = msgspec.field(name="OpenZFSConfiguration", default=None)


class _FileSystems(Answer, frozen=True):
    file_systems: tuple[_FileSystem, ...]


class _VolumePath(Answer, frozen=True):
    volume_path: str


class _Volume(Answer, frozen=True):
    file_system_id: str
    zfs: _VolumePath | None = msgspec.field(name="OpenZFSConfiguration", default=None)


class _Volumes(Answer, frozen=True):
    volumes: tuple[_Volume, ...]


class _MountTarget(Answer, frozen=True):
    ip_address: str


class _MountTargets(Answer, frozen=True):
    mount_targets: tuple[_MountTarget, ...]


def existing_device(api: Api, storage: ManagedStorage) -> str:
    """Return the mount parameters of an existing file system.

    Raises:
        ProviderError: AWS has none of the kind with that id, or it has no mount target (GC1185).
    """
    identifier = str(storage.existing)
    if isinstance(storage, EfsStorage):
        return _efs(api, identifier)
    if isinstance(storage, OpenZfsStorage):
        return _openzfs(api, identifier)
    system = _file_system(api, identifier)
    if system.lustre_configuration is None:
        raise _other(identifier, "Lustre")
    return f"{system.dns_name}@tcp:/{system.lustre_configuration.mount_name}"


def _efs(api: Api, identifier: str) -> str:
    """Return the address of its mount target, or where it has several its name.

    The name leads a node to the mount target of its own zone, and is known in the zones that have
    one (EFS user guide, "Mounting on Amazon EC2 with a DNS name").
    """
    requested = {"FileSystemId": identifier}
    found = api.call(_MountTargets, "efs", "describe_mount_targets", **requested).mount_targets
    if not found:
        raise provider_error(
            "GC1185",
            f"{identifier} has no mount target: no node reaches it",
            hint="make one in the nodes' subnet: aws efs create-mount-target",
        )
    if len(found) == 1:
        return f"{found[0].ip_address}:/"
    suffix = "amazonaws.com.cn" if api.region.startswith("cn-") else "amazonaws.com"
    return f"{identifier}.efs.{api.region}.{suffix}:/"


def _openzfs(api: Api, identifier: str) -> str:
    """Return the path of a volume, or of the root volume of a file system."""
    volume = identifier
    if not identifier.startswith("fsvol-"):
        system = _file_system(api, identifier)
        if system.zfs is None:
            raise _other(identifier, "OpenZFS")
        volume = system.zfs.root_volume_id
    (found,) = api.call(_Volumes, "fsx", "describe_volumes", VolumeIds=[volume]).volumes
    if found.zfs is None:
        raise _other(identifier, "OpenZFS")
    return f"{_file_system(api, found.file_system_id).dns_name}:{found.zfs.volume_path}"


def _file_system(api: Api, identifier: str) -> _FileSystem:
    requested = {"FileSystemIds": [identifier]}
    (system,) = api.call(_FileSystems, "fsx", "describe_file_systems", **requested).file_systems
    return system


def _other(identifier: str, kind: str) -> Exception:
    return provider_error("GC1185", f"{identifier} is no file system of {kind}")
