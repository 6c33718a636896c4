"""Registration of nodes: labels, taints, and what must be ready before they take pods.

A kubelet of ours registers its node with a startup taint and a label for each resource that its
device plugins are to offer. A control plane removes the taint when all of them exist
(kubernetes-startup.py). Before that pods without devices would fill the node, and GPUs to be
partitioned would be allocated whole. Clouds that run the control plane set up their nodes
themselves.
"""

from __future__ import annotations

from ....schemas.spec import KubernetesScheduler
from ...hosts import ClusterInventory
from ..node import NodeFacts
from ..steps import Json
from .devices.fabric import fabric_access
from .devices.nvlink import DRIVER
from .facts import DEVICE_CLASSES, KubernetesFacts, gpu_resource, has_channels
from .nodes import (
    AWAITED_DOMAIN,
    STARTUP_TAINT,
    gpu_node_labels,
    place_labels,
    placed,
    pool_labels,
    pool_taints,
)

_PAGES = "hugepages-"
"""How resources begin that a kubelet offers itself."""


def nodes(facts: KubernetesFacts) -> dict[str, Json]:
    """Return host -> its labels and taints, for all hosts but the controllers.

    Node objects aren't applied, since pruning one removes the node. The startup taint is not among
    the taints: it is temporary.
    """
    made: dict[str, Json] = {}
    for pool in sorted(facts.spec.pools):
        pool_spec = facts.spec.pools[pool]
        if pool_spec.role == "controller":
            continue
        alike = pool_labels(facts, pool) | gpu_node_labels(facts, pool)
        alike |= awaited_labels(facts, pool)
        taints = pool_taints(facts, pool)
        for host in placed(facts, facts.inventory.in_pool(pool)):
            made[host.name] = {"labels": alike | place_labels(host), "taints": taints}
    return made


def awaited(facts: KubernetesFacts, pool: str) -> list[str]:
    """Return what a pool's nodes wait for: resources (nvidia.com/gpu), or a driver of claims.

    A driver's name has no slash (gpu.nvidia.com): its devices are in ResourceSlices of the node.
    """
    if facts.scheduler.control_plane != "self" or not facts.spec.pools[pool].runs_jobs:
        return []
    gpu = facts.machine(pool).gpu
    found = [name for name in fabric_access(facts, pool).resources if not name.startswith(_PAGES)]
    if gpu is not None and facts.scheduler.gpu.resource_claims:
        found.append(DEVICE_CLASSES[gpu.vendor])
    elif (resource := gpu_resource(facts, pool)) is not None:
        found.append(resource)
    if has_channels(facts, pool):
        found.append(DRIVER)
    return sorted(found)


def awaited_labels(facts: KubernetesFacts, pool: str) -> dict[str, str]:
    """Return a label for each of them; a label's name has one slash, so theirs is "_"."""
    return {f"{AWAITED_DOMAIN}/{name.replace('/', '_')}": "true" for name in awaited(facts, pool)}


def registration(node: NodeFacts) -> tuple[dict[str, str], list[Json]]:
    """Return the labels and taints with which a kubelet of ours registers a pool's nodes."""
    scheduler = node.spec.scheduler
    if not isinstance(scheduler, KubernetesScheduler) or node.machine is None:
        return {}, []
    facts = KubernetesFacts(
        spec=node.spec,
        scheduler=scheduler,
        catalog=node.catalog,
        inventory=ClusterInventory(cluster=node.spec.name, hosts=()),
        nodes={node.name: node},
    )
    labels = awaited_labels(facts, node.name)
    if not labels:
        return {}, []
    # How GPUs are cut has to be known before a plugin offers them whole.
    labels |= gpu_node_labels(facts, node.name)
    return labels, [{"key": STARTUP_TAINT, "effect": "NoSchedule"}]
