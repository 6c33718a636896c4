"""A blueprint of Google's Cluster Toolkit with GKE: node pools become pools.

What a module does that says nothing is what its variables.tf says (modules/compute/gke-node-pool).
"""

from __future__ import annotations

import re
from typing import Any

from ...catalog import load_catalog
from ..draft import Adopted, Draft, NothingToAdopt, reasons, taints
from ..source import Kind, Source
from .blueprint import SITE, Blueprint, Module, site_of
from .file_systems import networks_and_storage
from .runners import leave_runners
from .settling import settle_modules

_NODES, _CLUSTER, _APPLY = "gke-node-pool", "gke-cluster", "kubectl-apply"
_SYSTEM_MACHINE, _SYSTEM_NODES = "e2-standard-4", (2, 10)
"""The pool of system pods of a cluster that says nothing (gke-cluster/variables.tf)."""
_REASONS: tuple[tuple[str, str, Kind], ...] = (
    ("system_node_pool", "gcluster chooses it for the pool of system pods", "replaced"),
    ("additional_networks", "gcluster makes the networks of the fabric", "replaced"),
    ("k8s_network_names", "gcluster names the networks of pods", "replaced"),
    ("csi", "storage of the spec brings the drivers that it needs", "replaced"),
    ("display_name", "a network needs no name", "replaced"),
    ("workload_identity", "the spec has no identity of pods", "lost"),
    ("configure_workload_identity_sa", "the spec has no identity of pods", "lost"),
    ("maintenance", "GKE's own windows hold", "lost"),
    ("release_channel", "GKE's regular channel", "replaced"),
    ("auto_upgrade", "GKE's own upgrades of nodes hold", "lost"),
    ("manifests", "your manifests are not applied", "lost"),
    ("gib", "the plugin of NCCL comes with the fabric", "replaced"),
    ("kueue", "kueue: gcluster writes queues of its own", "replaced"),
    ("workload", "your manifests are not applied", "lost"),
    ("install_gpu_direct_manifests", "the plugin of NCCL comes with the fabric", "replaced"),
    ("template_vars", "your manifests are not applied", "lost"),
    ("dcgm", "no metrics are collected under Kubernetes", "lost"),
    ("local_mount", "pods claim storage; nodes mount nothing", "lost"),
)


def is_gke(blueprint: Blueprint) -> bool:
    """Say whether a blueprint makes a cluster of GKE."""
    return bool(blueprint.of(_NODES)) and not blueprint.of("schedmd-slurm-gcp-controller")


def adopt_gke(blueprint: Blueprint, draft: Draft) -> Adopted:
    """Draft a spec of a blueprint with GKE.

    Raises:
        NothingToAdopt: its project or region is not specified.
    """
    site = site_of(blueprint, draft)
    draft.scheduler = {"type": "kubernetes", "control_plane": "gke"}
    pools = {module.key: _node_pool(module, draft) for module in blueprint.of(_NODES)}
    if not pools:
        raise NothingToAdopt("it has no node pool of GKE")
    for module in blueprint.of(_CLUSTER):
        _cluster(module.settings, site, draft)
        _system_pool(module.settings, draft)
    for module in blueprint.of(_APPLY):
        _applied(module.settings, draft)
    read = networks_and_storage(blueprint, pools, draft)
    leave_runners(blueprint, "GKE sets its nodes up: a DaemonSet")
    read |= {m.key for m in blueprint.modules if m.kind in {_NODES, _CLUSTER, _APPLY}}
    draft.leave_image("gke")
    settle_modules(blueprint, read, draft, reasons(_REASONS))
    return draft.finished()


def _node_pool(module: Module, draft: Draft) -> str:
    settings = module.settings
    own = settings.text("name") or module.key.removesuffix("_pool").removesuffix("-pool")
    name = draft.fit(own, "pool", draft.pools)
    entry: dict[str, Any] = {"site": SITE}
    machine = settings.text("machine_type") or (
        "" if settings.has("machine_type") else "c2-standard-60"
    )
    if machine:
        entry["machine"] = draft.machine(machine, ["gcp"])
    _count(settings, entry, name, draft)
    _bought(settings, entry)
    size = settings.number("disk_size_gb")
    if size:
        entry["disk"] = f"{size} GB"
    zones = settings.texts("zones")
    if zones and zones != [draft.sites[SITE].get("zone")]:
        entry["zones"] = zones
    policy = settings.part("placement_policy")
    if policy.agrees("type", value="COMPACT") and not policy.text("name"):
        entry["placement"] = "cluster"
    _accelerators(settings, machine)
    kubernetes: dict[str, Any] = {}
    labels, pods = settings.pairs("kubernetes_labels"), settings.number("max_pods_per_node")
    if labels:
        kubernetes["labels"] = labels
    if pods:
        kubernetes["max_pods"] = pods
    marks = taints(settings.each("taints"))
    if marks:
        kubernetes["taints"] = marks
    if kubernetes:
        entry["kubernetes"] = kubernetes
    settings.agrees("auto_upgrade", value=False)
    settings.agrees("install_gpu_direct_manifests", value=False)
    settings.agrees("run_workload_script", value=False)
    draft.pools[name] = entry
    return name


