"""The pools of a site as plans: sizes, images, placement, and the options of their markets."""

from __future__ import annotations

from itertools import product

from ....inventory.hosts import pool_host_names
from ....schemas.catalog import Catalog, Machine
from ....schemas.derived.links import gateway_links
from ....schemas.spec import AzureSite, ClusterSpec, Option, Pool
from ....schemas.stack import resolved_software
from ...provider import ProviderError, provider_error
from ...pulumi.plan import disk_gib
from .facts import facts
from .identifiers import existing
from .types import ImagePlan, OfferPlan, PoolPlan, ScaleSetPlan

_GROUPS = "Microsoft.Compute/proximityPlacementGroups"
_RESERVATIONS = "Microsoft.Compute/capacityReservationGroups"
_URN_PARTS = 4


def pools(
    spec: ClusterSpec, site: str, described: AzureSite, catalog: Catalog
) -> tuple[PoolPlan, ...]:
    """Return the plans of the site's pools, in spec order; raises ProviderError (GC990)."""
    return tuple(
        plan_pool(spec, name, described, catalog)
        for name, pool in spec.pools.items()
        if pool.site == site
    )


def plan_pool(spec: ClusterSpec, name: str, site: AzureSite, catalog: Catalog) -> PoolPlan:
    """Return the plan of one pool; raises ProviderError (GC990)."""
    pool = spec.pools[name]
    size = pool.machine or facts().machine
    machine = catalog.machines.get(size)
    if machine is None:
        raise _refused(name, f'the catalog knows no machine type "{size}"', "gcluster machines")
    names = tuple(pool_host_names(name, pool))
    compute = pool.role == "compute"
    single = compute and _keeps_together(name, pool, machine)
    gateway = not compute and bool(gateway_links(spec, name))
    image = _image(spec, name, site, catalog, machine)
    return PoolPlan(
        name=name,
        role=pool.role,
        machine=size,
        nodes=names,
        most=len(names) if pool.most is None else pool.most,
        image=image,
        offers=_options(pool, site),
        subnet="compute" if compute else "egress",
        sets=_sets(name, pool, image, single=single) if compute else (),
        elastic=compute and pool.is_elastic,
        mixed=pool.mixed,
        single_placement=single,
        proximity_group=_proximity(pool, site),
        disk_gib=disk_gib(pool, facts().boot_disk_gib),
        public=gateway or (pool.public_address and not compute),
        gateway=gateway,
        tags=dict(pool.tags),
    )


def _keeps_together(name: str, pool: Pool, machine: Machine) -> bool:
    """Return whether all machines are in one single placement group, where InfiniBand works."""
    placement = machine.placement
    fabric = pool.fabric or machine.fabric or "ethernet"
    infiniband = fabric.startswith("infiniband")
    together = fabric != "ethernet" or pool.placement == "cluster"
    if not infiniband and (not together or placement is None):
        return False
    if pool.placement in ("none", "spread"):
        what = f"{machine.name} has InfiniBand only within one single placement group"
        raise _refused(name, what, "write placement: cluster, or fabric: ethernet")
    most = facts().single_placement_machines if placement is None else placement.max_nodes
    if most is not None and (pool.most or 0) > most:
        what = f"one single placement group holds {most} machines, not {pool.most}"
        raise _refused(name, what, f"make pools of at most {most}")
    return True


def _sets(name: str, pool: Pool, image: ImagePlan, *, single: bool) -> tuple[ScaleSetPlan, ...]:
    """Return one scale set, or as many as hold the pool where no fabric ties it together."""
    least, most = pool.least or 0, pool.most or 0
    limit = facts().scale_set_machines
    room = (
        limit.managed
        if "/images/" in image.id and "/galleries/" not in image.id
        else limit.platform
    )
    if single or most <= room:
        return (ScaleSetPlan(name=name, count=least),)
    if pool.is_elastic:
        what = f"an elastic pool is one scale set, which holds {room} machines"
        raise _refused(name, what, f"lower max to {room}, or make several pools")
    counts = [min(room, least - start) for start in range(0, least, room)]
    return tuple(
        ScaleSetPlan(name=name if number == 1 else f"{name}-set{number}", count=count)
        for number, count in enumerate(counts, start=1)
    )


def _proximity(pool: Pool, site: AzureSite) -> str:
    if pool.placement in (None, "cluster", "none", "spread"):
        return ""
    return existing(site, pool.placement, _GROUPS, field="placement")


def _options(pool: Pool, site: AzureSite) -> tuple[OfferPlan, ...]:
    """Return the fallback_list: all zones of a market before the next market."""
    zones = pool.zones or ([site.zone] if site.zone else [""])
    fallback_list = pool.market or ["on-demand"]
    return tuple(_option(step, zone, site) for step, zone in product(fallback_list, zones))


def _option(step: str | Option, zone: str, site: AzureSite) -> OfferPlan:
    if isinstance(step, str):
        if step not in ("on-demand", "spot"):
            raise _not_sold(step)
        return OfferPlan(market="spot" if step == "spot" else "on-demand", zone=zone)
    if step.reservation is not None:
        group = existing(site, step.reservation, _RESERVATIONS, field="market.reservation")
        return OfferPlan(market="reservation", zone=zone, reservation=group)
    if step.spot_max_usd_per_hour is not None:
        return OfferPlan(market="spot", zone=zone, max_usd_per_hour=step.spot_max_usd_per_hour)
    raise _not_sold(step.market or "nothing")


def _not_sold(market: str) -> ProviderError:
    return provider_error(
        "GC990",
        f"market: Azure has no {market}",
        hint="write on-demand, spot or {reservation: ID}",
    )


def _image(
    spec: ClusterSpec, name: str, site: AzureSite, catalog: Catalog, machine: Machine
) -> ImagePlan:
    written = spec.pools[name].image or site.image
    if written is not None:
        return _written_image(name, written)
    resolved = resolved_software(spec, name, catalog).distribution
    distribution = resolved or facts().distribution
    gpu = machine.gpu.vendor if machine.gpu else ""
    urn = facts().image(distribution, gpu, machine.cpu.architecture)
    if urn is None:
        what = f"there is no vendor's image of {distribution} for {machine.name}"
        raise _refused(name, what, "name one in `image` of the pool or the site")
    return _written_image(name, urn)


def _written_image(name: str, written: str) -> ImagePlan:
    if written.startswith("/"):
        lower = written.casefold()
        return ImagePlan(
            id=written,
            shared=lower.startswith("/sharedgalleries/"),
            community=lower.startswith("/communitygalleries/"),
        )
    parts = written.split(":")
    if len(parts) != _URN_PARTS:
        what = f'image "{written}" is neither PUBLISHER:OFFER:SKU:VERSION nor an id'
        raise _refused(name, what, "microsoft-dsvm:ubuntu-hpc:2204:latest, or /subscriptions/...")
    publisher, offer, sku, version = parts
    return ImagePlan(publisher=publisher, offer=offer, sku=sku, version=version)


def _refused(pool: str, what: str, hint: str) -> ProviderError:
    path = ("pools", pool)
    return provider_error("GC990", f'pool "{pool}": {what}', hint=hint, path=path)
