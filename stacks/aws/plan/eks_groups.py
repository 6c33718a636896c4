"""Elastic pools under EKS: groups that the cluster's autoscaler sizes, with node template tags.

For a group without nodes the autoscaler only has the group's tags for the next node
(kubernetes/autoscaler, cluster-autoscaler/cloudprovider/aws/README.md at cluster-autoscaler-1.35.2,
read 2026-11): labels, taints, and resources beyond processors, memory and NVIDIA's GPUs.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ....schemas.catalog import Catalog
from ....schemas.catalog.model.machine import slices_of
from ....schemas.derived.control_planes import gpu_sharing
from ....schemas.derived.eks_groups import ENABLED, GPU_LABEL, HINT, OWNED, eks_pools
from ....schemas.derived.storage import own_disks
from ....schemas.diagnostics import Diagnostic, Severity
from ....schemas.spec import ClusterSpec, KubernetesScheduler
from ...pulumi.names import OFFER, POOL, Labels, Names
from ...pulumi.plan import disk_gib, elastic_labels, elastic_taints, site_labels
from .control_plane import eks_name
from .facts import facts
from .pools import interfaces, machine_of, pool_plan
from .types import EksGroupPlan, OfferPlan, PoolPlan

_HUGE_PAGES = "5120Mi"
"""Of 2 MiB, which EKS' image for GPUs has where EFA is (EKS User Guide, "Run machine learning
training with Elastic Fabric Adapter": pods request as much; read 2026-11)."""
_DISK_SHARE = 85
"""Per cent of a node's disk that pods may request: kubelet evicts at 10 % free (kubernetes.io,
"Node-pressure Eviction"), and image and system have their part."""


MOST_TAGS = 50
"""Of one group (EC2 Auto Scaling User Guide, "Tag naming and usage restrictions"; read 2026-11)."""


def group_name(names: Names, pool: str) -> str:
    """Return what the group of an elastic pool is called in the program."""
    return names(f"{pool}-elastic")


def group_tags(group: EksGroupPlan, cluster: str) -> dict[str, str]:
    """Return the tags by which the autoscaler of an EKS cluster finds and describes a group."""
    found = {ENABLED: "true", OWNED.format(cluster): "owned"}
    found |= {f"{HINT}label/{key}": value for key, value in group.labels.items()}
    found |= {f"{HINT}taint/{one.key}": f"{one.value}:{one.effect}" for one in group.taints}
    return found | {f"{HINT}resources/{key}": value for key, value in group.resources.items()}


def own_tags(labels: Labels, pool: PoolPlan, offer: OfferPlan) -> dict[str, str]:
    """Return the tags that a group hands on to its nodes.

    The hash of the spec would make a new version of every template with each change.
    """
    marks = msgspec.structs.replace(labels, spec_hash="").tags()
    return {**pool.tags, **marks, POOL: pool.name, OFFER: offer.key}


def refusals(spec: ClusterSpec, site: str, catalog: Catalog) -> Iterator[Diagnostic]:
    """Yield groups that AWS wouldn't take, for they have too many tags (GC745)."""
    for name, group in group_plans(spec, site, catalog).items():
        pool, labels = pool_plan(spec, name, catalog), site_labels(spec, site)
        marks = labels.tags() | own_tags(labels, pool, pool.offers[0])
        has = len(marks | group_tags(group, eks_name(spec, site)))
        over = has - MOST_TAGS
        if over > 0:
            yield Diagnostic(
                code="GC745",
                severity=Severity.ERROR,
                summary=f'pool "{name}": its Auto Scaling group would have {has} tags, '
                f"and AWS takes {MOST_TAGS}",
                path=("pools", name),
                hint=f"remove {over} of its labels, taints and partitions, or of the tags of "
                "cluster and site: each is a tag of the group",
            )


def group_plans(spec: ClusterSpec, site: str, catalog: Catalog) -> dict[str, EksGroupPlan]:
    """Return elastic pool of a site -> the group that EKS' autoscaler sizes."""
    kubernetes = spec.scheduler
    if not isinstance(kubernetes, KubernetesScheduler):
        return {}
    return {
        name: _group(spec, kubernetes, name, catalog)
        for name, pool in eks_pools(spec).items()
        if pool.site == site
    }


def _group(
    spec: ClusterSpec, kubernetes: KubernetesScheduler, name: str, catalog: Catalog
) -> EksGroupPlan:
    pool = spec.pools[name]
    machine = machine_of(pool, catalog)
    gib = disk_gib(pool, facts().root_disk_gib)
    if name in own_disks(spec) and machine is not None and machine.nvme_gb:
        gib = int(machine.nvme_gib)
    labels = elastic_labels(spec, name) | _own_labels(name, pool.machine)
    resources = {"ephemeral-storage": f"{gib * _DISK_SHARE // 100}Gi"}
    if machine is not None and machine.gpu is not None:
        gpu, sharing = machine.gpu, gpu_sharing(kubernetes, name, pool)
        units = gpu.count
        if gpu.vendor == "nvidia":
            labels[GPU_LABEL] = f"nvidia-{gpu.model}".lower().replace(" ", "-")
            if sharing.mig is not None:
                labels["nvidia.com/mig.config"] = sharing.mig
                units *= slices_of(gpu.model, gpu.memory_gib, sharing.mig) or 1
            if sharing.time_slices != kubernetes.gpu.time_slices:
                labels["nvidia.com/device-plugin.config"] = f"{sharing.time_slices}-at-once"
            units *= sharing.time_slices
        resources[f"{gpu.vendor}.com/gpu"] = str(units)
    efa = sum(
        one.kind == "efa-only" for one in interfaces(machine, fabric=pool.fabric != "ethernet")
    )
    if efa:
        resources |= {"vpc.amazonaws.com/efa": str(efa), "hugepages-2Mi": _HUGE_PAGES}
    return EksGroupPlan(
        most=(pool.most or 0) - (pool.least or 0),
        labels=labels,
        taints=elastic_taints(spec, name),
        resources=resources,
    )


def _own_labels(pool: str, machine: str | None) -> dict[str, str]:
    """Return the labels of new nodes for plugins' selectors and the autoscaler's avoidance."""
    ours = {"gcluster.local/pool": pool, "gcluster.local/elastic": "true"}
    return ours | ({"gcluster.local/machine": machine} if machine else {})
