"""Machine types of the catalog, their MIG profiles, and sources with their dates."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, field

from ...spec.model import SpecModel
from ...spec.rdma import RdmaDevice
from ...structure.compose import read_data_file

Source: TypeAlias = Annotated[
    str,
    Meta(min_length=1, description="Where it is from: a document, a page, a measurement."),
]
Date: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^[0-9]{4}-[0-9]{2}(-[0-9]{2})?$(?!\n)",
        description="When the source was read, or what it is dated: YYYY-MM or YYYY-MM-DD.",
    ),
]
"""YYYY-MM or YYYY-MM-DD."""


class Citation(SpecModel, frozen=True):
    """A source and the date it said so."""

    source: Source
    date: Date


PREFIX = "all-"
"""What a configuration's name starts with that cuts all GPUs of a node alike."""
_CLOSE = 0.1
"""A GPU is the one whose memory is this close, as a part: 180 GB are 179 GiB to some sources."""


class Placements(SpecModel, frozen=True):
    """Where slices of one profile may lie in a GPU."""

    starts: tuple[int, ...]
    """Memory slices that they may begin at."""
    length: Annotated[int, Meta(ge=1)]
    """Memory slices of each."""


class MigGpu(SpecModel, frozen=True):
    """The profiles of one GPU."""

    model: str
    """As in the catalog of machines."""
    memory_gb: Annotated[float, Meta(gt=0)]
    """Memory of the whole GPU in GB, as its largest profile names it."""
    profiles: Annotated[dict[str, Annotated[int, Meta(ge=1, le=7)]], Meta(min_length=1)]
    """Profile -> slices of one GPU."""
    layout: Literal["sevenths", "quarters"] = "sevenths"
    """How it is divided: the whole is 7g or 4g."""

    def placements(self, profile: str) -> Placements:
        """Return where slices of a profile may begin, and how long they are."""
        share, most = profile.split("g", 1)[0], self.profiles[profile]
        return mig_profiles().placements[self.layout][f"{share}g x{most}"]

    def fits(self, slices: Mapping[str, int]) -> bool:
        """Return whether one GPU can have all of these slices, of profiles that it has."""
        wanted = [self.placements(name) for name in slices for _ in range(slices[name])]
        return _placed(sorted(wanted, key=lambda one: -one.length), frozenset())


def _placed(wanted: Sequence[Placements], taken: frozenset[int]) -> bool:
    """Return whether all have a place next to what is taken: memory slices, from 0."""
    if not wanted:
        return True
    first, rest = wanted[0], wanted[1:]
    spans = (frozenset(range(start, start + first.length)) for start in first.starts)
    return any(not span & taken and _placed(rest, taken | span) for span in spans)


class MigProfiles(SpecModel, frozen=True):
    """The file of profiles."""

    api_version: Literal["gcluster/mig/v1"] = field(name="apiVersion")
    source: Source
    date: Date
    gpus: list[MigGpu]
    placements: dict[str, dict[str, Placements]]
    """How a GPU is divided -> share of it and slices that it gives at most ("1g x7") -> places."""


@lru_cache(maxsize=1)
def mig_profiles() -> MigProfiles:
    """Return the profiles that come with gcluster."""
    return read_data_file(Path(__file__).parent.with_name("mig.yaml"), MigProfiles)


def mig_gpu(model: str, memory_gib: float) -> MigGpu | None:
    """Return the profiles of a GPU, of the nearest memory; None: nothing is known of it."""
    alike = [
        gpu
        for gpu in mig_profiles().gpus
        if gpu.model == model and abs(gpu.memory_gb - memory_gib) <= _CLOSE * gpu.memory_gb
    ]
    return min(alike, key=lambda gpu: abs(gpu.memory_gb - memory_gib), default=None)


def profiles_of(model: str, memory_gib: float) -> dict[str, int] | None:
    """Return configuration ("all-1g.10gb") -> slices of one GPU; None: nothing is known of it."""
    gpu = mig_gpu(model, memory_gib)
    if gpu is None:
        return None
    return {f"{PREFIX}{name}": slices for name, slices in gpu.profiles.items()}


def slices_of(model: str, memory_gib: float, configuration: str) -> int | None:
    """Return the slices that one GPU gives; None: the configuration isn't known for it."""
    return (profiles_of(model, memory_gib) or {}).get(configuration)


