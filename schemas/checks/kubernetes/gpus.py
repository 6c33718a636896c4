"""How pods get GPUs: slices that a GPU has, ways to share it, claims that a release serves."""

from __future__ import annotations

from collections.abc import Iterator

from ...catalog import Machine
from ...catalog.model.machine import profiles_of
from ...derived.control_planes import (
    CLAIMS_SINCE,
    gpu_sharing,
    has,
    release_of,
    without_channels,
)
from ...diagnostics import PathTuple, Severity
from ..context import CheckContext
from ..registry import Finding, check

_GPU: PathTuple = ("scheduler", "gpu")
_MACHINES: tuple[PathTuple, ...] = (("pools", "*", "machine"), ("pools", "*", "role"))


def _machines(context: CheckContext) -> Iterator[tuple[str, Machine]]:
    """Yield compute pools with their machines, as far as they are known."""
    for name, pool in context.pools.items():
        machine = context.machine(pool)
        if pool.role == "compute" and machine is not None and machine.gpu is not None:
            yield name, machine


@check("GC592", summary="A MIG profile is none of a pool's GPUs.")
def unknown_mig_profile(context: CheckContext) -> Iterator[Finding]:
    """`mig` cuts all GPUs alike, so every GPU has to have that profile, and MIG must be allowed.

    A profile is named by its share of the GPU and its memory, so it is one GPU's: all-1g.10gb of
    an H100 with 80 GB is all-1g.18gb of an H200.
    """
    kubernetes = context.kubernetes
    if kubernetes is None:
        return

    for name, machine in _machines(context):
        gpu, sharing = machine.gpu, gpu_sharing(kubernetes, name, context.pools[name])
        requested, path = sharing.mig, sharing.mig_path
        if gpu is None or gpu.vendor != "nvidia" or requested is None:
            continue
        if context.pools[name].gpus.mig == "disabled":
            yield Finding(
                summary=f'GPUs are cut by {requested}, but pool "{name}" has MIG disabled',
                path=path,
                hint=f'remove one of the two: mig here, or gpus.mig of "{name}"',
                relies_on=(path, ("pools", name, "gpus")),
            )
            continue
        known = profiles_of(gpu.model, gpu.memory_gib)
        if known is not None and requested not in known:
            closest = context.suggest(requested, known)
            yield Finding(
                summary=f'pool "{name}": {gpu.model} with {gpu.memory_gib:g} GiB has no MIG '
                f"configuration {requested}",
                path=path,
                hint=f'did you mean "{closest}"?' if closest else f"one of {', '.join(known)}",
                relies_on=(path, *_MACHINES),
            )


@check("GC593", summary="Ways to share GPUs do not go together.")
def gpu_sharing_conflict(context: CheckContext) -> Iterator[Finding]:
    """A GPU is cut (MIG), shared in turns (`time_slices`) or claimed (`resource_claims`).

    Slices that are shared in turns as well are no longer apart, which is what they are cut for. The
    driver of claims knows no `time_slices`: a claim says itself how it shares. AMD's device plugin
    offers each GPU once.
    """
    kubernetes = context.kubernetes
    if kubernetes is None:
        return
    said: set[PathTuple] = set()
    for name, machine in _machines(context):
        sharing = gpu_sharing(kubernetes, name, context.pools[name])
        path = sharing.time_slices_path
        if sharing.time_slices == 1 or machine.gpu is None:
            continue
        if machine.gpu.vendor == "amd":
            yield Finding(
                summary=f'pool "{name}": {machine.gpu.model} is not shared by time_slices',
                path=path,
                hint="remove time_slices",
                relies_on=(path, *_MACHINES),
            )
        elif path in said:
            continue
        elif kubernetes.gpu.resource_claims:
            said.add(path)
            yield Finding(
                summary="claimed GPUs are not shared by time_slices: a claim defines how it shares",
                path=path,
                hint="remove time_slices, or resource_claims",
                relies_on=(path, (*_GPU, "resource_claims")),
            )
        elif sharing.mig is not None:
            said.add(path)
            yield Finding(
                summary=f"slices of {sharing.mig} that {sharing.time_slices} pods share are not "
                "apart from each other",
                path=path,
                severity=Severity.WARNING,
                hint="remove mig or time_slices",
                relies_on=(path, sharing.mig_path),
            )


