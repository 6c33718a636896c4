"""Regions of clouds and the zones in them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..diagnostics import PathTuple, Severity
from ..spec import CloudSite
from ..suggest import listing
from .context import CheckContext
from .registry import Finding, check

if TYPE_CHECKING:
    from ..catalog import ProviderFacts


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
        meant = by_zone or context.suggest(site.region, known)
        question = f': did you mean "{meant}"?' if meant else ""
        yield Finding(
            summary=f'site "{name}": the catalog does not know region "{site.region}" of '
            f"{site.provider}{question}",
            path=("sites", name, "region"),
            severity=Severity.WARNING,
            hint=f"known regions: {listing(known)}",
            meant=by_zone,
            relies_on=(("sites", name, "region"), ("sites", name, site.zone_key)),
        )


@check("GC123", summary="A zone that is not in the site's region.")
def zone_elsewhere(context: CheckContext) -> Iterator[Finding]:
    """A zone lies in the region of its site.

    AWS zones are written by ID (use1-az4), because names like us-east-1a mean other places in
    other accounts; those of Google by name (us-central1-a); those of Azure by number (1). One that
    the catalog knows nowhere may be new, so that is a warning.
    """
    for name, site, zone, path in _zones(context):
        facts = context.providers.get(site.provider)
        if not is_elsewhere(facts, site.region, zone):
            continue
        other = region_of(facts, zone)
        inside = zones_of_region(facts, site.region)
        yield Finding(
            summary=f'zone {zone} is not in {site.region}, the region of site "{name}"'
            + (f", but in {other}" if other else ""),
            path=path,
            severity=Severity.ERROR if other else Severity.WARNING,
            hint=f"zones of {site.region}: {listing(inside)}" if inside else f"region: {other}",
            relies_on=(path, ("sites", name, "region")),
        )
