"""Zones of pools: offered there, and one for a fabric that ends at the zone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..diagnostics import PathTuple, Severity
from ..spec import CloudSite, Pool, Rung
from ..suggest import listing
from .context import CheckContext
from .placements import is_fabric_domain
from .regions import is_elsewhere, zones_of_region
from .registry import Finding, check

if TYPE_CHECKING:
    from ..catalog import Machine


def zones_of_pool(context: CheckContext, name: str) -> list[tuple[str, PathTuple]]:
    """Return (zone, place to blame) of the zones a pool may stand in: its own, else its site's."""
    pool = context.pools[name]
    if pool.zones:
        return [(zone, ("pools", name, "zones", i)) for i, zone in enumerate(pool.zones)]
    site = context.cloud(pool)
    return [] if site is None or site.zone is None else [(site.zone, ("pools", name, "machine"))]


def _offering(context: CheckContext, site: CloudSite, machine: Machine) -> list[str] | None:
    """Return the zones of the site's region that offer a machine; None: not known."""
    inside = zones_of_region(context.providers.get(site.provider), site.region)
    if machine.zones is None or not inside:
        return None
    return [zone for zone in inside if site.place(zone) in machine.zones]


def _relies_on(site: CloudSite, name: str, pool: Pool) -> tuple[PathTuple, ...]:
    of_pool = tuple(("pools", name, key) for key in ("machine", "site", "zones", "fabric", "mixed"))
    return *of_pool, *(("sites", pool.site, key) for key in (site.zone_key, "region"))


@check("GC204", summary="A zone does not offer the machine type.")
def not_offered(context: CheckContext) -> Iterator[Finding]:
    """Machines with GPUs are to be had in few zones of few regions.

    The catalog lists the zones that are known to offer a type; launching one elsewhere fails after
    everything else was made. Zone IDs (use1-az4) mean one place, zone names don't. Who has
    reserved capacity there knows better than a list: then it is a warning.
    """
    for name, pool in context.pools.items():
        site, machine = context.cloud(pool), context.machine(pool)
        if site is None or machine is None or machine.zones is None:
            continue
        facts = context.facts(pool)
        offering = _offering(context, site, machine) or machine.zones
        for zone, path in zones_of_pool(context, name):
            if site.place(zone) in machine.zones or is_elsewhere(facts, site.region, zone):
                continue
            yield Finding(
                summary=f'pool "{name}": {machine.name} is not offered in {zone}',
                path=path,
                severity=Severity.WARNING if _is_reserved(pool) else Severity.ERROR,
                hint=f"use a site in {_either(offering)}",
                relies_on=(*_relies_on(site, name, pool), ("pools", name, "market")),
            )


def _is_reserved(pool: Pool) -> bool:
    """Say whether a pool may use capacity that is owned already."""
    rungs = [rung for rung in pool.market if isinstance(rung, Rung)]
    return any(rung.reservation or rung.capacity_block for rung in rungs)


def _either(zones: list[str]) -> str:
    """Return "a", "a or b" or "one of a, b, c"."""
    return " or ".join(sorted(zones)) if len(zones) <= 2 else f"one of {listing(zones)}"  # noqa: PLR2004  # two


@check("GC205", summary="A region does not offer the machine type.")
def not_in_region(context: CheckContext) -> Iterator[Finding]:
    """No zone of the site's region is known to offer the machine type.

    The catalog lists the zones that offer it; take a site in the region of one.
    """
    for name, pool in context.pools.items():
        site, machine = context.cloud(pool), context.machine(pool)
        if site is None or machine is None or zones_of_pool(context, name):
            continue
        if _offering(context, site, machine) == []:
            yield Finding(
                summary=f'pool "{name}": {machine.name} is not offered in {site.region}',
                path=("pools", name, "machine"),
                hint=f"use a site in {_either(machine.zones or [])}",
                relies_on=_relies_on(site, name, pool),
            )


def _ends_at(context: CheckContext, pool: Pool) -> str:
    """Return "zone" or "placement" where a pool's fabric goes no further; else ""."""
    machine, fabric = context.machine(pool), context.fabric(pool)
    if context.cloud(pool) is None or machine is None or fabric is None or not fabric.plugin:
        return ""
    return "placement" if is_fabric_domain(machine) else "zone" if fabric.reach == "zone" else ""


@check(
    "GC120", summary="Elastic nodes may stand in several zones, but the fabric ends at the zone."
)
def several_zones(context: CheckContext) -> Iterator[Finding]:
    """EFA, GPUDirect and RDMA between nodes of one cloud stay within one zone.

    An elastic pool that takes nodes from a second zone when the first has none left gets nodes that
    can't reach the others over the fabric: a job that spans both falls back to plain TCP or fails.
    Make a pool for each zone. Where no job needs several nodes, `mixed: true` allows it. A pool of
    a fixed size stands in one zone as a whole, so its `zones` are tried one after the other.
    """
    for name, pool in context.pools.items():
        site, fabric = context.cloud(pool), context.fabric(pool)
        several = len(set(pool.zones)) > 1 and not pool.mixed and pool.is_elastic
        if site is None or fabric is None or not several or not _ends_at(context, pool):
            continue
        yield Finding(
            summary=f'pool "{name}": {fabric.name} ends at the {_ends_at(context, pool)}, '
            f"but zones names {len(set(pool.zones))}: {', '.join(pool.zones)}",
            path=("pools", name, "zones"),
            hint="name one zone and make a pool for each other, or write mixed: true if no job "
            "spans nodes",
            relies_on=_relies_on(site, name, pool),
        )


@check("GC121", summary="Nobody says the zone of a fabric that ends at the zone.")
def no_zone(context: CheckContext) -> Iterator[Finding]:
    """A pool whose fabric stays within one zone needs to be in one: say it of the site.

    Without a zone the cloud may put each node where it likes, and its subnet with it.
    """
    for name, pool in context.pools.items():
        site, machine, fabric = context.cloud(pool), context.machine(pool), context.fabric(pool)
        if site is None or machine is None or fabric is None or zones_of_pool(context, name):
            continue
        offering = _offering(context, site, machine)
        if _ends_at(context, pool) != "zone" or offering == []:
            continue
        zones = offering or zones_of_region(context.facts(pool), site.region)
        yield Finding(
            summary=f'pool "{name}": {fabric.name} ends at the zone, but site "{pool.site}" names '
            "none",
            path=("sites", pool.site),
            at_key=True,
            hint=f"add {site.zone_key}: {_either(zones) if zones else 'ZONE'}",
            relies_on=_relies_on(site, name, pool),
        )