def _system_pool(settings: Source, draft: Draft) -> None:
    """Write the pool of system pods that the module makes, said or not (its variables.tf)."""
    least = settings.number("system_node_pool_node_count", "total_min_nodes")
    most = settings.number("system_node_pool_node_count", "total_max_nodes")
    machine = settings.text("system_node_pool_machine_type")
    if not machine and settings.has("system_node_pool_machine_type"):
        return
    least, most = least or _SYSTEM_NODES[0], most or _SYSTEM_NODES[1]
    kubernetes: dict[str, Any] = {"system": True}
    settings.agrees("system_node_pool_taints", value=[])
    marks = taints(settings.each("system_node_pool_taints"))
    if marks:
        kubernetes["taints"] = marks
    entry: dict[str, Any] = {
        "site": SITE, "machine": draft.machine(machine or _SYSTEM_MACHINE, ["gcp"]),
        "count": least if least == most else {"min": least, "max": most},
    }  # fmt: skip
    size = settings.number("system_node_pool_disk_size_gb")
    if size:
        entry["disk"] = f"{size} GB"
    draft.pools[draft.fit("system", "pool", draft.pools)] = entry | {"kubernetes": kubernetes}


def _count(settings: Source, entry: dict[str, Any], name: str, draft: Draft) -> None:
    static = settings.number("static_node_count")
    if static is not None:
        entry["count"] = static
        return
    if settings.has("static_node_count"):
        return
    most = settings.number("autoscaling_total_max_nodes")
    least = settings.number("autoscaling_total_min_nodes") or 0
    if most is None:
        draft.leave(f"pool {name}: count", "its number of nodes is not specified", "unfinished")
        return
    entry["count"] = {"min": least, "max": most}


def _bought(settings: Source, entry: dict[str, Any]) -> None:
    affinity = settings.part("reservation_affinity")
    affinity.agrees("consume_reservation_type", value="SPECIFIC_RESERVATION")
    named = [each.text("name") for each in affinity.each("specific_reservations")]
    if any(named):
        entry["market"] = [{"reservation": one} for one in named if one]
    elif settings.take("spot") is True:
        entry["market"] = ["spot"]
    elif settings.take("enable_flex_start") is True:
        longest = settings.number("max_run_duration")
        entry["market"] = [{"flex_start": f"{longest}s"} if longest else "flex-start"]


def _accelerators(settings: Source, machine: str) -> None:
    """Take GPUs that the machine type has anyway."""
    known = load_catalog().machines.get(machine)
    if known is None or known.gpu is None:
        return
    for each in settings.each("guest_accelerator"):
        kind = rf"nvidia-(\w+-)?{known.gpu.model.lower()}(-mega)?(-\d+gb)?"
        if re.fullmatch(kind, each.text("type").lower()):
            each.agrees("count", value=known.gpu.count)
        else:
            each.leave("the machine type has other GPUs", "type")


def _cluster(settings: Source, site: dict[str, Any], draft: Draft) -> None:
    version = settings.text("version_prefix").rstrip(".")
    if version:
        draft.more["software"] = {"kubernetes": version}
    allowed = [each.text("cidr_block") for each in settings.each("master_authorized_networks")]
    if any(allowed):
        site.setdefault("network", {})["admin_cidrs"] = [each for each in allowed if each]
    for each in settings.each("maintenance_exclusions"):
        each.leave("GKE's own windows hold")
    settings.agrees("release_channel", value="REGULAR")
    settings.agrees("enable_inference_gateway", value=False)
    settings.agrees("enable_private_endpoint", value=False)
    settings.agrees("gcp_public_cidrs_access_enabled", value=False)
    settings.agrees("enable_parallelstore_csi", value=False)


def _applied(settings: Source, draft: Draft) -> None:
    for each in settings.each("apply_manifests"):
        if re.search(r"nccl|tcpxo?|nri-device", each.raw("source")):
            each.leave("the plugin of NCCL comes with the fabric", kind="replaced")
        else:
            each.leave("your manifests are not applied")
    kueue, jobset = settings.take("kueue", "install"), settings.take("jobset", "install")
    if kueue is False:
        draft.scheduler["kueue"] = False
    settings.agrees("kueue", "wait", value=True)
    if jobset is True:
        draft.scheduler["addons"] = ["jobset"]
