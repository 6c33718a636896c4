"""The table of a pool's software: each piece is a role's, an image's, or not wanted by the spec.

The compiler takes the versions of roles from it, `gcluster software` prints it and `validate` says
no where a row is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from ..spec import Software

if TYPE_CHECKING:
    from .lock import Component, Lock, VendorImage
    from .need import Need
    from .resolved import ResolvedComponent

Outcome: TypeAlias = Literal["role", "image", "not wanted"]

OF_NODES = "software"
"""What rows name whose component the spec says is preinstalled."""
PREINSTALLED = "preinstalled"
"""Written for a version: the nodes bring the component, and nothing of it is installed."""
WITH_DRIVER = frozenset({"fabric_manager", "imex"})
"""Have the driver's version and come as it does."""
_WITH_ROCM = frozenset({"rccl", "amdgpu", "amd_smi"})
_OF_PODS = frozenset({"cuda", "nccl", "nccl_tests", "rccl", "gdrcopy"})
_OF_OPERATOR = frozenset({"driver", *WITH_DRIVER, "dcgm", "container_toolkit", "gdrcopy"})
_TOOLKITS = frozenset({"container_toolkit", "amd_container_toolkit"})
_DAEMONS = frozenset({"tcpx", "tcpxo", "gib-metal"})
"""Fabric plugins whose daemon is a container."""
_OF_VENDOR = {
    "nvidia": ("driver", "cuda", "nccl", "dcgm", "container_toolkit"),
    "amd": ("rocm", "amdgpu", "rccl", "amd_smi", "amd_container_toolkit"),
}
_OF_PLUGIN = {
    "efa": ("efa",),
    "tcpx": ("tcpx", "tcpx_plugin"),
    "tcpxo": ("tcpxo", "tcpxo_plugin"),
    "gib": ("gib",),
    "gib-metal": ("gib", "asapd"),
    "ofed": ("ofed",),
}


class SoftwareRow(msgspec.Struct, frozen=True, kw_only=True):
    """Where one piece of a pool's software comes from."""

    key: str
    name: str
    outcome: Outcome
    by: str
    """The role, the image, or the place in the spec that says it is not wanted."""
    version: str = ""
    """"": whichever the image has; none where it isn't wanted."""
    origin: str = ""
    """Why a role installs this version; as of the component."""
    install: str = ""
    """Of Slurm: whether the cluster builds it; as of the component."""
    verified: bool = True
    why: str = ""
    """Why it isn't wanted."""
    source: str = ""
    date: str = ""

    @property
    def is_there(self) -> bool:
        """Whether the nodes have it in the end: by a role, by their image, or as the spec says."""
        return self.outcome != "not wanted" or self.by == OF_NODES


class MissingSoftware(msgspec.Struct, frozen=True, kw_only=True):
    """A piece that the nodes need and nothing brings."""

    key: str
    name: str
    image: str = ""
    """The image that was to bring it, but not for such GPUs."""


def required(need: Need) -> tuple[str, ...]:
    """Return the components that must have a row on nodes like these, in the table's order."""
    keys = list(_OF_VENDOR.get(need.vendor or "", ()))
    if need.uses("nvswitch") and need.nvswitch:
        keys.append("fabric_manager")
    if need.uses("nvlink-domain"):
        keys.append("imex")
    keys += _OF_PLUGIN.get(need.plugin or "", ())
    if need.scheduler == "slurm":
        keys.append("slurm")
    return tuple(keys)


def is_preinstalled(key: str, software: Software) -> bool:
    """Say whether the spec says that the nodes bring a component, or what it comes with."""
    outer = "driver" if key in WITH_DRIVER else "rocm" if key in _WITH_ROCM else key
    return PREINSTALLED in {getattr(software, key, ""), getattr(software, outer, "")}


