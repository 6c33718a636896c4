"""The spec's storage as volumes: one of each for every account, bound to a claim in its namespace.

A volume is bound to one claim and a claim is of one namespace: so each account has its own volume
of the same data.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ....schemas.derived.storage import mount_point, simulated_nfs
from ....schemas.spec import (
    CloudSite,
    FileService,
    LustreStorage,
    NfsStorage,
    ObjectStorage,
    ScratchStorage,
)
from ...hosts import AFTER_APPLY
from ..steps import Json
from ..storage.file_services import connections, export_of, vendor_options
from ..storage.lustre import lustre_device
from .devices.disks import striped_class
from .facts import KubernetesFacts
from .nodes import POOL
from .objects import DOMAIN, Object, new

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
LOCAL_CLASS = "local-path"
LOCAL_PROVISIONER = "rancher.io/local-path"
LOCAL_PATH = "/var/lib/gcluster/volumes"
"""Folder on nodes that local volumes are made in, where they have no disks of their own for it."""
NFS_PROVISIONER = "nfs.csi.k8s.io"
_CLAIM_FOLDER = "${pvc.metadata.namespace}/${pvc.metadata.name}"
"""Folder of a claim in an export: csi-driver-nfs fills the names in."""


MOUNT = f"{DOMAIN}/mount"
"""Annotation of a claim: where nodes and Slurm's jobs see the same data."""
_UNSAID = "1Ti"
"""A volume needs a size, which is not enforced on a shared one: the default."""
ADDONS = {
    "fsx.csi.aws.com": "aws-fsx-csi-driver",
    "azurelustre.csi.azure.com": "azurelustre-csi-driver",
    "s3.csi.aws.com": "aws-mountpoint-s3-csi-driver",
    "blob.csi.azure.com": "blob-csi-driver",
    NFS_PROVISIONER: "csi-driver-nfs",
    LOCAL_PROVISIONER: "local-path-provisioner",
}
"""Driver or provisioner -> add-on of the catalog that brings it; Google's come with GKE."""


def volumes(facts: KubernetesFacts) -> list[Object]:
    """Return a volume and its claim for each account and storage whose place is known."""
    made = []
    for name in _shared(facts):
        for account in facts.accounts:
            source = volume_source(facts, name, account)
            if not source.unknown:
                made += _volume(facts, name, account, source.spec)
    return made


def unknown_volumes(facts: KubernetesFacts) -> dict[str, str]:
    """Return storage -> why it has no volume yet: what a cloud makes has no address before."""
    account = next(iter(facts.accounts))
    found = {name: volume_source(facts, name, account).unknown for name in _shared(facts)}
    return {name: why for name, why in found.items() if why}


def csi_addons(facts: KubernetesFacts) -> set[str]:
    """Return the add-ons whose drivers volumes and classes name."""
    account = next(iter(facts.accounts))
    drivers = {volume_source(facts, name, account).driver for name in _shared(facts)}
    drivers |= {made["provisioner"] for made in storage_classes(facts)}
    return {ADDONS[name] for name in drivers if name in ADDONS}


def _shared(facts: KubernetesFacts) -> list[str]:
    """Return the storage that is one for all nodes: scratch disks are each node's own."""
    storage = sorted(facts.spec.storage.items())
    return [name for name, one in storage if not isinstance(one, ScratchStorage)]


def _volume(
    facts: KubernetesFacts, name: str, account: str, source: dict[str, Json]
) -> list[Object]:
    """Return a volume, which is kept whatever becomes of its claim, and that claim."""
    storage = facts.spec.storage[name]
    capacity = getattr(storage, "capacity", None)
    size = _UNSAID if capacity is None else f"{int(capacity.value / 2**30)}Gi"
    modes = ["ReadOnlyMany" if getattr(storage, "read_only", False) else "ReadWriteMany"]
    volume = f"{account}-{name}"
    spec: dict[str, Json] = {
        "capacity": {"storage": size},
        "accessModes": modes,
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": "",
        "claimRef": {"namespace": account, "name": name},
        **_only_on(facts, name),
        **{key: value for key, value in source.items() if value},
    }
    claim = {
        "accessModes": modes,
        "resources": {"requests": {"storage": size}},
        "storageClassName": "",
        "volumeName": volume,
    }
    where = {MOUNT: mount_point(storage)}
    return [
        new("v1", "PersistentVolume", volume, spec=spec),
        new(
            "v1",
            "PersistentVolumeClaim",
            name,
            namespace=account,
            annotations=where,
            spec=claim,
        ),
    ]


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
    if any(name in simulated_nfs(facts.spec, pool) for pool in facts.compute):
        return _on_nodes(facts, name)
    if isinstance(storage, NfsStorage):
        return _nfs(facts, storage)
    if isinstance(storage, FileService):
        return _service(facts, name, storage)
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
    managed = storage.is_managed
    driver = LUSTRE_DRIVERS.get(str(site.provider)) if site is not None and managed else None
    return None if _is_gkes(driver) and not _on_gke(facts) else driver


def _is_gkes(driver: str | None) -> bool:
    """Whether Google supports a driver as a part of GKE alone.

    Both require GKE's node images; neither is published as a chart or one manifest
    (docs/installation of GoogleCloudPlatform/lustre-csi-driver and README of gcs-fuse-csi-driver;
    read 2026-11).
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
    if found is None or AFTER_APPLY in device:
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


def _share(facts: KubernetesFacts, name: str) -> tuple[str, str]:
    """Return server and path of a file service's file system; ("", "") until it is known."""
    pool = next((pool for pool in facts.compute if name in facts.nodes[pool].storage.mounts), None)
    device = "" if pool is None else facts.nodes[pool].storage.devices.get(name, "")
    server, path = export_of(device)
    return ("", "") if server == AFTER_APPLY else (server, path)


