"""Where a cloud puts machines: regions, zones and placement groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from ...catalog import Machine, ProviderFacts
from ...derived.hostlist import fold
from ...diagnostics import PathTuple, Severity, listing
from ...spec import CloudSite, Option, Pool
from ...structure.fix.edits import Remove
from ..context import CheckContext, HostGroup
from ..registry import Finding, check
from .hosts import name_path

_ENDS_THE_FABRIC = ("single-placement-group", "cluster-network")
"""Placements outside of which the fabric doesn't go: Azure's InfiniBand, OCI's RDMA."""

_WORDS = {
    "cluster-placement-group": "cluster placement group",
    "compact-placement": "compact placement",
    "single-placement-group": "single placement group",
    "cluster-network": "cluster network",
}


def is_fabric_domain(machine: Machine) -> bool:
    """Say whether the machines' fabric ends where their placement ends."""
    return machine.placement is not None and machine.placement.kind in _ENDS_THE_FABRIC


@check("GC117", summary="A pool has more nodes than one placement holds.")
def placement_too_small(context: CheckContext) -> Iterator[Finding]:
    """All nodes of a pool are in one placement, and that holds so many.

    InfiniBand of Azure ends at the single placement group (100 machines): the nodes beyond would
    not reach the others. Two pools are two fabric domains: give each a partition of its own.
    """
    for name, pool in context.pools.items():
        machine = context.machine(pool)
        if machine is None or machine.placement is None or context.cloud(pool) is None:
            continue
        most, size = machine.placement.max_nodes, context.size(name)
        if most is None or size is None or size <= most:
            continue
        if is_fabric_domain(machine) or pool.placement not in (None, "none", "spread"):
            kind = _WORDS[machine.placement.kind]
            yield Finding(
                summary=f'pool "{name}": {size:,} nodes, but one {kind} holds {most:,}',
                path=("pools", name, "count"),
                hint=f"make pools of at most {most:,}, each in a partition of its own",
                relies_on=tuple(
                    ("pools", name, key) for key in ("count", "machine", "site", "placement")
                ),
            )


@check("GC134", summary="A pool's placement keeps its fabric from working.")
def placement_without_fabric(context: CheckContext) -> Iterator[Finding]:
    """Machines whose fabric ends at their placement can't do without it.

    Azure's InfiniBand works between the machines of one single placement group. With
    `placement: none` or `spread` no two nodes are sure to be in one.
    """
    for name, pool in context.pools.items():
        machine = context.machine(pool)
        if machine is None or machine.placement is None or pool.placement not in ("none", "spread"):
            continue
        if is_fabric_domain(machine) and pool.fabric != "ethernet" and context.cloud(pool):
            yield Finding(
                summary=f'pool "{name}": the fabric of {machine.name} ends at its '
                f"{_WORDS[machine.placement.kind]}, so placement can't be {pool.placement}",
                path=("pools", name, "placement"),
                hint="write placement: cluster, or fabric: ethernet if no job spans nodes",
                suggestion="cluster",
                relies_on=tuple(
                    ("pools", name, key) for key in ("placement", "machine", "site", "fabric")
                ),
            )


@check("GC139", summary="A placement that reserved capacity can't be in.")
def placement_of_reserved(context: CheckContext) -> Iterator[Finding]:
    """Reserved machines are where they were reserved: AWS moves none into another group.

    A reservation that was made in a cluster placement group is used with that group: name it,
    `placement: GROUP`. One that was made outside of any can't be used in a group, and machines of a
    capacity block are close together anyway: leave `placement` out, or write `none`. Where the pool
    has other ways to buy as well, it counts for those alone, and this is a warning.
    """
    for name, pool in context.pools.items():
        site = context.cloud(pool)
        if site is None or site.provider != "aws" or pool.placement in (None, "none"):
            continue
        owned = [o.market for o in pool.market if isinstance(o, Option)]
        block, made = "capacity-block" in owned, pool.placement in ("cluster", "spread")
        if not block and not (made and "reservation" in owned):
            continue
        others = len(pool.market) - owned.count("capacity-block") - owned.count("reservation")
        what = "capacity block" if block else "reservation"
        group = "" if block else "; placement: GROUP if the reservation was made in one"
        yield Finding(
            summary=f'pool "{name}": machines of a {what} can\'t be placed in '
            f"{'a new group' if made else pool.placement}",
            path=("pools", name, "placement"),
            at_key=True,
            severity=Severity.WARNING if others else Severity.ERROR,
            hint="it is for the other options alone" if others else f"leave placement out{group}",
            fix=None if others else Remove(("pools", name, "placement")),
            relies_on=tuple(("pools", name, key) for key in ("placement", "market", "site")),
        )