@check("GC594", summary="GPUs are to be claimed where nothing serves claims.")
def dra_driver_missing(context: CheckContext) -> Iterator[Finding]:
    """Dynamic resource allocation is stable from Kubernetes 1.34 on, and needs a vendor's driver.

    Before that its API is off by default. Simulated GPUs have a device plugin and
    no such driver.
    """
    if context.kubernetes is None or not context.kubernetes.gpu.resource_claims:
        return

    path = (*_GPU, "resource_claims")
    release = release_of(context.software.kubernetes)
    if release is not None and not has(release, CLAIMS_SINCE):
        yield Finding(
            summary=f"Kubernetes {release} does not serve resource claims: they are stable from "
            f"{CLAIMS_SINCE} on",
            path=path,
            hint=f'write kubernetes: "{CLAIMS_SINCE}" or newer, or remove resource_claims',
            relies_on=(path, ("software", "kubernetes")),
        )
    for name, machine in _machines(context):
        if machine.simulated:
            yield Finding(
                summary=f'pool "{name}": simulated GPUs can\'t be claimed',
                path=path,
                hint="remove resource_claims",
                relies_on=(path, *_MACHINES),
            )
            break


@check("GC597", summary="Pods' rails do not fit the pool's fabric.")
def pod_rails_mismatch(context: CheckContext) -> Iterator[Finding]:
    """`rdma.pods` gives pods RoCE's interfaces under Kubernetes: one each, with an address.

    InfiniBand and clouds' fabrics need none of that: their pods get devices. Where `devices` are
    named too, there are as many interfaces.
    """
    for name, pool in context.pools.items():
        pods = pool.rdma.pods
        if pods is None:
            continue
        path: PathTuple = ("pools", name, "rdma", "pods")
        fabric = context.fabric(pool)
        needs = (path, ("pools", name, "fabric"), ("pools", name, "machine"))
        if context.slurm is not None:
            yield Finding(
                summary=f'pool "{name}" has interfaces for pods, but Slurm runs its jobs',
                path=path,
                at_key=True,
                severity=Severity.WARNING,
                hint="remove rdma.pods",
                relies_on=(*needs, ("scheduler", "type")),
            )
        elif fabric is not None and fabric.name != "roce":
            yield Finding(
                summary=f'pool "{name}" has interfaces for pods, but its fabric is {fabric.name}',
                path=path,
                at_key=True,
                hint="remove rdma.pods",
                relies_on=needs,
            )
        rails = len(pool.rdma.devices)
        if rails and rails != len(pods.interfaces):
            yield Finding(
                summary=f'pool "{name}" has {rails} rails and {len(pods.interfaces)} interfaces '
                "for pods",
                path=(*path, "interfaces"),
                hint=f"name {rails}, one a rail",
                relies_on=(*needs, ("pools", name, "rdma", "devices")),
            )


@check("GC621", summary="AMD's driver is to come by containers.")
def amd_driver_in_container(context: CheckContext) -> Iterator[Finding]:
    """With `driver: container` AMD's operator builds the driver in the cluster, for each kernel.

    It needs a registry to put that into, cert-manager, and nodes that were restarted without
    their own driver (ROCm/gpu-operator, installation/kubernetes-helm; read 2026-11). The spec has
    no words for these, so nodes with AMD's GPUs bring their driver themselves.
    """
    if context.kubernetes is None or context.kubernetes.gpu.driver != "container":
        return
    path: PathTuple = (*_GPU, "driver")
    for name, machine in _machines(context):
        if machine.gpu is not None and machine.gpu.vendor == "amd":
            yield Finding(
                summary=f'pool "{name}": the driver of {machine.gpu.model} does not come by '
                "containers",
                path=path,
                hint="write driver: host",
                relies_on=(path, *_MACHINES),
            )
            break


@check("GC589", summary="Pods get no NVLink between nodes.")
def nvlink_ends_at_the_node(context: CheckContext) -> Iterator[Finding]:
    """Machines whose NVLink spans nodes (NVL72) are used as if it ended at each node.

    Memory of another node's GPU is mapped through a channel of IMEX, which NVIDIA's DRA driver
    gives to pods as ComputeDomains (github.com/kubernetes-sigs/dra-driver-nvidia-gpu, read
    2026-11). Where it isn't set up jobs run, and NCCL takes the network between nodes. Under Slurm
    IMEX runs on the nodes.
    """
    kubernetes = context.kubernetes
    if kubernetes is None:
        return
    why = without_channels(kubernetes, context.software.kubernetes)
    if why is None:
        return
    for name, machine in _machines(context):
        if machine.simulated or machine.domain_nodes == 1:
            continue
        yield Finding(
            summary=f'pool "{name}": NVLink of {machine.name} spans {machine.domain_nodes} nodes, '
            f"but pods get no channel of IMEX, so NCCL takes the network between nodes: {why}",
            path=("pools", name, "machine"),
            severity=Severity.WARNING,
            hint="write scheduler: {type: slurm} where jobs need NVLink between nodes",
            relies_on=(("scheduler",), ("software", "kubernetes"), *_MACHINES),
        )
