"""A node's own NVMe disks for its pods, where a cloud's control plane sets its nodes up."""

from __future__ import annotations

import json
from typing import NamedTuple

from .....schemas.derived.storage import mount_point, own_disks
from ...steps import Json
from ..facts import KubernetesFacts
from ..nodes import POOL
from ..objects import Object, new


def striped_class(name: str, pools: list[str]) -> Object:
    """Return the class of volumes that Azure Container Storage stripes over a node's own disks.

    Its driver runs on the pools that have some (learn.microsoft.com/azure/storage/
    container-storage/use-container-storage-with-local-disk and manage-local-csi-driver-placement;
    read 2026-11).
    """
    term = {"key": POOL, "operator": "In", "values": pools}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [term]}]}
    where = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    return new(
        "storage.k8s.io/v1",
        "StorageClass",
        name,
        annotations={"storageoperator.acstor.io/nodeAffinity": json.dumps(where)},
        provisioner="localdisk.csi.acstor.io",
        reclaimPolicy="Delete",
        volumeBindingMode="WaitForFirstConsumer",
        allowVolumeExpansion=True,
    )


class OwnDisks(NamedTuple):
    """A pod's volume on its node's own disks."""

    folder: str
    """Where containers find it."""
    source: dict[str, Json]
    """Part of the volume that says what it is."""


_SHARE = 0.9
"""Of a node's disks that one pod's volume gets: the file system and the array have their part."""


def own_disks_volume(facts: KubernetesFacts, pool: str) -> OwnDisks | None:
    """Return what a pod has on its node's own disks.

    Under EKS and GKE all that pods write lies there, so it is an empty folder of the pod's; under
    AKS a volume that comes and goes with the pod, of most of a node's disks. None: the pool has no
    such storage, or the control plane is not a cloud's.
    """
    name = own_disks(facts.spec).get(pool)
    plane = facts.scheduler.control_plane
    if name is None or plane == "self":
        return None
    folder = mount_point(facts.spec.storage[name])
    if plane != "aks":
        return OwnDisks(folder, {"emptyDir": {}})
    size = f"{int(facts.machine(pool).nvme_gib * _SHARE)}Gi"
    claim = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": name,
        "resources": {"requests": {"storage": size}},
    }
    return OwnDisks(folder, {"ephemeral": {"volumeClaimTemplate": {"spec": claim}}})