NicKind: TypeAlias = Literal["infiniband", "roce", "efa", "ena", "gvnic", "idpf", "ethernet"]
Market: TypeAlias = Literal["on-demand", "spot", "reservation", "capacity-block", "flex-start"]
"""How a machine is bought. reservation: ODCR, GCP reservation; capacity-block: also GCP's calendar
(future reservation); flex-start: GCP's dynamic workload scheduler."""


class Gpu(SpecModel, frozen=True):
    """The GPUs of one node."""

    vendor: Literal["nvidia", "amd"]
    """Who makes it; its software follows from that."""
    model: Annotated[str, Meta(min_length=1)]
    """As the vendor writes it: H100, MI300X."""
    memory_gib: Annotated[float, Meta(gt=0)]
    """Memory of one GPU in GiB."""
    count: Annotated[int, Meta(ge=1)]
    """GPUs in the node."""
    power_w: Annotated[float, Meta(gt=0)] | None = None
    """Power limit of one GPU in W."""
    compute_capability: (
        Annotated[str, Meta(pattern=r"^([0-9]+\.[0-9]|gfx[0-9a-f]+)$(?!\n)")] | None
    ) = None
    """What code is built for: 9.0 (NVIDIA), gfx942 (AMD)."""
    sockets: list[Annotated[int, Meta(ge=0)]] | None = None
    """Socket that each GPU hangs on, in the order of the device files (`nvidia-smi topo -m`)."""
    gke_accelerator: Annotated[str, Meta(pattern=r"^[a-z][a-z0-9-]*$(?!\n)")] | None = None
    """GKE's name of the accelerator in requests for nodes: nvidia-h100-80gb. None: GKE
    has none, or it is unknown."""


class Cpu(SpecModel, frozen=True):
    """The processors of one node; clouds often say vCPUs only."""

    architecture: Literal["x86_64", "aarch64"]
    """What its programs are built for."""
    vcpus: Annotated[int, Meta(ge=1)] | None = None
    """Hardware threads, where sockets and cores are not known."""
    sockets: Annotated[int, Meta(ge=1)] | None = None
    """Processors in the node."""
    cores: Annotated[int, Meta(ge=1)] | None = None
    """Cores of one socket."""
    threads_per_core: Annotated[int, Meta(ge=1)] | None = None
    """2 where hyper-threading is on."""

    @property
    def threads(self) -> int:
        """Hardware threads of the node: what Slurm calls CPUs; 0 when nothing says."""
        return self.vcpus or (self.sockets or 0) * (self.cores or 0) * (self.threads_per_core or 1)


class Nvlink(SpecModel, frozen=True):
    """The GPU interconnect (NVLink, or Infinity Fabric on AMD)."""

    domain_gpus: Annotated[int, Meta(ge=1)]
    """GPUs that reach each other over it; more than a node has where it spans nodes."""
    gbytes_per_s: Annotated[float, Meta(gt=0)] | None = None
    """Bandwidth of one GPU in GB/s, both directions together."""
    busbw_gbytes_per_s: Annotated[float, Meta(gt=0)] | None = None
    """AllReduce bus bandwidth measured in one node, in GB/s."""
    peer_links: Annotated[int, Meta(ge=1)] | None = None
    """Links between any two GPUs of a node; where switches join them, all that a GPU has (the 18 of
    NV18 in `nvidia-smi topo -m`)."""


class Nic(SpecModel, frozen=True):
    """Network interfaces of one kind."""

    kind: NicKind
    """Its link types."""
    count: Annotated[int, Meta(ge=1)]
    """Interfaces of that kind in the node."""
    gbps: Annotated[float, Meta(gt=0)] | None = None
    """Speed of one in Gb/s."""
    front_end: bool = False
    """For SSH, storage and the scheduler, not for the GPUs' traffic."""
    devices: list[RdmaDevice] = field(default_factory=list)
    """RDMA devices in the rails' order, as NVIDIA's drivers number them; none: unknown."""


class Price(SpecModel, frozen=True):
    """What a node costs in one market."""

    usd_per_hour: Annotated[float, Meta(ge=0)]
    """US dollars for a node and hour."""
    source: Source
    date: Date
    market: Market = "on-demand"
    """How it is bought for that."""
    region: str | None = None
    """Where it holds; None: where the source doesn't say."""


