"""Labels and taints of nodes: their pool, partitions, and topology."""

from __future__ import annotations

from collections.abc import Sequence

from ...hosts import Host
from ..slurm.topology import in_order, in_placements
from ..steps import Json
from .facts import KubernetesFacts, tolerations
from .objects import DOMAIN, Object, label_value, new

POOL = f"{DOMAIN}/pool"
SITE = f"{DOMAIN}/site"
MACHINE = f"{DOMAIN}/machine"
FABRIC = f"{DOMAIN}/fabric"
GPU_MODEL = f"{DOMAIN}/gpu-model"
GPU_COUNT = f"{DOMAIN}/gpu-count"
SIMULATED = f"{DOMAIN}/simulated"
BLOCK = f"{DOMAIN}/block"
"""Scalable unit or NVLink domain."""
RACK = f"{DOMAIN}/leaf"
"""Hosts of one group of leaf switches: mostly a rack."""
HOST = "kubernetes.io/hostname"
PARTITION_DOMAIN = f"partition.{DOMAIN}"
"""partition.gcluster.local/NAME: "true" on every node of the partition."""
NO_PARTITION = f"{DOMAIN}/no-partition"
"""Taint of nodes that no partition has: only pods that tolerate it run there."""


STARTUP_TAINT = f"{DOMAIN}/startup"
"""Taint of nodes whose device plugins haven't registered yet: a startup taint, as in Karpenter."""
AWAITED_DOMAIN = f"awaits.{DOMAIN}"
"""awaits.gcluster.local/RESOURCE on nodes that take no pod without RESOURCE; "_" for its "/"."""
STARTUP_TOLERATION: dict[str, Json] = {
    "key": STARTUP_TAINT,
    "operator": "Exists",
    "effect": "NoSchedule",
}
"""Of the cluster's own pods: plugins run on nodes that wait for them, and all else that comes
before the plugins has no other place where each node has GPUs."""


def of_plugins(facts: KubernetesFacts) -> list[Json]:
    """Return what pods tolerate that bring devices: nodes that wait for them, pools' taints."""
    starts = facts.scheduler.control_plane == "self"
    return [*([dict(STARTUP_TOLERATION)] if starts else []), *tolerations(facts, facts.compute)]


TAINT_DOMAIN = f"taint.{DOMAIN}"
"""taint.gcluster.local/KEY on nodes with a taint of the spec: by it the taint is taken away again
when the spec drops it. KEY has "_" for "/"."""


def taint_label(key: str) -> str:
    """Return the label that marks a taint as the spec's."""
    return f"{TAINT_DOMAIN}/{label_value(key.replace('/', '_'))}"


def pool_labels(facts: KubernetesFacts, pool: str) -> dict[str, str]:
    """Return the labels that all nodes of a pool have."""
    pool_spec, node = facts.spec.pools[pool], facts.nodes[pool]
    requested = {} if pool_spec.kubernetes is None else pool_spec.kubernetes.labels
    labels = {**requested, POOL: pool, SITE: pool_spec.site}
    labels |= {taint_label(one["key"]): "true" for one in _requested_taints(facts, pool)}
    if (runtime := runtime_class(facts, pool)) is not None:
        labels[f"{RUNTIME_DOMAIN}/{runtime}"] = "true"
    if node.machine is not None:
        labels[MACHINE] = label_value(node.machine.name)
        if node.machine.gpu is not None:
            labels[GPU_MODEL] = label_value(node.machine.gpu.model)
            labels[GPU_COUNT] = str(node.machine.gpu.count)
        if node.machine.simulated:
            labels[SIMULATED] = "true"
    if node.fabric_class:
        labels[FABRIC] = node.fabric_class
    for name, partition in facts.partitions.items():
        if pool in partition.pools:
            labels[f"{PARTITION_DOMAIN}/{name}"] = "true"
    return labels


RUNTIME_DOMAIN = f"runtime.{DOMAIN}"
"""runtime.gcluster.local/NAME: "true" on nodes whose containerd has that runtime."""


def runtime_class(facts: KubernetesFacts, pool: str) -> str | None:
    """Return the runtime class of a pool's jobs; None: runc."""
    requested = facts.spec.pools[pool].kubernetes
    return (
        None
        if requested is None or requested.runtime_class is None
        else requested.runtime_class.name
    )


def runtime_classes(facts: KubernetesFacts) -> list[Object]:
    """Return the runtime classes: their pods are placed on nodes that have them."""
    named = {name for pool in facts.spec.pools if (name := runtime_class(facts, pool)) is not None}
    return [
        new(
            "node.k8s.io/v1",
            "RuntimeClass",
            name,
            handler=name,
            scheduling={"nodeSelector": {f"{RUNTIME_DOMAIN}/{name}": "true"}},
        )
        for name in sorted(named)
    ]


def gpu_node_labels(facts: KubernetesFacts, pool: str) -> dict[str, str]:
    """Return the labels that configure MIG and sharing of a pool's GPUs in NVIDIA's operator."""
    if not facts.nodes[pool].has_gpu_of("nvidia"):
        return {}
    sharing, labels = facts.sharing(pool), {}
    if sharing.mig is not None:
        labels["nvidia.com/mig.config"] = sharing.mig
    if sharing.time_slices != facts.scheduler.gpu.time_slices:
        labels["nvidia.com/device-plugin.config"] = slices_name(sharing.time_slices)
    return labels


def slices_name(replicas: int) -> str:
    """Return what a configuration of the device plugin is called."""
    return f"{replicas}-at-once"


def pool_taints(facts: KubernetesFacts, pool: str) -> list[Json]:
    """Return the taints of a pool's nodes: those that no partition has are kept free of jobs.

    Not those for the cluster's own pods.
    """
    requested, pool_spec = _requested_taints(facts, pool), facts.spec.pools[pool]
    system = pool_spec.kubernetes is not None and pool_spec.kubernetes.system
    if system or any(pool in partition.pools for partition in facts.partitions.values()):
        return requested
    return [*requested, {"key": NO_PARTITION, "value": "true", "effect": "NoSchedule"}]


def _requested_taints(facts: KubernetesFacts, pool: str) -> list[Json]:
    requested = facts.spec.pools[pool].kubernetes
    given = () if requested is None else requested.taints
    return [{"key": one.key, "value": one.value, "effect": one.effect} for one in given]


def place_labels(host: Host) -> dict[str, str]:
    """Return a host's topology labels, as far as known."""
    where = {BLOCK: host.placement.block, RACK: host.placement.leaf}
    return {label: label_value(name) for label, name in where.items() if name}


def placed(facts: KubernetesFacts, hosts: Sequence[Host]) -> list[Host]:
    """Return the hosts with their blocks, those of a cloud's placement in one, as under Slurm."""
    known = in_order(facts.spec, list(hosts))
    if any(host.placement.block or host.placement.leaf for host in known):
        return known
    return in_placements(facts.spec, known, facts.catalog)


def topology_levels(facts: KubernetesFacts, pool: str) -> list[str]:
    """Return the labels of a pool's topology, the widest first; the last is the node itself.

    A level holds only where every node has it: Kueue leaves out nodes that lack one. A pool that
    grows has none, for Kueue places jobs on nodes that are there and would wait for ever.
    """
    if facts.spec.pools[pool].is_elastic:
        return []
    hosts = placed(facts, facts.compute[pool])
    levels = [
        label
        for label in (BLOCK, RACK)
        if hosts and all(label in place_labels(host) for host in hosts)
    ]
    return [*levels, HOST]