@check("GC133", summary="Only some hosts of a pool have a location.")
def host_placement_incomplete(context: CheckContext) -> Iterator[Finding]:
    """`block` and `leaf` are said of all hosts of a pool or of none.

    The scheduler packs jobs by them. Hosts that don't say theirs are packed as if they had no
    place: jobs land on them last, or across the whole fabric.
    """
    groups: dict[str, list[HostGroup]] = {}
    for group in context.host_groups:
        groups.setdefault(group.pool, []).append(group)
    keys: tuple[Literal["block", "leaf"], ...] = ("block", "leaf")
    for name, of_pool in groups.items():
        for key in keys:
            without = [g for g in of_pool if g.entry is None or getattr(g.entry, key) is None]
            if not without or len(without) == len(of_pool):
                continue
            hosts = [host for group in without for host in group.names or ()]
            yield Finding(
                summary=f'pool "{name}": {fold(hosts) or without[0].written} '
                f"{'has' if len(hosts) == 1 else 'have'} no {key}, but other hosts do",
                path=name_path(without[0]),
                severity=Severity.WARNING,
                hint=f"give every host of the pool its {key}, or none",
                relies_on=(("pools", name, "hosts"),),
            )


def zones_of_pool(context: CheckContext, name: str) -> list[tuple[str, PathTuple]]:
    """Return (zone, place to blame) of the zones a pool may be in: its own, else its site's."""
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
def machine_not_in_zone(context: CheckContext) -> Iterator[Finding]:
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
    purchase_options = [option for option in pool.market if isinstance(option, Option)]
    return any(option.reservation or option.capacity_block for option in purchase_options)


def _either(zones: list[str]) -> str:
    """Return "a", "a or b" or "one of a, b, c"."""
    return " or ".join(sorted(zones)) if len(zones) <= 2 else f"one of {listing(zones)}"  # noqa: PLR2004  # two


@check("GC205", summary="A region does not offer the machine type.")
def machine_not_in_region(context: CheckContext) -> Iterator[Finding]:
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


@check("GC120", summary="Elastic nodes may be in several zones, but the fabric ends at the zone.")
def several_zones(context: CheckContext) -> Iterator[Finding]:
    """EFA, GPUDirect and RDMA between nodes of one cloud stay within one zone.

    An elastic pool that takes nodes from a second zone when the first has none left gets nodes that
    can't reach the others over the fabric: a job that spans both falls back to plain TCP or fails.
    Make a pool for each zone. Where no job needs several nodes, `mixed: true` allows it. A pool of
    a fixed size is in one zone as a whole, so its `zones` are tried one after the other.
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


@check("GC121", summary="The zone of a fabric that ends at the zone is not specified.")
def fabric_zone_missing(context: CheckContext) -> Iterator[Finding]:
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


def zones_of_region(facts: ProviderFacts | None, region: str) -> list[str]:
    """Return the zones of a region; empty: not known."""
    regions = () if facts is None else facts.regions
    return next((known.zones for known in regions if known.name == region), [])


def is_elsewhere(facts: ProviderFacts | None, region: str, zone: str) -> bool:
    """Say whether a zone is known not to be in a region."""
    known = next((r for r in (facts.regions if facts else ()) if r.name == region), None)
    if known is None:
        return False
    if known.zones:
        return zone not in known.zones
    return not zone.isdigit() and region_of(facts, zone) is not None


def _are_numbered(facts: ProviderFacts | None) -> bool:
    """Say whether a provider's zones are numbers."""
    zones = [zone for region in (facts.regions if facts else ()) for zone in region.zones]
    return bool(zones) and all(zone.isdigit() for zone in zones)


