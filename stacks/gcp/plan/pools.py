"""The machines of a pool: names, type, image, disk, placement and purchase options."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

import msgspec

from ....inventory.hosts import pool_host_names
from ....schemas.catalog import Catalog, Machine, ProviderFacts
from ....schemas.spec import GcpSite, Option, Pool
from ....schemas.stack import Resolved
from ...pulumi.plan import CloudPool, Plan, architecture_of, disk_gib
from .fabric import InterfacePlan, interfaces
from .facts import facts

_POLICY_WORDS = frozenset({"cluster", "spread", "none"})


Market: TypeAlias = Literal["on-demand", "spot", "reservation", "capacity-block", "flex-start"]
ProvisioningModel: TypeAlias = Literal["STANDARD", "SPOT", "FLEX_START", "RESERVATION_BOUND"]
Affinity: TypeAlias = Literal["ANY_RESERVATION", "SPECIFIC_RESERVATION", "NO_RESERVATION"]

_MODELS: dict[Market, ProvisioningModel] = {
    "on-demand": "STANDARD",
    "spot": "SPOT",
    "reservation": "STANDARD",
    "capacity-block": "RESERVATION_BOUND",
    "flex-start": "FLEX_START",
}
_AFFINITIES: dict[Market, Affinity] = {
    "on-demand": "ANY_RESERVATION",
    "spot": "NO_RESERVATION",
    "reservation": "SPECIFIC_RESERVATION",
    "capacity-block": "SPECIFIC_RESERVATION",
    "flex-start": "NO_RESERVATION",
}
DENSE: frozenset[Market] = frozenset({"reservation", "capacity-block", "flex-start"})
"""Markets whose capacity is placed close together already, so that a policy isn't added."""


_RESERVED: frozenset[Market] = frozenset({"reservation", "capacity-block"})
_RESERVATION = re.compile(
    r"(?:https://[^/]+/compute/[^/]+/)?"
    r"(?:projects/(?P<project>[^/]+)/(?:zones/[^/]+/)?reservations/)?"
    r"(?P<name>[^/]+)(?P<block>/.+)?"
)


class ReservationName(msgspec.Struct, frozen=True, kw_only=True):
    """A reservation as a spec may name it: alone, by its path, by its URL, or a block of it."""

    project: str
    """"" for the site's own."""
    name: str
    block: str
    """"/reservationBlocks/B", or "/reservationBlocks/B/reservationSubBlocks/S"; "" for all."""

    def value(self, project: str) -> str:
        """Return it as affinities name it: NAME, or projects/P/reservations/NAME of others."""
        own = self.project in {"", project}
        return ("" if own else f"projects/{self.project}/reservations/") + self.name + self.block


def reservation_name(written: str) -> ReservationName:
    """Return the parts of a reservation's name."""
    found = _RESERVATION.fullmatch(written)
    if found is None:
        return ReservationName(project="", name=written, block="")
    project, name, block = found.group("project", "name", "block")
    return ReservationName(project=project or "", name=name, block=block or "")


class OfferPlan(Plan, frozen=True, kw_only=True):
    """One try: a market in a zone."""

    key: str
    """Stable while the fallback list has it: spot-us-central1-a."""
    market: Market
    zone: str
    reservation: str | None = None
    """Reservation to take capacity from, as the spec names it."""
    dense: bool = False
    """Its reservation is dense: blocks of machines close together, which are bound to it."""
    run_seconds: int | None = None
    """How long a flex-start machine runs before it is deleted."""
    interfaces: tuple[InterfacePlan, ...] = ()

    @property
    def provisioning_model(self) -> ProvisioningModel:
        """What Compute Engine calls the market."""
        return "RESERVATION_BOUND" if self.dense else _MODELS[self.market]

    @property
    def affinity(self) -> Affinity:
        """Which reservations its machines may take capacity from."""
        return _AFFINITIES[self.market]

    @property
    def is_reclaimable(self) -> bool:
        """Whether the cloud takes the machine back by itself; it then deletes it."""
        return self.market in {"spot", "flex-start", "capacity-block"}


