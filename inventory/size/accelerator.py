"""What the GPUs of a machine compute, hold and send: figures of the catalog in one place."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta

from ...schemas.catalog import Machine
from ...schemas.catalog.model.machine import Date, Source
from ...schemas.spec.model import SpecModel
from ...schemas.structure.compose import read_data_file

Precision: TypeAlias = Literal["bf16", "fp8"]
"""What matrices are multiplied in. fp8: those of linear layers; attention stays in bf16."""
_FILE = Path(__file__).parent / "data" / "gpus.yaml"
_GIB = 2.0**30
NIC_LATENCY_S = 15e-6
"""alpha between nodes: what a message of a collective takes however short it is, in s. Of the order
that nccl-tests print for 8 bytes on two nodes of an RDMA fabric; it decides nothing at the sizes of
training, and is there so that ten thousand small messages aren't free."""
NVLINK_LATENCY_S = 5e-6
"""The same inside an NVLink domain."""


class Peak(SpecModel, frozen=True, kw_only=True):
    """What a GPU does at most, without sparsity."""

    model: str
    generation: str
    """GPUs that compute alike: one efficiency holds for all of them."""
    bf16: Annotated[float, Meta(gt=0)]
    """TFLOP/s."""
    hbm: Annotated[float, Meta(gt=0)]
    """TB/s of its memory."""
    source: Source
    date: Date
    fp8: Annotated[float, Meta(gt=0)] | None = None
    """TFLOP/s; None: it has no such units."""
    note: str | None = None


class _Peaks(SpecModel, frozen=True):
    gpus: list[Peak]


class Accelerator(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU of a machine and its share of the links, in FLOP/s, bytes and bytes/s."""

    gpu: str
    """Model, as the catalog calls it."""
    generation: str
    memory: float
    """Bytes."""
    bf16: float
    """FLOP/s."""
    fp8: float | None
    hbm: float
    """Bytes/s."""
    domain: int
    """GPUs that reach each other over NVLink; 1: none."""
    nvlink: float
    """Bus bandwidth of a collective inside a domain, bytes/s for each GPU."""
    nic: float | None
    """Bytes/s between nodes for each GPU, one direction; None: not in the catalog."""
    per_node: int
    leaf: int | None = None
    """GPUs below one leaf switch; None: as if all were."""
    oversubscription: float = 1.0
    """Bandwidth of a leaf's hosts against that of its links to the spine; 1: none."""

    def peak(self, precision: Precision) -> float | None:
        """Return FLOP/s in a precision; None: it can't."""
        return self.bf16 if precision == "bf16" else self.fp8


@lru_cache(maxsize=1)
def peaks() -> dict[str, Peak]:
    """Return what is known of GPUs, by model."""
    found = read_data_file(_FILE, _Peaks)
    return {peak.model: peak for peak in found.gpus}


def accelerator(machine: Machine) -> Accelerator | str:
    """Return what a machine's GPUs can do, or why that isn't known.

    The bandwidth inside a node is the measured bus bandwidth where the catalog has one, else one
    direction of NVLink; between nodes it is the line rate of the NICs for the GPUs' traffic, shared
    by the GPUs.
    """
    gpu = machine.gpu
    if gpu is None:
        return f"{machine.name} has no GPU"
    if machine.simulated:
        return f"the GPUs of {machine.name} are simulated"
    peak = peaks().get(gpu.model)
    if peak is None:
        known = ", ".join(peaks())
        return f"no figures of a {gpu.model} in training are known (of {known})"
    link = machine.nvlink
    domain, bandwidth = 1, 0.0
    if link is not None:
        domain = link.domain_gpus
        bandwidth = link.busbw_gbytes_per_s or (link.gbytes_per_s or 0.0) / 2
        if not bandwidth and domain > 1:
            return f"the bandwidth inside one {machine.name} is not known"
    network = machine.fabric_gbytes_per_s
    return Accelerator(
        gpu=gpu.model,
        generation=peak.generation,
        memory=gpu.memory_gib * _GIB,
        bf16=peak.bf16 * 1e12,
        fp8=None if peak.fp8 is None else peak.fp8 * 1e12,
        hbm=peak.hbm * 1e12,
        domain=domain,
        nvlink=bandwidth * 1e9,
        nic=None if network is None else network * 1e9 / gpu.count,
        per_node=gpu.count,
    )


class Ring(msgspec.Struct, frozen=True):
    """What joins the members of a group: bytes/s for each, and the latency of a step."""

    bandwidth: float
    latency: float


def ring(gpu: Accelerator, span: int, members: int) -> Ring | None:
    """Return what joins the members of a group that are spread evenly over consecutive GPUs.

    A group inside an NVLink domain uses NVLink. One that leaves it is as fast as the NICs of those
    of its members that share a domain, all at once: a ring crosses from one domain to the next
    once, and NCCL makes as many rings as there are NICs (a hierarchy of NVLink and rails). One that
    leaves its leaf crosses the spine once a leaf, over links that `oversubscription` times as many
    members share. None: the NICs' speed is not known.

    Args:
        gpu: one of them.
        span: GPUs from the first member to the end of the group.
        members: how many of them belong to the group.
    """
    if span <= gpu.domain:
        return Ring(gpu.nvlink, NVLINK_LATENCY_S)
    if gpu.nic is None:
        return None
    together = max(1, gpu.domain * members // span)
    nics = gpu.nic * together
    if gpu.leaf is not None and span > gpu.leaf:
        # a ring crosses once a leaf; the groups with members below it share its links to the spine
        below = max(1, gpu.leaf * members // span // together)
        nics = min(nics, nics * below / gpu.oversubscription)
    return Ring(min(nics, gpu.nvlink) if together > 1 else nics, NIC_LATENCY_S)


def gather_s(ring: Ring, members: int, size: float) -> float:
    """Return the time of an AllGather, ReduceScatter or AllToAll: alpha log2 n + (n-1)/n S/B.

    Args:
        ring: what joins the members.
        members: n.
        size: S, bytes that each has in the end (AllGather) or had in the beginning.
    """
    if members <= 1 or not size:
        return 0.0
    steps = (members - 1).bit_length()
    return steps * ring.latency + (members - 1) / members * size / ring.bandwidth
