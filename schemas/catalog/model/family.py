"""Families of CPU machines: any size of one is a machine type, by a rule."""

import re
from typing import Annotated

from msgspec import Meta, field

from ...spec.model import SpecModel
from .machine import Citation, Cpu, Date, Machine, Market, Nic, Placement, Price, Quota, Source

_AFTER_FAMILY = (
    r"(?P<family>[^.]+)\.[^.]+",  # m7i.4xlarge
    r"(?P<family>.+\.Flex)-[0-9]+-[0-9]+",  # VM.Standard.E5.Flex-8-128
    r"(?P<family>VM\.[A-Za-z0-9]+)\.[0-9]+",  # VM.Standard2.8
    r"(?P<family>[a-z][a-z0-9]*-[a-z]+)-[0-9]+",  # n2-standard-8
)
_AZURE = r"(Standard_[A-Z]+)[0-9]+(?:-[0-9]+)?([a-z]*(?:_v[0-9]+)?)"
"""Standard_D8s_v5: the size is within the name."""


class Flexible(SpecModel, frozen=True):
    """Sizes that are said as cores and memory (OCI): FAMILY-OCPUS-GB."""

    threads_per_ocpu: Annotated[int, Meta(ge=1, le=2)]
    """Hardware threads of one OCPU: 2 on x86, 1 on Arm."""
    max_ocpus: Annotated[int, Meta(ge=1)]
    """Most OCPUs of a machine."""
    max_memory_gib: Annotated[int, Meta(ge=1)]
    """Most memory of a machine in GiB."""
    max_gib_per_ocpu: Annotated[int, Meta(ge=1)]
    """Most memory for each OCPU in GiB; the least is 1."""


class FamilyPrice(SpecModel, frozen=True):
    """What machines of a family cost, by what they have."""

    source: Source
    """Its location."""
    date: Date
    """When that was read."""
    per_vcpu: Annotated[float, Meta(ge=0)] = 0
    """US dollars for a hardware thread and hour."""
    per_gib: Annotated[float, Meta(ge=0)] = 0
    """US dollars for a GiB of memory and hour."""
    market: Market = "on-demand"
    """How machines are bought for that."""
    region: str | None = None
    """Where it holds; None: where the source doesn't say."""


class FamilyQuota(SpecModel, frozen=True):
    """An allowance that the family's machines count against with their hardware threads."""

    code: Annotated[str, Meta(min_length=1)]
    """As the cloud's quota page and API call it."""
    markets: list[Market] = field(default_factory=lambda: ["on-demand"])
    """Markets that count against it."""


class Family(SpecModel, frozen=True, kw_only=True):
    """CPU machines that differ in their size alone."""

    name: Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$(?!\n)")]
    """Its machines' name without the size: m7i, n2-standard, Standard_Ds_v5."""
    sites: Annotated[list[str], Meta(min_length=1)]
    """Providers whose sites can have it."""
    source: Source
    """Where sizes and memory come from."""
    date: Date
    """When the source was read."""
    cpu: Cpu
    """Architecture, and threads of a core where that is known."""
    sizes: dict[str, Annotated[int, Meta(ge=1)]] = field(default_factory=dict)
    """Size as the name has it -> hardware threads."""
    flexible: Flexible | None = None
    """Sizes that are said as cores and memory instead."""
    gib_per_vcpu: Annotated[float, Meta(gt=0)] | None = None
    """Memory in GiB for each hardware thread."""
    memory_gib: dict[str, Annotated[float, Meta(gt=0)]] = field(default_factory=dict)
    """Sizes whose memory follows no rule -> GiB."""
    fabric: str | None = None
    """Fabric class of its NICs (catalog/fabrics)."""
    nics: list[Nic] | None = None
    """Network interfaces of each machine."""
    network_cards: Annotated[int, Meta(ge=1)] | None = None
    """Network cards the interfaces spread over (AWS)."""
    placement: Placement | None = None
    """What keeps nodes close."""
    markets: list[Market] | None = None
    """How they can be bought; None: not known."""
    prices: list[FamilyPrice] = field(default_factory=list)
    """Empty: not known."""
    quotas: list[FamilyQuota] = field(default_factory=list)
    """Allowances that they count against."""
    sources: dict[str, Citation] = field(default_factory=dict)
    """Fields that come from elsewhere, as of a machine type."""
    unverified: list[str] = field(default_factory=list)
    """Fields that one source claims and none confirms, or where sources differ."""
    note: str | None = None
    """What is not known or not certain."""

    def machine(self, name: str) -> Machine | None:
        """Return the machine type of this name; None: the family has no such size."""
        found = self._flexible(name) if self.flexible else self._of_size(name)
        if found is None:
            return None
        threads, memory = found
        own = f"; {self.note}" if self.note else ""
        return Machine(
            name=name,
            sites=self.sites,
            source=self.source,
            date=self.date,
            sources=self.sources,
            unverified=self.unverified,
            note=f"no GPU; of the family {self.name}, by its rule{own}",
            cpu=Cpu(architecture=self.cpu.architecture, vcpus=threads),
            memory_gib=memory,
            fabric=self.fabric,
            nics=self.nics,
            network_cards=self.network_cards,
            placement=self.placement,
            markets=self.markets,
            prices=[_price(price, threads, memory) for price in self.prices],
            quotas=[
                Quota(code=quota.code, unit="vcpu", per_node=threads, markets=quota.markets)
                for quota in self.quotas
            ],
        )

    def names(self) -> list[str]:
        """Return the names of all its machine types; of flexible ones how they are written."""
        if self.flexible is not None:
            return [f"{self.name}-OCPUS-GB"]
        return [self._named(size) for size in self.sizes]

    def _named(self, size: str) -> str:
        azure = re.fullmatch(r"(Standard_[A-Z]+)([a-z]*(?:_v[0-9]+)?)", self.name)
        if azure:
            return f"{azure[1]}{size}{azure[2]}"
        return f"{self.name}{'-' if '-' in self.name else '.'}{size}"

    def _of_size(self, name: str) -> tuple[int, float | None] | None:
        size = next((size for size in self.sizes if self._named(size) == name), None)
        if size is None:
            return None
        threads = self.sizes[size]
        rule = None if self.gib_per_vcpu is None else self.gib_per_vcpu * threads
        return threads, self.memory_gib.get(size, rule)

    def _flexible(self, name: str) -> tuple[int, float | None] | None:
        shape = self.flexible
        written = re.fullmatch(rf"{re.escape(self.name)}-([0-9]{{1,4}})-([0-9]{{1,5}})", name)
        if shape is None or written is None:
            return None
        ocpus, memory = int(written[1]), int(written[2])
        most = min(shape.max_memory_gib, ocpus * shape.max_gib_per_ocpu)
        fits = 1 <= ocpus <= shape.max_ocpus and ocpus <= memory <= most
        return (ocpus * shape.threads_per_ocpu, float(memory)) if fits else None


def _price(price: FamilyPrice, threads: int, memory: float | None) -> Price:
    usd = price.per_vcpu * threads + price.per_gib * (memory or 0)
    return Price(
        usd_per_hour=round(usd, 6),
        source=price.source,
        date=price.date,
        market=price.market,
        region=price.region,
    )


def family_of(machine: str) -> str | None:
    """Return the name of the family that a machine type of this name would be of; None: of none."""
    azure = re.fullmatch(_AZURE, machine)
    if azure:
        return f"{azure[1]}{azure[2]}"
    found = (re.fullmatch(pattern, machine) for pattern in _AFTER_FAMILY)
    return next((match["family"] for match in found if match), None)