def opted_out(key: str, need: Need, software: Software, containers: str) -> tuple[str, str] | None:
    """Return where the spec says that no role is to install a component, and why; None: nowhere.

    Args:
        key: of the component.
        need: what the nodes are.
        software: what the spec says for them.
        containers: what runs containers of Slurm's jobs: "pyxis" or "none".
    """
    if is_preinstalled(key, software):
        return OF_NODES, f"{PREINSTALLED}: the nodes have it"
    if getattr(software, key, "auto") != "auto":
        return None
    kubernetes = need.scheduler == "kubernetes"
    no_containers = need.scheduler == "slurm" and containers == "none"
    reasons = (
        (
            need.control_plane != "self",
            ("scheduler.control_plane", f"the nodes are {need.control_plane.upper()}'s"),
        ),
        (kubernetes and key in _OF_PODS, ("scheduler.type", "pods bring their own")),
        (
            kubernetes and need.gpu_driver == "container" and key in _OF_OPERATOR,
            ("scheduler.gpu.driver", "the GPU operator brings it"),
        ),
        (
            kubernetes and key == "amd_container_toolkit",
            ("scheduler.type", "AMD's device plugin gives pods their devices"),
        ),
        (
            no_containers and key in _TOOLKITS and need.plugin not in _DAEMONS,
            ("software.containers", "no job runs in a container"),
        ),
        (
            need.scheduler == "none" and key in _TOOLKITS and need.plugin not in _DAEMONS,
            ("scheduler.type", "what runs containers there is a hook's, and brings it"),
        ),
    )
    return next((place for holds, place in reasons if holds), None)


def software_table(
    components: Iterable[ResolvedComponent],
    need: Need,
    software: Software,
    lock: Lock,
    *,
    containers: str,
    image: VendorImage | None,
) -> tuple[tuple[SoftwareRow, ...], tuple[MissingSoftware, ...]]:
    """Return the rows of a pool's table, in the lock's order, and what has none.

    Args:
        components: what the pool resolves to.
        need: what its nodes are.
        software: what the spec says for them.
        lock: says which role installs what.
        containers: as of `opted_out`.
        image: what they boot; None: an image that brings nothing, or that isn't known.
    """
    spared = {
        component.key: place
        for component in lock.components
        if (place := opted_out(component.key, need, software, containers)) is not None
    }
    found = {c.key: c for c in components if c.origin == "image" or c.key not in spared}
    rows = {row.key: row for row in _rows(found, lock, image, need)}
    if need.scheduler == "slurm" and "slurm" not in rows:
        rows["slurm"] = _packaged_slurm(lock)
    missing = []
    for key in required(need):
        if key in rows:
            continue
        name = lock.component(key).name
        if key in spared:
            where, why = spared[key]
            rows[key] = SoftwareRow(key=key, name=name, outcome="not wanted", by=where, why=why)
        else:
            unfit = image.name if image is not None and key in image.brings else ""
            missing.append(MissingSoftware(key=key, name=name, image=unfit))
    order = [component.key for component in lock.components]
    return tuple(sorted(rows.values(), key=lambda row: order.index(row.key))), tuple(missing)


def _packaged_slurm(lock: Lock) -> SoftwareRow:
    """Return the row of Slurm on hosts whose distribution is not specified."""
    component = lock.component("slurm")
    return SoftwareRow(
        key=component.key,
        name=component.name,
        outcome="role",
        by=component.role,
        origin="distribution",
    )


def _rows(
    found: Mapping[str, ResolvedComponent], lock: Lock, image: VendorImage | None, need: Need
) -> Iterator[SoftwareRow]:
    """Yield the rows of what a role installs or the image brings, and of what is inside of that."""
    made: dict[str, SoftwareRow] = {}
    for component in lock.components:
        row = _row(component, found, made, image, need)
        if row is not None:
            made[component.key] = row
            yield row


def _row(
    component: Component,
    found: Mapping[str, ResolvedComponent],
    made: Mapping[str, SoftwareRow],
    image: VendorImage | None,
    need: Need,
) -> SoftwareRow | None:
    resolved, outer = found.get(component.key), made.get(component.inside)
    if outer is not None:
        version = resolved.version if resolved is not None else f"of {outer.name} {outer.version}"
        return msgspec.structs.replace(
            outer, key=component.key, name=component.name, version=version.strip()
        )
    if resolved is None:
        return None
    if resolved.origin == "image":
        return SoftwareRow(
            key=component.key,
            name=component.name,
            outcome="image",
            by=image.name if image else need.image or "what the nodes boot",
            version=resolved.version,
            source=image.source if image else "the spec: rdma.drivers",
            date=image.date if image else "",
        )
    if not component.role:
        return None
    return SoftwareRow(
        key=component.key,
        name=component.name,
        outcome="role",
        by=component.role,
        version=resolved.version,
        origin=resolved.origin,
        install=resolved.install,
        verified=resolved.verified,
        source=resolved.source,
        date=resolved.date,
    )
