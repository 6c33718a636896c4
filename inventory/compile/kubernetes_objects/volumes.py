"""The spec's storage as volumes: one of each for every account, bound to a claim in its namespace.

A volume is bound to one claim and a claim is of one namespace: so each account has its own volume
of the same data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....schemas.derived.storage import mount_point
from ....schemas.spec import ScratchStorage
from ..steps import Json
from .objects import DOMAIN, Object, new
from .storage_classes import (
    LOCAL_PROVISIONER,
    NFS_PROVISIONER,
    storage_classes,
)
from .volume_sources import volume_source

if TYPE_CHECKING:
    from .facts import KubernetesFacts

MOUNT = f"{DOMAIN}/mount"
"""Annotation of a claim: where nodes and Slurm's jobs see the same data."""
_UNSAID = "1Ti"
"""A volume must say a size and nothing holds a shared one to it: this where the spec gives none."""
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