def region_of(facts: ProviderFacts | None, zone: str) -> str | None:
    """Return the region that has a zone; None: not known, or several have one of this name."""
    regions = () if facts is None else facts.regions
    having = [known.name for known in regions if zone in known.zones]
    return having[0] if len(having) == 1 else None


def _zones(context: CheckContext) -> Iterator[tuple[str, CloudSite, str, PathTuple]]:
    """Yield (site, its value, zone, place) for every zone that the spec names."""
    for name, site in context.sites.items():
        if isinstance(site, CloudSite) and site.zone is not None:
            yield name, site, site.zone, ("sites", name, site.zone_key)
    for name, pool in context.pools.items():
        cloud = context.cloud(pool)
        for index, zone in enumerate(pool.zones if cloud else ()):
            if cloud is not None:
                yield pool.site, cloud, zone, ("pools", name, "zones", index)
    for name, storage in context.storage.items():
        of, placed = getattr(storage, "site", None), getattr(storage, "zone", None)
        where = context.sites.get(of or "")
        if isinstance(where, CloudSite) and of is not None and placed is not None:
            yield of, where, placed, ("storage", name, "zone")


@check("GC122", summary="A region that the catalog does not know.")
def unknown_region(context: CheckContext) -> Iterator[Finding]:
    """`region` is the cloud's own word for it: us-east-1, us-central1, eastus.

    The catalog knows the regions that are known to have GPU machines; a new one may be right all
    the same, so this is a warning. Nothing is checked about zones of a region that isn't known.
    """
    for name, site in context.sites.items():
        facts = context.providers.get(site.provider) if isinstance(site, CloudSite) else None
        if not isinstance(site, CloudSite) or facts is None or not facts.regions:
            continue
        known = [region.name for region in facts.regions]
        if site.region in known:
            continue
        by_zone = region_of(facts, site.zone or "")
        suggestion = by_zone or context.suggest(site.region, known)
        question = f': did you mean "{suggestion}"?' if suggestion else ""
        yield Finding(
            summary=f'site "{name}": the catalog does not know region "{site.region}" of '
            f"{site.provider}{question}",
            path=("sites", name, "region"),
            severity=Severity.WARNING,
            hint=f"known regions: {listing(known)}",
            suggestion=by_zone,
            relies_on=(("sites", name, "region"), ("sites", name, site.zone_key)),
        )


@check("GC123", summary="A zone that is not in the site's region.")
def zone_not_in_region(context: CheckContext) -> Iterator[Finding]:
    """A zone lies in the region of its site.

    AWS zones are written by ID (use1-az4), because names like us-east-1a mean other places in
    other accounts; those of Google by name (us-central1-a); those of Azure and OCI by number (1),
    for a domain of OCI is called otherwise in each tenancy. One that the catalog knows nowhere may
    be new, so that is a warning.
    """
    for name, site, zone, path in _zones(context):
        facts = context.providers.get(site.provider)
        inside = zones_of_region(facts, site.region)
        if _are_numbered(facts) and not zone.isdigit():
            yield Finding(
                summary=f"zone {zone}: {site.provider} takes zones by number",
                path=path,
                hint=f"zones of {site.region}: {listing(inside)}" if inside else 'write "1"',
            )
            continue
        if not is_elsewhere(facts, site.region, zone):
            continue
        other = region_of(facts, zone)
        yield Finding(
            summary=f'zone {zone} is not in {site.region}, the region of site "{name}"'
            + (f", but in {other}" if other else ""),
            path=path,
            severity=Severity.ERROR if other else Severity.WARNING,
            hint=f"zones of {site.region}: {listing(inside)}" if inside else f"region: {other}",
            relies_on=(path, ("sites", name, "region")),
        )