class PlacementPlan(Plan, frozen=True, kw_only=True):
    """How a pool's machines are kept together, or apart."""

    existing: str | None = None
    """A policy that exists; nothing is made."""
    collocated: bool = False
    """Make one compact placement policy."""
    spread_over: int | None = None
    """Make a spread policy over this many availability domains."""
    domain_nodes: int | None = None
    """Machines of one NVLink domain: each gets a policy of its own."""
    topology: str | None = None
    """Shape of the NVLink domain: 1x72."""

    @property
    def makes_policy(self) -> bool:
        """Whether there is a policy to make."""
        return self.collocated or self.spread_over is not None


class PoolPlan(CloudPool[OfferPlan], frozen=True, kw_only=True):
    """One pool."""

    fabric: str | None
    has_gpus: bool
    more_nodes: tuple[str, ...]
    """Names of the machines that come and go."""
    placement: PlacementPlan
    image: str | None
    """None: neither the spec nor facts.yaml has one; preflight reports it."""
    disk_type: str

    def all_nodes(self) -> tuple[str, ...]:
        """Return the names of all machines there may be."""
        return self.nodes + self.more_nodes

    def policies(self) -> int:
        """Return how many placement policies the pool has."""
        nodes = self.placement.domain_nodes
        if not self.placement.makes_policy:
            return 0
        return math.ceil(max(self.most, 1) / nodes) if nodes else 1

    def policy_of(self, number: int) -> int:
        """Return which policy the machine with this number (from 1) belongs to, from 0."""
        nodes = self.placement.domain_nodes
        return (number - 1) // nodes if nodes else 0


def machine_of(pool: Pool) -> str:
    """Return the machine type of a pool; controllers and logins may name none."""
    return pool.machine or facts().default_machine


def pool_plan(
    name: str,
    pool: Pool,
    site: GcpSite,
    *,
    catalog: Catalog,
    software: Resolved,
    gateway: bool = False,
) -> PoolPlan:
    """Return what a pool is made of; of a gateway's tunnels end at its first host."""
    type_ = machine_of(pool)
    machine = catalog.machines.get(type_)
    fabric_name = pool.fabric or (machine.fabric if machine else None)
    fabric = catalog.fabrics.get(fabric_name or "")
    zones = zones_of(pool, site, machine, catalog)
    fallback_list = [
        msgspec.structs.replace(option, interfaces=tuple(interfaces(machine, fabric, option.zone)))
        for option in option_plans(
            pool,
            zones,
            catalog.providers.get("gcp"),
            dense=facts().reserves_densely(type_),
        )
    ]
    nodes = tuple(pool_host_names(name, pool))
    whole = pool_host_names(name, msgspec.structs.replace(pool, count=pool.most))
    return PoolPlan(
        name=name,
        role=pool.role,
        machine=type_,
        fabric=fabric_name,
        has_gpus=machine is not None and machine.gpu is not None,
        nodes=nodes,
        more_nodes=tuple(whole[len(nodes) :]),
        most=len(nodes) + len(whole[len(nodes) :]),
        elastic=len(whole) > len(nodes),
        offers=tuple(fallback_list),
        mixed=pool.mixed,
        placement=_placement(pool, machine, fabric_name),
        image=pool.image or site.image or _image(machine, software),
        disk_type=facts().disk_type(type_),
        disk_gib=disk_gib(pool, facts().boot_disk_gib),
        public=pool.public_address and pool.role != "compute",
        gateway=gateway and pool.role != "compute",
        tags=pool.tags,
    )


def uses_policy(pool: PoolPlan, option: OfferPlan) -> bool:
    """Return whether machines of this option have a policy that was created for the pool.

    Reserved and queued capacity is close together already, except machines whose NVLink domain
    spans nodes: those need one always (Google's overview of placement policies, November 2026).
    """
    if not pool.placement.makes_policy:
        return False
    return option.market not in DENSE or pool.placement.domain_nodes is not None


