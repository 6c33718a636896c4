"""What a pool's nodes are, as far as it decides which software they use."""

from __future__ import annotations

from typing import Literal

import msgspec

from ..catalog import Machine
from .lock import Lock, Part, SchedulerType


class Need(msgspec.Struct, frozen=True, kw_only=True):
    """What decides which parts of the software are used; None: not known."""

    vendor: Literal["nvidia", "amd"] | None = None
    """Maker of the GPUs; None: no GPU, a simulated one, or not known."""
    gpu: str | None = None
    capability: str | None = None
    """Compute capability of the GPUs; AMD: their LLVM target."""
    architecture: str | None = None
    nvswitch: bool | None = None
    """Whether the node's GPUs hang on switches that a fabric manager runs."""
    nvlink_domain: bool = False
    """Whether GPUs of several nodes share an NVLink domain."""
    fabric: str | None = None
    plugin: str | None = None
    provider: str | None = None
    scheduler: SchedulerType | None = None
    control_plane: Literal["self", "eks", "gke", "aks"] = "self"
    """Who runs the control plane and the nodes of Kubernetes."""
    gpu_driver: Literal["host", "container"] = "host"
    """Whether the nodes or Kubernetes' GPU operator bring the driver."""
    image: str | None = None
    """Image that the spec names for the nodes; None: the provider's own."""
    rdma_drivers: Literal["auto", "doca", "inbox", "image"] = "auto"
    """Whose drivers of InfiniBand and RoCE adapters the spec requests."""
    doca_for: tuple[str, ...] = ()
    """Distributions that DOCA-OFED is taken for unasked: hosts of one's own that it has packages
    for. The adapters of clouds run by the distribution's own drivers."""

    def uses(self, part: Part) -> bool:
        """Say whether nodes use components of this part; an unknown scheduler or fabric may."""
        if part in {"nvidia", "amd"}:
            return self.vendor == part
        if part == "nvswitch":
            return self.vendor == "nvidia" and self.nvswitch is not False
        if part == "nvlink-domain":
            return self.vendor == "nvidia" and self.nvlink_domain
        if part in {"slurm", "kubernetes"}:
            return self.scheduler in {None, part}
        if part == "gib":
            return self.plugin in {"gib", "gib-metal"}
        return part in {"all", "image", self.plugin}


def need_of(
    machine: Machine | None,
    fabric: str | None,
    lock: Lock,
    *,
    provider: str | None = None,
    scheduler: SchedulerType | None = None,
    image: str | None = None,
) -> Need:
    """Return what nodes of a machine type use.

    Args:
        machine: their type; None: nodes without a GPU, or not known.
        fabric: their fabric class; None: the machine's, or not known.
        lock: knows which plugin drives a fabric.
        provider: of their site.
        scheduler: of the cluster.
        image: that the spec names for them.
    """
    gpu = None if machine is None or machine.simulated else machine.gpu
    nvlink = None if machine is None else machine.nvlink
    fabric = fabric or (None if machine is None else machine.fabric)
    spans = gpu is not None and nvlink is not None and nvlink.domain_gpus > gpu.count
    return Need(
        vendor=None if gpu is None else gpu.vendor,
        gpu=None if gpu is None else gpu.model,
        capability=None if gpu is None else gpu.compute_capability,
        architecture=machine.cpu.architecture if machine else None,
        nvswitch=None if gpu is None else _has_nvswitch(gpu.count, nvlink is not None, spans=spans),
        nvlink_domain=spans,
        fabric=fabric,
        plugin=None if gpu is None else lock.plugin(fabric),
        provider=provider,
        scheduler=scheduler,
        image=image,
    )


def _has_nvswitch(gpus: int, has_nvlink: bool, *, spans: bool) -> bool | None:
    """Return whether the node runs a fabric manager; a domain of several nodes is run elsewhere."""
    if spans or gpus == 1:
        return False
    return True if has_nvlink else None
