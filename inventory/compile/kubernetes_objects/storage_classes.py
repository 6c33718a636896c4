"""Classes that make volumes on demand: on nodes' disks, in an export, as a new file system."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....schemas.derived.storage import mount_point
from ....schemas.spec import CloudSite, LustreStorage, NfsStorage, ScratchStorage
from .objects import Object, new
from .volume_sources import (
    lustre_driver,
    nfs_server,
)

if TYPE_CHECKING:
    from .facts import KubernetesFacts

LOCAL_CLASS = "local-path"
LOCAL_PROVISIONER = "rancher.io/local-path"
LOCAL_PATH = "/var/lib/gcluster/volumes"
"""Folder on nodes that local volumes are made in, where they have no disks of their own for it."""
NFS_PROVISIONER = "nfs.csi.k8s.io"
_CLAIM_FOLDER = "${pvc.metadata.namespace}/${pvc.metadata.name}"
"""Folder of a claim in an export: csi-driver-nfs fills the names in."""


def storage_classes(facts: KubernetesFacts) -> list[Object]:
    """Return the classes. A Lustre's is called NAME-new: each claim of it makes a file system."""
    made = []
    if has_local_volumes(facts):
        made.append(_class(LOCAL_CLASS, LOCAL_PROVISIONER, {}, waits=True, keeps=False))
    for name, storage in sorted(facts.spec.storage.items()):
        if isinstance(storage, NfsStorage) and not storage.read_only:
            server = nfs_server(facts, storage)
            share = storage.export or mount_point(storage)
            if server:
                parameters = {"server": server, "share": share, "subDir": _CLAIM_FOLDER}
                made.append(_class(name, NFS_PROVISIONER, parameters))
        elif isinstance(storage, LustreStorage):
            found = _new_file_systems(facts, storage)
            if found is not None:
                made.append(_class(f"{name}-new", *found, keeps=False))
    return made


def has_local_volumes(facts: KubernetesFacts) -> bool:
    """Whether volumes are made on nodes: on their scratch disks, and on nodes made here."""
    scratch = any(isinstance(one, ScratchStorage) for one in facts.spec.storage.values())
    return scratch or all(site.is_made_here for site in facts.spec.sites.values())


def local_folders(facts: KubernetesFacts) -> dict[str, str]:
    """Return host -> folder on its scratch disks, for the hosts that have them."""
    folders: dict[str, str] = {}
    for pool, hosts in facts.compute.items():
        for name in facts.nodes[pool].storage.mounts:
            storage = facts.spec.storage[name]
            if isinstance(storage, ScratchStorage):
                folders |= {host.name: f"{mount_point(storage)}/volumes" for host in hosts}
    return folders


def _new_file_systems(
    facts: KubernetesFacts, storage: LustreStorage
) -> tuple[str, dict[str, str]] | None:
    """Return driver and parameters that make file systems like one of the spec; None: it can't.

    Only what the spec says itself is known before anything is made: on AWS a subnet that exists, on
    Google Cloud a network (without it the driver takes the one called default).
    """
    driver, site = lustre_driver(facts, storage), facts.spec.sites.get(storage.site or "")
    if driver is None or not isinstance(site, CloudSite) or storage.throughput is None:
        return None
    rate = str(int(storage.throughput.value / 1e6))
    if site.provider == "gcp":
        network = site.existing_network
        if not network:
            return None
        return driver, {"perUnitStorageThroughput": rate, "network": network}
    if site.provider == "azure":
        asked = dict(facts.catalog.addons["azurelustre-csi-driver"].parameters)
        if site.zone:
            asked["zone"] = site.zone
        return driver, {"sku-name": f"AMLFS-Durable-Premium-{rate}", **asked}
    subnets = getattr(site.network, site.subnets_key, None) or []
    if not subnets:
        return None
    kind = "SCRATCH_2" if storage.deployment == "scratch-2" else "PERSISTENT_2"
    parameters = {"subnetId": str(subnets[0]), "deploymentType": kind}
    if kind == "PERSISTENT_2":
        parameters["perUnitStorageThroughput"] = rate
    return driver, parameters


def _class(
    name: str,
    provisioner: str,
    parameters: dict[str, str],
    *,
    waits: bool = False,
    keeps: bool = True,
) -> Object:
    """Return a class; what it made goes with its claim unless it is kept."""
    return new(
        "storage.k8s.io/v1",
        "StorageClass",
        name,
        provisioner=provisioner,
        parameters=parameters or None,
        reclaimPolicy="Retain" if keeps else "Delete",
        volumeBindingMode="WaitForFirstConsumer" if waits else "Immediate",
    )
