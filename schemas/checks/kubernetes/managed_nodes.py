"""What is required of nodes that a cloud's control plane sets up, where none of our roles run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...derived.control_planes import GKE_AT_ONCE
from ...diagnostics import PathTuple
from ...spec import (
    Boot,
    CloudSite,
    ClusterSoftware,
    GpuSettings,
    KubernetesScheduler,
    LustreStorage,
    Maintenance,
    ObjectStorage,
    Pool,
    Rdma,
    ScratchStorage,
    Software,
    Tuning,
    Update,
    User,
)
from ..context import CheckContext
from ..registry import Finding, check

_BY_OTHERS = frozenset({"kubernetes", "containers", "slurm", "mpi", "sources"})
"""Keys of `software` that the cloud takes, or that other checks are about."""
_OF_OPERATOR = frozenset({"modules", "peer_memory"})
"""What the GPU operator is given of `gpus` where it brings the driver."""
_MIG_INSTEAD = "write scheduler: {gpu: {mig: PROFILE}}"
_ON_NODES = ("gid", "groups", "shell", "sudo", "login")
"""What an account is on a machine, in addition to a name, an id and keys."""


def _managed(context: CheckContext) -> KubernetesScheduler | None:
    kubernetes = context.kubernetes
    return None if kubernetes is None or kubernetes.control_plane == "self" else kubernetes


@check("GC746", summary="Something is required of nodes that a cloud's control plane sets up.")
def managed_nodes_unset(context: CheckContext) -> Iterator[Finding]:
    """Nodes of EKS, GKE and AKS are set up by their cloud: no role runs on them.

    So there is no hardening, no kernel parameter, no MIG mode, no version of CUDA or NCCL, no
    directory of users and no firmware that gcluster could give them. Where the cloud renews nodes,
    `update` holds as far as it has such a limit: `max_unavailable` under GKE and AKS, and AKS'
    `drain_timeout`. Under EKS nodes are instances of the stack: `gcluster repair` renews them in
    waves and holds to all of `update`. Bring what the nodes' image has not in the containers of the
    jobs, cut GPUs by `scheduler.gpu.mig`, or write `control_plane: self`.
    """
    kubernetes = _managed(context)
    if kubernetes is None:
        return
    only_managed = all(pool.role == "compute" for pool in context.pools.values())
    found = [*_of_root(context, kubernetes)] if only_managed else []
    for name, pool in context.pools.items():
        if pool.role == "compute":
            found += _of_pool(context, kubernetes, name, pool)
    found += _of_storage(context)
    for path, hint in found:
        yield Finding(
            summary=f"{'.'.join(map(str, path))} would set nothing: {kubernetes.control_plane} "
            "sets up its nodes itself",
            path=path,
            at_key=True,
            hint=hint or f"remove {path[-1]}, or write control_plane: self",
            relies_on=(path, ("scheduler", "control_plane"), ("pools", "*", "role")),
        )


def _of_root(
    context: CheckContext, kubernetes: KubernetesScheduler
) -> Iterator[tuple[PathTuple, str]]:
    """Yield what is said for all nodes, where there are no others: where, and what instead."""
    for name, site in context.sites.items():
        if isinstance(site, CloudSite) and site.image and kubernetes.control_plane == "gke":
            yield ("sites", name, "image"), ""
    if context.hardening is not None:
        yield ("hardening",), ""
    if context.ssh_authorities:
        yield ("ssh_authorities",), ""
    if context.directory is not None:
        yield ("users",), "list the people who use the cluster: users: [{name: ada, uid: 2001}]"
    defaults = User(name="", uid=1000)
    for index, user in enumerate(context.users):
        for key in _changed(user, defaults, _ON_NODES):
            yield ("users", index, key), ""
    for key in _versions(context.software, ClusterSoftware(), kubernetes):
        yield ("software", key), _instead_of_version(kubernetes, key)


def _of_pool(
    context: CheckContext, kubernetes: KubernetesScheduler, name: str, pool: Pool
) -> Iterator[tuple[PathTuple, str]]:
    path: PathTuple = ("pools", name)
    for key in _versions(pool.software or Software(), Software(), kubernetes):
        yield (*path, "software", key), _instead_of_version(kubernetes, key)
    for key in _changed(pool.boot, Boot()):
        yield (*path, "boot", key), ""
    for key in _changed(pool.tuning, Tuning()):
        yield (*path, "tuning", key), ""
    for key in _changed(pool.gpus, GpuSettings()):
        if key not in _OF_OPERATOR or kubernetes.gpu.driver == "host":
            yield (*path, "gpus", key), _MIG_INSTEAD if key == "mig" else ""
    fabric = context.fabric(pool)
    if fabric is not None and fabric.plugin == "ofed":  # others have GC229
        yield from (((*path, "rdma", k), "") for k in _changed(pool.rdma, Rdma()) if k != "pods")
    if pool.firmware is not None:
        yield (*path, "firmware"), ""
    yield from _of_update(kubernetes, (*path, "update"), pool.update)
    if pool.image is not None and kubernetes.control_plane == "gke":
        yield (*path, "image"), ""


_HELD = {
    "eks": Update.__struct_fields__,
    "gke": ("max_unavailable",),
    "aks": ("max_unavailable", "drain_timeout"),
}
"""Keys of `update` that hold where a pool's nodes are renewed: by the cloud, EKS' by `repair`."""
_SHORTEST_DRAIN_S, _LONGEST_DRAIN_S = 300, 86_400
"""AKS' limits of a drain, from memory of learn.microsoft.com/azure/aks/
upgrade-aks-node-pools-rolling; its text was not read to the limits in 2026-11."""


def _of_update(
    kubernetes: KubernetesScheduler, path: PathTuple, update: Update
) -> Iterator[tuple[PathTuple, str]]:
    cloud = kubernetes.control_plane
    for key in _changed(update, Update()):
        if key not in _HELD[cloud]:
            yield (*path, key), f"remove {key}: {cloud} has no such limit for its upgrades"
        elif (cloud, key) == ("aks", "drain_timeout") and not (
            _SHORTEST_DRAIN_S <= update.wait_s <= _LONGEST_DRAIN_S
        ):
            yield (*path, key), "write 5m to 24h, which AKS takes"
        elif cloud == "gke" and (update.max_unavailable or 0) > GKE_AT_ONCE:
            yield (*path, key), f"write {GKE_AT_ONCE}, the most nodes that GKE renews at once"


_SHORTEST_H, _LONGEST_H = 4, 24
"""Hours of a window: GKE's and AKS' least, and AKS' most (docs.cloud.google.com/kubernetes-engine/
docs/concepts/maintenance-windows-and-exclusions; AKS' from memory of learn.microsoft.com/azure/
aks/planned-maintenance)."""


@check("GC748", summary="A maintenance window that a control plane of Kubernetes doesn't have.")
def maintenance_unsuited(context: CheckContext) -> Iterator[Finding]:
    """GKE and AKS have one window a cluster that comes again, of 4 to 24 hours; AKS' is weekly.

    In it they renew control plane, their own pods and, under AKS, nodes' images, a few nodes at a
    time (`update` of the pools). EKS' API has none (CreateCluster, CreateNodegroup): it renews
    control planes when it likes and no node, which `gcluster repair` does at the time that you run
    it. Nothing changes by itself where the control plane is ours.
    """
    kubernetes = context.kubernetes
    windows = {} if kubernetes is None else kubernetes.maintenance
    if kubernetes is None or not windows:
        return
    path: PathTuple = ("scheduler", "maintenance")
    plane = ("scheduler", "control_plane")
    if kubernetes.control_plane in {"self", "eks"}:
        yield Finding(
            summary=f"control_plane: {kubernetes.control_plane} has no maintenance window",
            path=path,
            at_key=True,
            hint="remove maintenance: nodes change when gcluster up or repair does it",
            relies_on=(path, plane),
        )
        return
    for name in list(windows)[1:]:
        yield Finding(
            summary=f"a cluster of {kubernetes.control_plane} has one window",
            path=(*path, name),
            at_key=True,
            hint="keep one, long enough for all",
            relies_on=(path, plane),
        )
    name, window = next(iter(windows.items()))
    for key, hint in _window(kubernetes.control_plane, window):
        yield Finding(
            summary=f'maintenance "{name}" is no window of {kubernetes.control_plane}\'s',
            path=(*path, name, *key),
            at_key=not key,
            hint=hint,
            relies_on=((*path, name), plane),
        )


def _window(cloud: str, window: Maintenance) -> Iterator[tuple[PathTuple, str]]:
    hours = window.duration.value / 3600
    if window.pools:
        yield ("pools",), "remove pools: it is for the whole cluster"
    if window.every is None:
        yield (), "add every: week"
    elif cloud == "aks" and window.every == "day":
        yield ("every",), "write every: week, the only kind that AKS has for its control planes"
    if not _SHORTEST_H <= hours <= _LONGEST_H or hours % 1:
        yield ("duration",), f"write whole hours, {_SHORTEST_H}h to {_LONGEST_H}h"
    elif cloud == "gke" and window.every == "week" and hours < _WEEKLY_H:
        yield ("duration",), f"write {_WEEKLY_H}h or more, or every: day"


_WEEKLY_H = 12
"""GKE wants at least 48 hours in any 32 days, of which four weeks are certain, in windows of four
hours at least (cloud.google.com/kubernetes-engine/docs/maintenance-window, read 2026-11)."""


def _of_storage(context: CheckContext) -> Iterator[tuple[PathTuple, str]]:
    for name, storage in context.storage.items():
        if isinstance(storage, LustreStorage) and storage.tunables:
            yield ("storage", name, "tunables"), ""
        if isinstance(storage, LustreStorage) and storage.efa and not storage.is_made:
            yield ("storage", name, "efa"), "remove efa: the nodes' image sets their client up"
        if isinstance(storage, ScratchStorage) and storage.devices:
            yield (
                ("storage", name, "devices"),
                "remove devices: all of a node's local disks are one array",
            )
        if isinstance(storage, ObjectStorage) and storage.cache is not None:
            yield ("storage", name, "cache"), ""


def _versions(own: Software, none: Software, kubernetes: KubernetesScheduler) -> Iterator[str]:
    """Yield the keys of `software` that nothing takes; what the image has may be said."""
    for key in _changed(own, none):
        of_operator = key == "driver" and kubernetes.gpu.driver == "container"
        of_image = key == "distribution" and kubernetes.control_plane == "aks"
        said = getattr(own, key) == "preinstalled"
        if key not in _BY_OTHERS and not (of_operator or of_image or said):
            yield key


def _instead_of_version(kubernetes: KubernetesScheduler, key: str) -> str:
    if key in {"cuda", "nccl", "rocm", "rccl"}:
        return f"remove {key}: jobs bring it in their containers"
    return f"remove {key}: nodes have what {kubernetes.control_plane}'s image has"


def _changed(value: Any, default: Any, keys: tuple[str, ...] = ()) -> list[str]:
    """Return the fields that differ from their defaults."""
    names = keys or type(default).__struct_fields__
    return [name for name in names if getattr(value, name) != getattr(default, name)]
