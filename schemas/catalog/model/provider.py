"""What a provider has and allows: regions, reserved networks, storage steps, purchase terms."""

from typing import Annotated

from msgspec import Meta, field

from ...spec.model import SpecModel
from .machine import Citation, Date, Market, Source


class Region(SpecModel, frozen=True):
    """A region and its zones."""

    name: str
    """As the provider calls it: us-east-1."""
    zones: list[str] = field(default_factory=list)
    """Zone IDs (AWS: use1-az4) or zone names (GCP: us-central1-a; Azure: 1, 2, 3); empty: not known."""  # noqa: E501
    kg_co2_per_kwh: Annotated[float, Meta(ge=0)] | None = None
    """Carbon intensity of its power, in kg CO2e per kWh."""


class ReservedNetwork(SpecModel, frozen=True):
    """Addresses that no network of the cluster may use."""

    cidr: str
    """Addresses, as a CIDR."""
    reason: str
    """What they are for."""
    source: Source
    date: Date


class LustreOffer(SpecModel, frozen=True, kw_only=True):
    """One kind of managed Lustre and the sizes it comes in."""

    deployment: str
    """persistent-2, scratch-2 (AWS); managed (GCP); durable-premium (Azure)."""
    throughput_mb_per_s_per_tib: Annotated[float, Meta(gt=0)] | None = None
    """MB/s per TiB of capacity."""
    efa: bool = False
    """Whether its clients may use EFA."""
    sizes_gib: list[float] = field(default_factory=list)
    """Sizes allowed in addition to the steps."""
    minimum_gib: Annotated[float, Meta(gt=0)]
    """Smallest size in steps, in GiB."""
    step_gib: Annotated[float, Meta(gt=0)]
    """Sizes are multiples of it, in GiB."""
    maximum_gib: Annotated[float, Meta(gt=0)] | None = None
    """Largest size in GiB."""
    usd_per_gib_month: Annotated[float, Meta(ge=0)] | None = None
    """US dollars for a GiB and month."""
    source: Source
    date: Date


class FileServiceOffer(SpecModel, frozen=True, kw_only=True):
    """One kind of an NFS service's file systems and the sizes it comes in."""

    type: str
    """As `type:` of a storage: filestore."""
    kind: str = ""
    """Its tier or deployment, as the storage says it; "": there is one."""
    minimum_gib: Annotated[float, Meta(gt=0)]
    """Smallest size in steps, in GiB."""
    step_gib: Annotated[float, Meta(gt=0)]
    """Sizes are multiples of it, in GiB."""
    maximum_gib: Annotated[float, Meta(gt=0)]
    """Largest size in GiB."""
    throughput_mb_per_s: list[float] = field(default_factory=list)
    """MB/s that its servers come with, where that is chosen."""
    usd_per_gib_month: Annotated[float, Meta(ge=0)] | None = None
    """US dollars for a GiB and month; None: not known, or not all that is paid for."""
    source: Source
    date: Date


class DataDisk(SpecModel, frozen=True, kw_only=True):
    """The kind of disk that keeps what a host serves."""

    usd_per_gib_month: Annotated[float, Meta(ge=0)]
    """US dollars for a GiB and month."""
    source: Source
    date: Date


class LustreSubnet(SpecModel, frozen=True, kw_only=True):
    """A subnet for managed Lustre up to some size."""

    up_to_tib: Annotated[float, Meta(gt=0)]
    """Largest file system, in TiB."""
    prefix: Annotated[int, Meta(ge=0, le=32)]
    """Prefix length of the smallest subnet."""


class IdForm(SpecModel, frozen=True, kw_only=True):
    """How the ids of one kind of thing look."""

    pattern: str
    """Regular expression that the whole id matches."""
    example: str
    """One that does, to show."""


class CapacityBlock(SpecModel, frozen=True, kw_only=True):
    """Terms of capacity bought ahead for a time."""

    max_nodes: Annotated[int, Meta(ge=1)]
    """Most nodes in one block."""
    day_steps: list[int]
    """Lengths in days that can be bought, where few; see the note for the rest."""
    refundable: bool
    """Whether it can be given back."""
    note: str | None = None
    """What is not known or not certain."""
    source: Source
    date: Date


class ProviderFacts(SpecModel, frozen=True):
    """A provider of the catalog."""

    name: str
    """As `provider:` of a site: aws."""
    source: Source
    date: Date
    sources: dict[str, Citation] = field(default_factory=dict)
    """Fields whose number comes from elsewhere, by dotted path."""
    unverified: list[str] = field(default_factory=list)
    """Fields, by dotted path, that are not confirmed."""
    note: str | None = None
    """What is not known or not certain."""
    regions: list[Region] = field(default_factory=list)
    """Empty: the provider has none."""
    markets: list[Market] = field(default_factory=list)
    """How it sells machines; a machine's own markets precede these."""
    subnet_reserved_addresses: Annotated[int, Meta(ge=0)] | None = None
    """Addresses of every subnet that the provider keeps."""
    subnet_prefixes: list[Annotated[int, Meta(ge=0, le=32)]] = field(default_factory=list)
    """Prefix lengths of the largest and the smallest subnet, as of a network; empty: not known."""
    reserved_networks: list[ReservedNetwork] = field(default_factory=list)
    lustre_subnets: list[LustreSubnet] = field(default_factory=list)
    """Smallest subnet of its own that managed Lustre is made in, by size; empty: it needs none."""
    lustre: list[LustreOffer] = field(default_factory=list)
    file_services: list[FileServiceOffer] = field(default_factory=list)
    """Sizes of its NFS services; those that grow with what is put in have none."""
    data_disk: DataDisk | None = None
    """None: its price is not known."""
    capacity_block: CapacityBlock | None = None
    flex_start_seconds: list[int] | None = None
    """Shortest and longest flex-start, in seconds."""
    boot_disk_gib: list[float] = field(default_factory=list)
    """Smallest and largest boot disk in GiB, the smallest that of the vendors' images; empty: not
    known."""
    pue: Annotated[float, Meta(ge=1)] | None = None
    """Power usage effectiveness of the fleet."""
    id_forms: dict[str, IdForm] = field(default_factory=dict)
    """Forms of ids as its API documents them, by the key of the spec that takes one: keys of the
    site's network (vpc, subnets), kms_key, image, zone (of DNS), reservation, capacity_block,
    bucket (ACCOUNT/CONTAINER on Azure)."""
    bucket_schemes: list[str] = field(default_factory=list)
    """URL schemes of its object storage: s3, gs, az."""
