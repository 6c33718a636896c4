"""`SharedStorage` of a cluster file of ParallelCluster, and the /home that it doesn't say."""

from __future__ import annotations

from typing import Any

from ..draft import Draft
from ..source import Source
from .place import SITE

_DEPLOYMENTS = {"SCRATCH_2": "scratch-2", "PERSISTENT_2": "persistent-2"}
_SERVED = "the head serves it from a disk of its own; what is on yours is not moved"


def shared_storage(source: Source, region: str, draft: Draft) -> None:
    """Write the shared file systems; the head node serves /home where none is mounted there.

    docs.aws.amazon.com/parallelcluster/latest/ug/SharedStorage-v3.html: "/home" of the head node is
    shared by NFS with all nodes by default.
    """
    for each in source.each("SharedStorage"):
        _storage(each, region, draft)
    if not any(storage["mount"] == "/home" for storage in draft.storage.values()):
        name = draft.fit("home", "storage", draft.storage)
        draft.storage[name] = {"type": "nfs", "mount": "/home", "server": "head"}


def _storage(each: Source, region: str, draft: Draft) -> None:
    kind, mount = each.text("StorageType"), each.text("MountDir")
    name = draft.fit(each.text("Name") or mount.strip("/"), "storage", draft.storage)
    path = mount if mount.startswith("/") else f"/{mount}"
    if kind == "Ebs":
        _served(each, "EbsSettings", name, path, draft)
    elif kind == "Efs":
        found = each.text("EfsSettings", "FileSystemId")
        if found:
            _nfs(name, path, f"{found}.efs.{region}.amazonaws.com", "/", draft)
        else:
            _served(each, "EfsSettings", name, path, draft)
    elif kind == "FsxOpenZfs":
        draft.storage[name] = {"type": "nfs", "mount": path, "site": SITE}
        each.leave(
            "server and export of it: DNS name of the file system, and path of the volume",
            "FsxOpenZfsSettings", kind="unfinished",
        )  # fmt: skip
    elif kind == "FsxLustre":
        _lustre(each, name, path, draft)
    else:
        each.leave("gcluster mounts Lustre, NFS, buckets, GPFS and local disks", "StorageType")
        each.leave(f"{kind} is not mounted", "MountDir")
        each.leave(f"{kind} is not mounted", "Name")


def _nfs(name: str, path: str, server: str, export: str, draft: Draft) -> None:
    draft.storage[name] = {"type": "nfs", "mount": path, "server": server, "site": SITE}
    if export != path:
        draft.storage[name]["export"] = export


def _served(each: Source, key: str, name: str, path: str, draft: Draft) -> None:
    """Let the head serve what the cloud would have made, of the same size."""
    draft.storage[name] = {"type": "nfs", "mount": path, "server": "head"}
    size = each.number(key, "Size")
    if size:
        draft.storage[name]["capacity"] = f"{size} GiB"
    each.part(key).agrees("Encrypted", value=True)
    each.part(key).agrees("VolumeType", value="gp3")
    each.leave(_SERVED, "StorageType", kind="replaced")


def _lustre(each: Source, name: str, mount: str, draft: Draft) -> None:
    settings = each.part("FsxLustreSettings")
    entry: dict[str, Any] = {"type": "lustre", "mount": mount, "site": SITE}
    existing, size = settings.text("FileSystemId"), settings.number("StorageCapacity")
    if existing:
        entry["existing"] = existing
    elif size:
        entry["capacity"] = f"{size} GiB"
        kind = settings.text("DeploymentType")
        if kind in _DEPLOYMENTS:
            entry["deployment"] = _DEPLOYMENTS[kind]
        else:
            settings.leave("gcluster makes PERSISTENT_2 and SCRATCH_2", "DeploymentType")
        rate = settings.number("PerUnitStorageThroughput")
        if rate:
            entry["throughput"] = f"{rate} MB/s/TiB"
        for key, word in (
            ("ImportPath", "import"),
            ("ExportPath", "export"),
            ("KmsKeyId", "kms_key"),
        ):
            path = settings.text(key)
            if path:
                entry[word] = path
    else:
        draft.leave(f"storage {name}", "neither an id nor a size is said", "unfinished")
    draft.storage[name] = entry
