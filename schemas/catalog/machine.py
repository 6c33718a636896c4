"""One machine type: what a whole node of it has. What is not known is None, never 0."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta

from gcluster.schemas.spec.noun import Noun

ProviderName: TypeAlias = Literal["local", "simulated", "bare-metal"]
NicKind: TypeAlias = Literal["infiniband", "roce", "efa", "gvnic", "ethernet"]


class Gpu(Noun, frozen=True):
    """The GPUs of one node."""

    vendor: Literal["nvidia", "amd"]
    model: Annotated[str, Meta(min_length=1)]
    """As the vendor writes it: H100, MI300X."""
    memory_gib: Annotated[float, Meta(gt=0)]
    """Memory of one GPU in GiB."""
    count: Annotated[int, Meta(ge=1)]
    """GPUs in the node."""
    power_w: Annotated[float, Meta(gt=0)] | None = None
    """Power limit of one GPU in W."""


class Cpu(Noun, frozen=True):
    """The processors of one node."""

    architecture: Literal["x86_64", "aarch64"]
    sockets: Annotated[int, Meta(ge=1)]
    cores: Annotated[int, Meta(ge=1)]
    """Cores of one socket."""
    threads_per_core: Annotated[int, Meta(ge=1)]

    @property
    def threads(self) -> int:
        """Hardware threads of the node: what Slurm calls CPUs."""
        return self.sockets * self.cores * self.threads_per_core


class Nvlink(Noun, frozen=True):
    """The GPU interconnect (NVLink, or Infinity Fabric on AMD)."""

    domain_gpus: Annotated[int, Meta(ge=1)]
    """GPUs that reach each other over it; more than a node has where it spans nodes."""
    gbytes_per_s: Annotated[float, Meta(gt=0)] | None = None
    """Bandwidth of one GPU in GB/s, both directions together."""
    busbw_gbytes_per_s: Annotated[float, Meta(gt=0)] | None = None
    """AllReduce bus bandwidth measured in one node, in GB/s."""


class Nic(Noun, frozen=True):
    """Network cards of one kind."""

    kind: NicKind
    count: Annotated[int, Meta(ge=1)]
    gbps: Annotated[float, Meta(gt=0)]
    """Speed of one card in Gb/s."""


class Price(Noun, frozen=True):
    """What a node costs on demand."""

    usd_per_hour: Annotated[float, Meta(ge=0)]
    source: Annotated[str, Meta(min_length=1)]
    date: Annotated[str, Meta(pattern=r"^[0-9]{4}-[0-9]{2}(-[0-9]{2})?$(?!\n)")]
    """When the source said so: YYYY-MM or YYYY-MM-DD."""


class Machine(Noun, frozen=True):
    """A machine type of the catalog."""

    name: Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$(?!\n)")]
    sites: Annotated[list[ProviderName], Meta(min_length=1)]
    """Providers whose sites can have it."""
    source: Annotated[str, Meta(min_length=1)]
    """Where the numbers come from."""
    date: Annotated[str, Meta(pattern=r"^[0-9]{4}-[0-9]{2}(-[0-9]{2})?$(?!\n)")]
    """When the source was read: YYYY-MM or YYYY-MM-DD."""
    note: str | None = None
    """What is not known or not certain."""
    simulated: bool = False
    """Its GPUs are device files, not devices."""
    gpu: Gpu | None = None
    cpu: Cpu | None = None
    memory_gib: Annotated[float, Meta(gt=0)] | None = None
    """Main memory of the node in GiB."""
    nvlink: Nvlink | None = None
    nics: list[Nic] | None = None
    nvme_gb: Annotated[float, Meta(ge=0)] | None = None
    """Local NVMe for data in GB (10^9 bytes)."""
    power_w: Annotated[float, Meta(gt=0)] | None = None
    """Most power the node draws in W."""
    price: Price | None = None

    @property
    def gpu_key(self) -> tuple[str, int] | None:
        """Model and number of GPUs: machine types with the same key run the same jobs."""
        return None if self.gpu is None else (self.gpu.model, self.gpu.count)