def _placement(pool: Pool, machine: Machine | None, fabric: str | None) -> PlacementPlan:
    word = pool.placement
    if word is not None and word not in _POLICY_WORDS:
        return PlacementPlan(existing=word)
    if word == "spread":
        return PlacementPlan(spread_over=min(facts().spread_domains, max(1, pool.most or 1)))
    needed = fabric not in {None, "ethernet", "nvlink"} and machine is not None
    nodes = _domain_nodes(machine)
    if word == "none" or (word is None and not needed) or (pool.most or 0) <= 1:
        return PlacementPlan()
    topology = f"1x{machine.nvlink.domain_gpus}" if nodes and machine and machine.nvlink else None
    return PlacementPlan(collocated=True, domain_nodes=nodes, topology=topology)


def _domain_nodes(machine: Machine | None) -> int | None:
    """Return how many machines share an NVLink domain; None where each has its own."""
    if machine is None or machine.nvlink is None or machine.gpu is None:
        return None
    nodes = machine.nvlink.domain_gpus // machine.gpu.count
    return nodes if nodes > 1 else None


def zones_of(pool: Pool, site: GcpSite, machine: Machine | None, catalog: Catalog) -> list[str]:
    """Return the zones that a pool is tried in, in order."""
    return [*pool.zones] or [_zone(site, machine, catalog)]


def _zone(site: GcpSite, machine: Machine | None, catalog: Catalog) -> str:
    """Return the site's zone; without one the first of the region that has the machine."""
    if site.zone is not None:
        return site.zone
    having = [] if machine is None else machine.zones or []
    facts_ = catalog.providers.get("gcp")
    known = next((r.zones for r in facts_.regions if r.name == site.region), []) if facts_ else []
    here = [zone for zone in having if zone.startswith(f"{site.region}-")]
    return next(iter([*here, *known]), f"{site.region}-a")


def _image(machine: Machine | None, software: Resolved) -> str | None:
    architecture = architecture_of(machine)
    return facts().image(software.distribution or "ubuntu-24.04", architecture)


def option_plans(
    pool: Pool, zones: Sequence[str], facts: ProviderFacts | None, *, dense: bool = False
) -> list[OfferPlan]:
    """Return the tries in order: the first market in every zone, then the next one.

    Args:
        pool: has its purchase options.
        zones: to try.
        facts: of Google Cloud.
        dense: reservations of its machine type are dense always.
    """
    longest = None if facts is None else facts.flex_start_seconds
    found: list[OfferPlan] = []
    for entry in pool.market or ["on-demand"]:
        found += (_option(entry, zone, longest) for zone in zones)
    return [
        msgspec.structs.replace(option, dense=dense and option.market in _RESERVED)
        for option in _distinct(found)
    ]


def _option(entry: str | Option, zone: str, flex_start_seconds: list[int] | None) -> OfferPlan:
    if not isinstance(entry, Option):
        market = entry
        run = flex_start_seconds[1] if market == "flex-start" and flex_start_seconds else None
        return _plan(market, zone, run_seconds=run)
    duration = entry.flex_start
    return _plan(
        entry.market,
        zone,
        reservation=entry.reservation or entry.capacity_block,
        run_seconds=None if duration is None else int(duration.value),
    )


def _plan(
    market: str, zone: str, *, reservation: str | None = None, run_seconds: int | None = None
) -> OfferPlan:
    known: dict[str, Market] = {name: name for name in _MODELS}
    return OfferPlan(
        key=f"{market}-{zone}",
        market=known.get(market, "on-demand"),
        zone=zone,
        reservation=reservation,
        run_seconds=run_seconds,
    )


def _distinct(found: Iterable[OfferPlan]) -> Iterable[OfferPlan]:
    """Give the second option of a key a number: two reservations in one zone."""
    seen: dict[str, int] = {}
    for option in found:
        seen[option.key] = seen.get(option.key, 0) + 1
        number = seen[option.key]
        yield (
            option if number == 1 else msgspec.structs.replace(option, key=f"{option.key}-{number}")
        )
