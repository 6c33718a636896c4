"""The role disks: scratch on a node's local NVMe disks, and data on a disk that its cloud keeps."""

from __future__ import annotations

import hashlib
from typing import cast

from ....schemas.derived.storage import is_on_volume, mount_point
from ....schemas.spec import NfsStorage, ScratchStorage
from ..node import NodeFacts
from ..roles import role_compiler
from ..steps import Json, Phase, Stage, Step

_LOCAL_MODELS = {
    "aws": ("Amazon EC2 NVMe Instance Storage",),
    "gcp": ("nvme_card", "nvme_card[0-9]", "nvme_card[0-9][0-9]"),
    "azure": ("Microsoft NVMe Direct Disk", "Microsoft NVMe Direct Disk v2"),
}
"""Provider -> what the kernel calls the model of a local disk, with wildcards: EC2 User Guide,
"Make instance store volumes available"; Compute Engine, "Add Local SSD" (its persistent disks are
nvme_card-pd); Azure, "FAQ for NVMe" and the rules of azure-vm-utils; all 2026-11. Elsewhere models
differ, and every NVMe disk that is free is one."""
_LONGEST_LABEL = 12
"""Characters of a label of XFS (mkfs.xfs(8))."""


@role_compiler("disks", storage=("local-nvme",), after=("kernel",))
def disks_steps(node: NodeFacts) -> list[Step]:
    """Return the steps of role disks; none where a pool has nothing on disks of its own."""
    found = [_scratch(node, name) for name in scratch_of(node)]
    found += [_data(node, name) for name in node.storage.serves if is_on_volume(node.spec, name)]
    if not node.is_machine or not found:
        return []
    variables: dict[str, Json] = {"disks_file_systems": found}
    phases: tuple[Phase, ...] = ("install", "configure", "join", "verify")
    return [
        Step(
            stage=Stage.STORAGE,
            role="disks",
            phase=phase,
            variables={} if phase == "install" else variables,
            spares_jobs=phase == "install",
        )
        for phase in phases
    ]


def scratch_of(node: NodeFacts) -> list[str]:
    """Return the scratch on a pool's local disks, the outer of two mount points first."""
    return [n for n in node.storage.mounts if isinstance(node.spec.storage[n], ScratchStorage)]


def scratch_folder(node: NodeFacts, what: str) -> str | None:
    """Return a folder for something on a pool's first scratch; None: it has none."""
    found = scratch_of(node) if node.is_machine else []
    return f"{mount_point(node.spec.storage[found[0]])}/{what}" if found else None


def _scratch(node: NodeFacts, name: str) -> dict[str, Json]:
    storage = cast("ScratchStorage", node.spec.storage[name])
    return {
        "name": name,
        "path": mount_point(storage),
        "kind": "scratch",
        "label": _label(name),
        "models": list(_LOCAL_MODELS.get(node.provider, ())),
        "devices": storage.devices,
        "options": ["noatime", *storage.options],
        "format": storage.format,
    }


def _data(node: NodeFacts, name: str) -> dict[str, Json]:
    """Return what is on a disk that the cloud keeps: the pool's first host has it."""
    storage = cast("NfsStorage", node.spec.storage[name])
    servers = node.storage.servers.get(name, ())
    return {
        "name": name,
        "path": storage.export or mount_point(storage),
        "kind": "data",
        "host": servers[0].name if servers else "",
        "label": _label(name),
        "devices": node.storage.devices[name].split(","),
        "options": ["noatime"],
        "format": True,
        "grows": True,
    }


def _label(name: str) -> str:
    """Return a label for a storage: its name, or its start and a hash of it."""
    whole = f"gc-{name}"
    if len(whole) <= _LONGEST_LABEL:
        return whole
    return f"{whole[:8]}{hashlib.sha256(name.encode()).hexdigest()[:4]}"