class Quota(SpecModel, frozen=True):
    """An allowance of the cloud account that nodes of this type count against."""

    code: Annotated[str, Meta(min_length=1)]
    """As the cloud's quota page and API call it: L-417A185B, NVIDIA_H100_GPUS."""
    unit: Literal["vcpu", "gpu", "node"]
    """What the quota counts."""
    per_node: Annotated[int, Meta(ge=1)]
    """How much one node takes, in `unit`."""
    markets: list[Market] = field(default_factory=lambda: ["on-demand"])
    """Markets that count against it."""


class Placement(SpecModel, frozen=True):
    """What keeps nodes close, and how many fit in one."""

    kind: Literal[
        "cluster-placement-group", "compact-placement", "single-placement-group", "cluster-network"
    ]
    """As the cloud calls it."""
    max_nodes: Annotated[int, Meta(ge=1)] | None = None
    """Most nodes in one, without a support request."""


class Machine(SpecModel, frozen=True, kw_only=True):
    """A machine type of the catalog."""

    name: Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$(?!\n)")]
    """What specs call it; one of gcluster's own is overridden by its name."""
    sites: Annotated[list[str], Meta(min_length=1)]
    """Providers whose sites can have it."""
    source: Source
    """Where the numbers come from."""
    date: Date
    """When the source was read."""
    cloud: str | None = None
    """Who rents it, where `sites` can't say: a cloud that gcluster has no provider for."""
    sources: dict[str, Citation] = field(default_factory=dict)
    """Fields whose number comes from elsewhere, by dotted path: nvlink.busbw_gbytes_per_s."""
    unverified: list[str] = field(default_factory=list)
    """Fields, by dotted path, that one source claims and none confirms, or where sources differ."""
    note: str | None = None
    """What is not known or not certain."""
    simulated: bool = False
    """Its GPUs are device files, not devices."""
    gpu: Gpu | None = None
    cpu: Cpu
    """Its architecture decides images and packages, so it is never left out."""
    memory_gib: Annotated[float, Meta(gt=0)] | None = None
    """Main memory of the node in GiB."""
    nvlink: Nvlink | None = None
    fabric: str | None = None
    """Fabric class of its NICs (catalog/fabrics); None: several are possible or it isn't known."""
    environment: dict[str, str] = field(default_factory=dict)
    """What jobs on it are given over the settings of that class."""
    nics: list[Nic] | None = None
    network_cards: Annotated[int, Meta(ge=1)] | None = None
    """Network cards the interfaces spread over (AWS)."""
    efa_cards: list[Annotated[int, Meta(ge=0)]] | None = None
    """Indexes of the network cards that carry an EFA; None: the last ones, as many as there are."""
    nvme_gb: Annotated[float, Meta(ge=0)] | None = None
    """Local NVMe for data in GB (10^9 bytes)."""
    power_w: Annotated[float, Meta(gt=0)] | None = None
    """Most power the node draws in W."""
    markets: list[Market] | None = None
    """How it can be bought; None: not rented, or not known."""
    prices: list[Price] = field(default_factory=list)
    quotas: list[Quota] = field(default_factory=list)
    zones: list[str] | None = None
    """Zone IDs (AWS), zone names (GCP), region-number (Azure) that offer it; None: not known."""
    placement: Placement | None = None

    @property
    def nvme_gib(self) -> float:
        """Local NVMe for data in GiB; 0: it has none, or it isn't known."""
        return (self.nvme_gb or 0) * 1e9 / 2**30

    @property
    def gpu_key(self) -> tuple[str, int] | None:
        """Model and number of GPUs: machine types with the same key run the same jobs."""
        return None if self.gpu is None else (self.gpu.model, self.gpu.count)

    @property
    def domain_nodes(self) -> int:
        """Nodes of one NVLink domain; 1 where NVLink ends at the node, or there is none."""
        if self.gpu is None or self.nvlink is None:
            return 1
        return max(1, self.nvlink.domain_gpus // self.gpu.count)

    def price(self, market: Market = "on-demand", region: str | None = None) -> Price | None:
        """Return the price in a market: of the region where it is known, else the one without."""
        fitting = [price for price in self.prices if price.market == market]
        here = [price for price in fitting if price.region == region]
        anywhere = [price for price in fitting if price.region is None]
        return next(iter(here or anywhere), None)

    @property
    def fabric_gbytes_per_s(self) -> float | None:
        """Bandwidth of all NICs for the GPUs' traffic, in GB/s, one direction."""
        cards = [nic for nic in self.nics or () if not nic.front_end]
        if not cards or any(nic.gbps is None for nic in cards):
            return None
        return sum(nic.count * (nic.gbps or 0) for nic in cards) / 8
