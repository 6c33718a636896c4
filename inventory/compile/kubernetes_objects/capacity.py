"""What nodes have, as Kubernetes counts it: the resources' names and how much of each there is."""

from __future__ import annotations

from ....schemas.catalog.machine import slices_of
from ..slurm_nodes import gpu_count, memory_mib
from .facts import KubernetesFacts

GPU_RESOURCES = {"nvidia": "nvidia.com/gpu", "amd": "amd.com/gpu"}
"""GPU vendor -> extended resource of its device plugin."""
DEVICE_CLASSES = {"nvidia": "gpu.nvidia.com", "amd": "gpu.amd.com"}
"""GPU vendor -> device class of its driver for dynamic resource allocation."""


def gpu_resource(facts: KubernetesFacts, pool: str) -> str | None:
    """Return the resource that a pool's GPUs are asked for by; None: it has no GPUs.

    MIG with one profile for all GPUs (strategy "single") and time slices keep the name.
    """
    gpu = facts.machine(pool).gpu
    return None if gpu is None else GPU_RESOURCES[gpu.vendor]


def units_per_gpu(facts: KubernetesFacts, pool: str) -> int:
    """Return what one GPU of a pool counts for: the pods that it is shared or cut for."""
    gpu, said = facts.machine(pool).gpu, facts.scheduler.gpu
    if gpu is None or gpu.vendor != "nvidia":
        return 1
    cut = slices_of(gpu.model, gpu.memory_gib, said.mig) if said.mig else 1
    return (cut or 1) * said.time_slices


def capacity(facts: KubernetesFacts, pool: str) -> dict[str, int]:
    """Return what all nodes of a pool have together: GPUs, CPUs, memory in MiB.

    What the catalog doesn't know of a machine is left out. Of memory the share that jobs get under
    Slurm counts: the rest is the system's.
    """
    machine, nodes = facts.machine(pool), facts.most(pool)
    found: dict[str, int] = {}
    if machine.cpu is not None and machine.cpu.threads:
        found["cpu"] = machine.cpu.threads * nodes
    if memory := memory_mib(machine, 0):
        found["memory"] = memory * nodes
    resource = gpu_resource(facts, pool)
    if resource is not None:
        found[resource] = gpu_count(machine) * units_per_gpu(facts, pool) * nodes
    return found


def covered(facts: KubernetesFacts) -> list[str]:
    """Return the resources that queues count: those known of every pool, and all kinds of GPUs."""
    pools = [capacity(facts, pool) for pool in facts.compute]
    shared = [name for name in ("cpu", "memory") if pools and all(name in one for one in pools)]
    gpus = sorted({name for one in pools for name in one} - {"cpu", "memory"})
    return [*shared, *gpus]


def quantity(resource: str, amount: int) -> str:
    """Return an amount as the API takes it; memory is in MiB."""
    return f"{amount}Mi" if resource == "memory" else str(amount)