def _service(facts: KubernetesFacts, name: str, storage: FileService) -> Source:
    """Return a cloud's NFS service by the client that Kubernetes has built in."""
    server, path = _share(facts, name)
    if not server:
        return Source({}, "its address is known when it is made")
    nfs: dict[str, Json] = {"server": server, "path": path}
    if storage.read_only:
        nfs["readOnly"] = True
    many = connections(storage)
    said = any(option.startswith("nconnect=") for option in storage.options)
    own = [f"nconnect={many}"] if many > 1 and not said else []
    options = [*vendor_options(storage), *own, *storage.options]
    return Source({"nfs": nfs, "mountOptions": options})


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
        # The driver takes the part before the colon as the bucket (ParseVolumeID): a pod with two
        # volumes of one handle never starts. Folders without a marker object are shown too.
        handle = f"{bucket}:{name}-{account}"
        options += ["implicit-dirs", *([f"only-dir={path}"] if path else [])]
    else:
        container, _, below = path.partition("/")
        attributes = {"storageAccount": bucket, "containerName": container, "protocol": "fuse2"}
        options += [f"--subdirectory={below}"] if below else []
        options += ["--use-adls=true"] if storage.hierarchical_namespace else []
    csi: dict[str, Json] = {"driver": driver, "volumeHandle": handle}
    if attributes:
        csi["volumeAttributes"] = attributes
    if storage.read_only:
        csi["readOnly"] = True
    return Source({"csi": csi, "mountOptions": options}, driver=driver)


def _on_nodes(facts: KubernetesFacts, name: str) -> Source:
    """Return what the nodes themselves have mounted, on the pools that have it."""
    pools = _mounting(facts, name)
    if not pools:
        return Source({}, "no compute pool mounts it")
    return Source({"local": {"path": mount_point(facts.spec.storage[name])}, **_affinity(pools)})


def _mounting(facts: KubernetesFacts, name: str) -> list[str]:
    """Return the compute pools that a storage is for."""
    return [pool for pool in facts.compute if name in facts.nodes[pool].storage.mounts]


def _affinity(pools: list[str]) -> dict[str, Json]:
    """Return the part of a volume that keeps its pods on some pools."""
    term = {"key": POOL, "operator": "In", "values": pools}
    return {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [term]}]}}}


def _only_on(facts: KubernetesFacts, name: str) -> dict[str, Json]:
    """Return the affinity of a volume where the spec names some of the compute pools for it."""
    pools = _mounting(facts, name)
    return {} if not pools or len(pools) == len(facts.compute) else _affinity(pools)


def storage_classes(facts: KubernetesFacts) -> list[Object]:
    """Return the classes. A Lustre's is called NAME-new: each claim of it makes a file system.

    Claims that name none get the first that several nodes share, else the only one there is; under
    a cloud's control plane that is the cloud's. EKS has none of its own from 1.30 on, so there it
    is one of its add-on's (EKS User Guide, "Kubernetes 1.30"; parameters.md of the EBS driver).
    """
    made = _classes(facts)
    if facts.scheduler.control_plane == "eks":
        disks = {"type": "gp3", "encrypted": "true"}
        own = _class(_EBS_CLASS, "ebs.csi.aws.com", disks, waits=True, keeps=False)
        own["metadata"]["annotations"] = {DEFAULT_CLASS: "true"}
        return [*made, own]
    shared = [one for one in made if one["provisioner"] == NFS_PROVISIONER]
    unnamed = shared[:1] or (made if len(made) == 1 else [])
    if unnamed and facts.scheduler.control_plane == "self":
        unnamed[0]["metadata"].setdefault("annotations", {})[DEFAULT_CLASS] = "true"
    return made


_EBS_CLASS = "gp3"
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
"""Annotation of the class that claims get which name none."""


def _classes(facts: KubernetesFacts) -> list[Object]:
    made = []
    if has_local_volumes(facts):
        made.append(_class(LOCAL_CLASS, LOCAL_PROVISIONER, {}, waits=True, keeps=False))
    for name, storage in sorted(facts.spec.storage.items()):
        if isinstance(storage, ScratchStorage) and facts.scheduler.control_plane == "aks":
            made.append(striped_class(name, _mounting(facts, name)))
        elif isinstance(storage, NfsStorage) and not storage.read_only:
            server = nfs_server(facts, storage)
            share = storage.export or mount_point(storage)
            if server:
                parameters = {"server": server, "share": share, "subDir": _CLAIM_FOLDER}
                made.append(_class(name, NFS_PROVISIONER, parameters))
        elif isinstance(storage, FileService) and not storage.read_only:
            server, share = _share(facts, name)
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
    own = facts.scheduler.control_plane == "self"
    scratch = own and any(isinstance(s, ScratchStorage) for s in facts.spec.storage.values())
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

    Only the spec's own values are known before anything is created: on AWS an existing subnet, on
    Google Cloud a network (without it the driver uses the one called default).
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
        requested = dict(facts.catalog.addons["azurelustre-csi-driver"].parameters)
        if site.zone:
            requested["zone"] = site.zone
        return driver, {"sku-name": f"AMLFS-Durable-Premium-{rate}", **requested}
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
