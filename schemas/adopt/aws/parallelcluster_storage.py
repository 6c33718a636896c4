"""`SharedStorage` of a cluster file of ParallelCluster, and the /home that it doesn't say."""

from __future__ import annotations

from typing import Any

from ..draft import Draft
from ..source import Source
from .place import SITE

_DEPLOYMENTS = {"SCRATCH_2": "scratch-2", "PERSISTENT_2": "persistent-2"}
_UNDONE = {
    "IamAuthorization": "roles of EFS need its own mount helper; security groups let nodes in",
}
_SERVED = "the head serves it from a disk of its own; what is on yours is not moved"


def shared_storage(source: Source, draft: Draft) -> None:
    """Write the shared file systems; the head node serves /home where none is mounted there.

    docs.aws.amazon.com/parallelcluster/latest/ug/SharedStorage-v3.html: "/home" of the head node is
    shared by NFS with all nodes by default.
    """
    for each in source.each("SharedStorage"):
        _storage(each, draft)
    if not any(storage["mount"] == "/home" for storage in draft.storage.values()):
        name = draft.fit("home", "storage", draft.storage)
        draft.storage[name] = {"type": "nfs", "mount": "/home", "server": "head"}


def _storage(each: Source, draft: Draft) -> None:
    kind, mount = each.text("StorageType"), each.text("MountDir")
    name = draft.fit(each.text("Name") or mount.strip("/"), "storage", draft.storage)
    path = mount if mount.startswith("/") else f"/{mount}"
    if kind == "Ebs":
        _served(each, "EbsSettings", name, path, draft)
    elif kind == "Efs":
        _efs(each.part("EfsSettings"), name, path, draft)
    elif kind == "FsxOpenZfs":
        _openzfs(each.part("FsxOpenZfsSettings"), name, path, draft)
    elif kind == "FsxLustre":
        _lustre(each, name, path, draft)
    else:
        each.leave("gcluster mounts Lustre, NFS, buckets, GPFS and local disks", "StorageType")
        each.leave(f"{kind} is not mounted", "MountDir")
        each.leave(f"{kind} is not mounted", "Name")


def _efs(settings: Source, name: str, path: str, draft: Draft) -> None:
    """Write a file system of EFS, made or there already.

    docs.aws.amazon.com/parallelcluster/latest/ug/SharedStorage-v3.html, EfsSettings: one that is
    made has bursting throughput where nothing is said.
    """
    entry: dict[str, Any] = {"type": "efs", "mount": path, "site": SITE}
    draft.storage[name] = entry
    if settings.has("FileSystemId"):
        existing = settings.text("FileSystemId")
        if existing:
            entry["existing"] = existing
        settings.leave("the whole file system is mounted, by the kernel's client", "AccessPointId")
    else:
        mode = settings.text("ThroughputMode") or "bursting"
        if mode != "elastic":
            entry["throughput_mode"] = mode
        rate = settings.number("ProvisionedThroughput")
        if rate:
            entry["throughput"] = f"{rate} MiB/s"
        if settings.text("PerformanceMode") == "maxIO":
            entry["performance_mode"] = "max-io"
        key = settings.text("KmsKeyId")
        if key:
            entry["kms_key"] = key
        _kept(settings)
    if settings.text("EncryptionInTransit").lower() == "true":
        entry["tls"] = True
    for key, why in _UNDONE.items():
        if not settings.agrees(key, value=False):
            settings.leave(why, key)


def _kept(settings: Source) -> None:
    """Read what is done with a file system that is made: encrypted, and kept by `down`."""
    if not settings.agrees("Encrypted", value=True):
        settings.leave("what is made is encrypted always", "Encrypted", kind="replaced")
    if not settings.agrees("DeletionPolicy", value="Retain"):
        settings.leave("down keeps data, and takes it with --delete-data NAME alone",
                       "DeletionPolicy", kind="replaced")  # fmt: skip


def _openzfs(settings: Source, name: str, path: str, draft: Draft) -> None:
    """Write a volume of FSx for OpenZFS, which is always there already."""
    draft.storage[name] = {"type": "fsx-openzfs", "mount": path, "site": SITE}
    volume = settings.text("VolumeId")
    if volume:
        draft.storage[name]["existing"] = volume


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
        draft.leave(f"storage {name}", "neither an id nor a size is specified", "unfinished")
    draft.storage[name] = entry
