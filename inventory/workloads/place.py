"""Where a workload runs, and what of each of its nodes it gets."""

from __future__ import annotations

import msgspec

from ...schemas.catalog import Catalog
from ...schemas.derived.storage import mount_point
from ...schemas.spec import ClusterSpec, KubernetesScheduler, SlurmScheduler, Workload
from ..compile.node import NodeFacts, node_facts

ONLY_PARTITION = "main"
"""The partition with every compute pool, where the spec names none."""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A workload's partition and its share of the nodes there, which are alike (GC1204)."""

    partition: str
    node: NodeFacts
    nodes: int
    gpus: int
    """Of each node, real or simulated."""
    is_whole: bool
    """It has its nodes to itself."""
    processes: int
    """Of each node."""
    cpus: int
    """Hardware threads of each process; 0: not known."""

    @property
    def has_real_gpus(self) -> bool:
        """Whether its GPUs are there and whole."""
        return self.node.gpu is not None and not self.node.pool.is_sliced

    @property
    def mounts(self) -> dict[str, str]:
        """Storage -> where its nodes mount it."""
        storage = self.node.spec.storage
        return {name: mount_point(storage[name]) for name in storage}


def place_of(spec: ClusterSpec, catalog: Catalog, workload: Workload) -> Place:
    """Return where a workload runs; the spec and the workload passed their checks."""
    partition, pools = _partition(spec, workload)
    node = node_facts(spec, catalog)[min(pools)]
    machine = node.machine
    each = machine.gpu.count if machine is not None and machine.gpu is not None else 0
    gpus = workload.gpus_per_node(each)
    real = gpus if node.gpu is not None and not node.pool.is_sliced else 0
    processes = workload.processes_per_node or max(1, real)
    threads = machine.cpu.threads if machine is not None and machine.cpu is not None else 0
    part = threads * gpus // each if each else threads
    return Place(
        partition=partition,
        node=node,
        nodes=workload.node_count(each),
        gpus=gpus,
        is_whole=gpus == each,
        processes=processes,
        cpus=part // processes,
    )


def _partition(spec: ClusterSpec, workload: Workload) -> tuple[str, list[str]]:
    assert isinstance(spec.scheduler, SlurmScheduler | KubernetesScheduler)  # noqa: S101  # GC1201
    written = spec.scheduler.partitions
    if not written:
        return ONLY_PARTITION, [name for name, pool in spec.pools.items() if pool.is_compute]
    default = next((name for name, one in written.items() if one.default), next(iter(written)))
    name = workload.partition or default
    return name, list(written[name].pools)
