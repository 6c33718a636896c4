"""What a volume mounts: a managed file system, an export, a bucket, or what nodes have mounted."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from ....schemas.derived.storage import mount_point
from ....schemas.spec import LustreStorage, NfsStorage, ObjectStorage
from ..lustre_client import lustre_device
from ..steps import Json
from .nodes import POOL

if TYPE_CHECKING:
    from .facts import KubernetesFacts

LUSTRE_DRIVERS = {
    "aws": "fsx.csi.aws.com",
    "gcp": "lustre.csi.storage.gke.io",
    "azure": "azurelustre.csi.azure.com",
}
"""Provider -> driver of its managed Lustre."""
_BUCKET_DRIVERS = {
    "s3": "s3.csi.aws.com",
    "gs": "gcsfuse.csi.storage.gke.io",
    "az": "blob.csi.azure.com",
}
_DEVICE = re.compile(r"(?P<host>[^@]+)@[a-z0-9]+:/(?P<fsname>.+)")


class Source(NamedTuple):
    """A part of PersistentVolumeSpec, or why it isn't known."""

    spec: dict[str, Json]
    unknown: str = ""
    driver: str | None = None
    """CSI driver that mounts it; known before the rest is."""


def volume_source(facts: KubernetesFacts, name: str, account: str) -> Source:
    """Return what a volume of a storage mounts for an account.

    A handle names one volume on a node: it ends in the account, where the driver leaves that free.
    """
    storage = facts.spec.storage[name]
    if isinstance(storage, NfsStorage):
        return _nfs(facts, storage)
    if isinstance(storage, ObjectStorage):
        return _bucket(facts, name, storage, account)
    if isinstance(storage, LustreStorage):
        return _lustre(facts, name, storage, account)
    return _on_nodes(facts, name)


def nfs_server(facts: KubernetesFacts, storage: NfsStorage) -> str:
    """Return the address of an export's server; "" while its host is only planned."""
    if storage.server is None or storage.server not in facts.spec.pools:
        return storage.server or ""
    hosts = facts.inventory.in_pool(storage.server)
    return hosts[0].address if hosts else ""


def lustre_driver(facts: KubernetesFacts, storage: LustreStorage) -> str | None:
    """Return the driver of a file system that a cloud manages; None: nodes mount it themselves."""
    site = facts.spec.sites.get(storage.site or "")
    managed = storage.mgs is None and storage.servers is None
    driver = LUSTRE_DRIVERS.get(str(site.provider)) if site is not None and managed else None
    return None if _is_gkes(driver) and not _on_gke(facts) else driver


def _is_gkes(driver: str | None) -> bool:
    """Whether Google supports a driver as a part of GKE alone.

    Both want GKE's node images; neither is published as a chart or one manifest (docs/installation
    of GoogleCloudPlatform/lustre-csi-driver and README of gcs-fuse-csi-driver; read 2026-11).
    """
    return driver is not None and driver.endswith(".gke.io")


def _on_gke(facts: KubernetesFacts) -> bool:
    return facts.scheduler.control_plane == "gke"


def _lustre(facts: KubernetesFacts, name: str, storage: LustreStorage, account: str) -> Source:
    """Return a managed file system by its cloud's driver, any other as nodes have it mounted."""
    driver = lustre_driver(facts, storage)
    if driver is None:
        return _on_nodes(facts, name)
    pool = next((pool for pool in facts.compute if name in facts.nodes[pool].storage.mounts), None)
    device = "" if pool is None else lustre_device(facts.nodes[pool], name)
    found = _DEVICE.fullmatch(device)
    if found is None:
        return Source({}, "its address is known when it is made", driver)
    host, fsname = found["host"], found["fsname"]
    attributes = {
        "fsx.csi.aws.com": {"dnsname": host, "mountname": fsname},
        "lustre.csi.storage.gke.io": {"ip": host, "filesystem": fsname},
        "azurelustre.csi.azure.com": {"mgs-ip-address": host, "fs-name": fsname},
    }[driver]
    csi = {
        "driver": driver,
        "volumeHandle": f"{facts.spec.name}-{name}-{account}",
        "volumeAttributes": attributes,
    }
    return Source({"csi": csi, "mountOptions": list(storage.options)}, driver=driver)


def _nfs(facts: KubernetesFacts, storage: NfsStorage) -> Source:
    """Return an export by the client that Kubernetes has built in."""
    server = nfs_server(facts, storage)
    if not server:
        return Source({}, "the address of its server is known when it is made")
    nfs: dict[str, Json] = {"server": server, "path": storage.export or mount_point(storage)}
    if storage.read_only:
        nfs["readOnly"] = True
    return Source({"nfs": nfs, "mountOptions": list(storage.options)})


def _bucket(facts: KubernetesFacts, name: str, storage: ObjectStorage, account: str) -> Source:
    """Return a bucket by its cloud's driver; a cloud without one mounts it on the nodes only."""
    scheme, _, rest = storage.bucket.partition("://")
    driver = _BUCKET_DRIVERS.get(scheme)
    if driver is None:
        return Source({}, "there is no driver for buckets of this cloud")
    if _is_gkes(driver) and not _on_gke(facts):
        return _on_nodes(facts, name)
    bucket, _, path = rest.partition("/")
    path = path.rstrip("/")
    options, handle, attributes = list(storage.options), f"{name}-{account}", {}
    if scheme == "s3":
        attributes = {"bucketName": bucket}
        options += [f"prefix {path}/"] if path else []
        options += [] if storage.read_only else ["allow-delete"]
    elif scheme == "gs":
        # The driver takes what stands before the colon as the bucket (ParseVolumeID): a pod with
        # two volumes of one handle never starts. Folders that no object marks are seen too.
        handle = f"{bucket}:{name}-{account}"
        options += ["implicit-dirs", *([f"only-dir={path}"] if path else [])]
    else:
        container, _, below = path.partition("/")
        attributes = {"storageAccount": bucket, "containerName": container, "protocol": "fuse2"}
        options += [f"--subdirectory={below}"] if below else []
    csi: dict[str, Json] = {"driver": driver, "volumeHandle": handle}
    if attributes:
        csi["volumeAttributes"] = attributes
    if storage.read_only:
        csi["readOnly"] = True
    return Source({"csi": csi, "mountOptions": options}, driver=driver)


def _on_nodes(facts: KubernetesFacts, name: str) -> Source:
    """Return what the nodes themselves have mounted, on the pools that have it."""
    pools = [pool for pool in facts.compute if name in facts.nodes[pool].storage.mounts]
    if not pools:
        return Source({}, "no compute pool mounts it")
    term = {"key": POOL, "operator": "In", "values": pools}
    return Source(
        {
            "local": {"path": mount_point(facts.spec.storage[name])},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [term]}]}},
        }
    )
