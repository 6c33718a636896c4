"""What Azure would give this subscription in this region: sizes, images, reservations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from azure.mgmt.compute.models import ResourceSku

from ....schemas.catalog import Catalog
from ....schemas.cost.quotas import quota_needs
from ....schemas.diagnostics import Diagnostic, Severity
from ....schemas.spec import ClusterSpec
from ...provider import ProviderError
from ...pulumi.preflight import ExistingMachines, finding
from ..api import Answer, Api, refusals
from ..plan.identifiers import parse
from ..plan.types import ImagePlan, OfferPlan, PoolPlan, SitePlan

_GALLERIES = "2024-03-03"
_IMAGES = "2024-07-01"


def check_sizes(api: Api, plan: SitePlan) -> Iterator[Diagnostic]:
    """Yield the machine types that this region, a zone, or this subscription does not get."""
    with refusals("machine types"):
        listed = api.compute.resource_skus.list(filter=f"location eq '{plan.region}'")
        found = {
            sku.name: sku for sku in listed if sku.resource_type == "virtualMachines" and sku.name
        }
    for pool in plan.pools:
        sku = found.get(pool.machine)
        if sku is None:
            yield _size(pool, f"{plan.region} has no {pool.machine}", "choose another region")
            continue
        zones = {zone for info in sku.location_info or () for zone in info.zones or ()}
        barred, barred_zones = _restrictions(sku)
        if barred:
            what = f"this subscription gets no {pool.machine} in {plan.region} ({barred})"
            yield _size(
                pool, what, "request access to the size from Azure's support, or another region"
            )
            continue
        for option in pool.offers:
            if option.zone and option.zone not in zones - barred_zones:
                has = ", ".join(sorted(zones - barred_zones)) or "none"
                lacks = f"zone {option.zone} of {plan.region} has no {pool.machine}"
                what = f"{lacks}; zones with it: {has}"
                yield _size(pool, what, "name another zone, or none")


def _restrictions(sku: ResourceSku) -> tuple[str, set[str]]:
    """Return why the size is not to be had at all, "" where it is, and zones that are closed."""
    why, zones = "", set()
    for restriction in sku.restrictions or ():
        if str(restriction.type).rpartition(".")[2].casefold() == "zone":
            info = restriction.restriction_info
            zones |= set((info.zones if info else None) or ())
        else:
            why = str(restriction.reason_code or "restricted").rpartition(".")[2]
    return why, zones


def _size(pool: PoolPlan, what: str, hint: str) -> Diagnostic:
    return finding("GC995", f'pool "{pool.name}": {what}', hint=hint)


def describe_image(image: ImagePlan) -> str:
    """Return an image as a spec writes it."""
    return image.id or f"{image.publisher}:{image.offer}:{image.sku}:{image.version}"


def check_image(api: Api, plan: SitePlan, image: ImagePlan) -> Iterator[Diagnostic]:
    """Yield a finding where an image does not exist in the region."""
    if image.shared or image.community:
        return
    try:
        exists = _exists(api, plan, image)
    except ProviderError as error:
        if "NotFound" not in error.diagnostics[0].detail:
            raise
        exists = False
    if not exists:
        yield finding(
            "GC996",
            f"there is no image {describe_image(image)} in {plan.region}",
            hint="name another in `image` of the pool or the site; `az vm image list --all "
            f"--location {plan.region} --offer {image.offer or 'ubuntu-hpc'}` lists them",
        )


def _exists(api: Api, plan: SitePlan, image: ImagePlan) -> bool:
    if image.id:
        api.get(Answer, image.id, _GALLERIES if "/galleries/" in image.id else _IMAGES)
        return True
    with refusals(describe_image(image)):
        versions = api.compute.virtual_machine_images.list(
            plan.region, image.publisher, image.offer, image.sku
        )
    return any(image.version in {"latest", version.name} for version in versions)


def check_reservation(api: Api, pool: PoolPlan, option: OfferPlan) -> Iterator[Diagnostic]:
    """Yield a finding where a reservation is not of the pool's size, zone and number."""
    where = parse(option.reservation)
    if where is None:
        return
    with refusals(option.reservation):
        held = list(
            api.compute.capacity_reservations.list_by_capacity_reservation_group(
                where.group, where.name
            )
        )
    fitting = [
        one
        for one in held
        if one.sku.name == pool.machine and (not option.zone or option.zone in (one.zones or ()))
    ]
    room = sum(int(one.sku.capacity or 0) for one in fitting)
    if room < len(pool.nodes):
        zone = f" in zone {option.zone}" if option.zone else ""
        yield finding(
            "GC995",
            f'pool "{pool.name}": reservation {where.name} holds {room} {pool.machine}{zone}, '
            f"not {len(pool.nodes)}",
            hint="enlarge the reservation, or put on-demand after it in `market`",
        )


_CORES = "cores"
"""Azure's name of the quota over all machine types of a region."""
_SPOT = "lowPriorityCores"
"""Azure's name of the quota of spot machines, which count against no other."""


def check_quotas(
    api: Api, spec: ClusterSpec, plan: SitePlan, catalog: Catalog, existing: ExistingMachines
) -> Iterator[Diagnostic]:
    """Yield the quotas that the largest size of the pools does not fit in.

    An error where the whole is too small. A warning where others use what the spec still needs:
    machines of this cluster that run are among what is used, and are needed no more.
    """
    with refusals("quotas"):
        found = {
            usage.name.value: (usage.current_value, usage.limit)
            for usage in api.compute.usage.list(plan.region)
            if usage.name and usage.name.value
        }
    whole = _amounts(spec, plan, catalog, {})
    left = _amounts(spec, plan, catalog, existing.counts()) if whole else {}
    for code, (amount, pools) in whole.items():
        used, limit = found.get(code, (0, None))
        missing = left.get(code, (0, ()))[0]
        who = f"({', '.join(dict.fromkeys(pools))})"
        severity = Severity.WARNING
        if limit is None:
            what = f"has no quota {code}"
        elif amount > limit:
            what = f"quota {code} is {limit:,} vCPU, the pools need {amount:,}"
            severity = Severity.ERROR
        elif missing > limit - used:
            free = f"{limit - used:,} of {limit:,} vCPU are free"
            what = f"quota {code}: {free}, the pools still need {missing:,}"
        else:
            continue
        yield finding(
            "GC994",
            f"{plan.region}: {what} {who}",
            severity=severity,
            hint=f"request more of {code} on the portal's page Quotas, or lower the count",
        )


def _amounts(
    spec: ClusterSpec, plan: SitePlan, catalog: Catalog, there: Mapping[str, int]
) -> dict[str, tuple[int, tuple[str, ...]]]:
    """Return quota -> vCPUs and pools of those that the site's machines count against."""
    amounts: dict[str, tuple[int, tuple[str, ...]]] = {}
    for need in quota_needs(spec, catalog, there):
        if need.provider != "azure" or all(spec.pools[p].site != plan.site for p in need.pools):
            continue
        for code in (_SPOT,) if need.code == _SPOT else (need.code, _CORES):
            amount, pools = amounts.get(code, (0, ()))
            amounts[code] = amount + need.amount, (*pools, *need.pools)
    return amounts
