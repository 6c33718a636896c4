"""A pool of the spec as machines to launch: interfaces, markets, placement, image (pure)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from ....inventory.hosts import pool_host_names
from ....schemas.catalog import Catalog, Machine
from ....schemas.catalog.model.machine import Market
from ....schemas.derived.control_planes import managed_by
from ....schemas.derived.links import gateway_links
from ....schemas.spec import AwsSite, ClusterSpec, Option, Pool
from ....schemas.stack import resolved_software
from ...pulumi.names import short_hash
from ...pulumi.plan import architecture_of, disk_gib, site_of
from .control_plane import eks_image, eks_name
from .facts import facts
from .types import ImagePlan, InterfacePlan, OfferPlan, OptionPlan, PlacementPlan, PoolPlan

_OWNED = "kubernetes.io/cluster/{}"
"""Tag of nodes that aren't EKS' own (EKS User Guide, "Create self-managed Amazon Linux nodes")."""
_SECONDS_PER_HOUR = 3600


def pool_plan(spec: ClusterSpec, name: str, catalog: Catalog) -> PoolPlan:
    """Return the plan of one pool of an AWS site."""
    pool = spec.pools[name]
    site = site_of(spec, pool.site, AwsSite)
    machine = machine_of(pool, catalog)
    gateway = bool(gateway_links(spec, name)) and pool.role != "compute"
    joins = managed_by(spec) == "eks" and pool.role == "compute"
    return PoolPlan(
        name=name,
        role=pool.role,
        machine=pool.machine or facts().service_machine,
        nodes=tuple(pool_host_names(name, pool)),
        most=1 if pool.most is None else pool.most,
        elastic=pool.is_elastic,
        image=eks_image(spec, pool, site, machine, catalog)
        if joins
        else _image(spec, name, site, machine, catalog),
        disk_gib=disk_gib(pool, facts().root_disk_gib),
        interfaces=interfaces(machine, fabric=pool.fabric != "ethernet"),
        public=gateway or (pool.public_address and pool.role != "compute"),
        gateway=gateway,
        joins_eks=joins,
        tags={
            **pool.tags,
            **({_OWNED.format(eks_name(spec, pool.site)): "owned"} if joins else {}),
        },
        offers=tuple(_offers(name, pool, site, machine)),
        mixed=pool.mixed,
    )


def machine_of(pool: Pool, catalog: Catalog) -> Machine | None:
    """Return the pool's machine type, the default one of controllers and logins; None: unknown."""
    return catalog.machines.get(pool.machine or facts().service_machine)


def interfaces(machine: Machine | None, *, fabric: bool = True) -> tuple[InterfacePlan, ...]:
    """Return a node's interfaces: one with an address, and one of EFA alone for each EFA.

    As the EC2 User Guide has it ("Maximize network bandwidth on Amazon EC2 instances with multiple
    network cards", November 2026): card 0 has the primary interface as device 0 and, where it
    carries EFA, an efa-only one as device 1; the other cards have theirs as device 0. A machine
    with more cards than EFAs (p6-b300: 17 and 16) has none on card 0, and the catalog has it where
    they are not the last ones (p6e-gb200). Only the primary interface takes an address of the
    subnet.
    """
    primary = InterfacePlan(card=0, device=0, kind="interface")
    count = sum(nic.count for nic in (machine and machine.nics) or () if nic.kind == "efa")
    if not fabric or machine is None or not count:
        return (primary,)
    first = max(0, (machine.network_cards or count) - count)
    carrying = machine.efa_cards or range(first, first + count)
    return (
        primary,
        *(InterfacePlan(card=n, device=0 if n else 1, kind="efa-only") for n in carrying),
    )


def placement_plans(spec: ClusterSpec, site: str, catalog: Catalog) -> tuple[PlacementPlan, ...]:
    """Return the placement groups that a site's offers use, by key."""
    found: dict[str, PlacementPlan] = {}
    for name, pool in spec.pools.items():
        if pool.site != site:
            continue
        machine = machine_of(pool, catalog)
        for offer in _offers(name, pool, site_of(spec, site, AwsSite), machine):
            plan = _placement(pool, name, machine, offer.zone)
            if plan is not None and plan.key == offer.placement:
                found[plan.key] = plan
    return tuple(found[key] for key in sorted(found))


def _placement(
    pool: Pool, name: str, machine: Machine | None, zone: str | None
) -> PlacementPlan | None:
    """Return the group of a pool's nodes in a zone.

    Cluster groups are one for each fabric class and zone: EFA reaches no further, so pools that
    jobs may span are placed together. The pool's own setting comes first.
    """
    if pool.placement in {None, "cluster"}:
        close = machine is not None and machine.placement is not None and pool.fabric != "ethernet"
        if machine is None or not (close or pool.placement == "cluster"):
            return None
        domain = pool.fabric or machine.fabric or machine.name
        return PlacementPlan(key=_joined(domain, zone))
    if pool.placement == "none":
        return None
    if pool.placement == "spread":
        return PlacementPlan(key=_joined(f"spread-{name}", zone), strategy="spread")
    return PlacementPlan(key=f"existing-{pool.placement}", existing=pool.placement)


def _offers(name: str, pool: Pool, site: AwsSite, machine: Machine | None) -> Iterator[OfferPlan]:
    """Yield options in their order, each in all zones before the next: the spec's own priority.

    Machines of a capacity block are close together already. Those of a reservation are where it
    reserved them: a group that is created for the cluster contains none of them, and EC2 then
    returns InsufficientInstanceCapacity although the reservation has room. One that was created in
    a group is used with that group alone (EC2 User Guide, "Use Capacity Reservations with cluster
    placement groups", November 2026): the pool names it.
    """
    for written in pool.market or ["on-demand"]:
        option = _option(written)
        for zone in _zones(pool, site):
            placement = _placement(pool, name, machine, zone)
            existing = placement is not None and placement.existing is not None
            if option.market == "capacity-block" or (
                option.market == "reservation" and not existing
            ):
                placement = None
            yield OfferPlan(
                key=_joined(option.key, zone),
                option=option,
                zone=zone,
                placement=None if placement is None else placement.key,
            )


def _option(written: str | Option) -> OptionPlan:
    if isinstance(written, str):
        return OptionPlan(key=written, market=cast("Market", written))
    if written.spot_max_usd_per_hour is not None:
        limit = written.spot_max_usd_per_hour
        return OptionPlan(
            key=f"spot-{short_hash(f'{limit:g}')}", market="spot", max_usd_per_hour=limit
        )
    if written.buy_capacity_block is not None:
        hours = -int(-written.buy_capacity_block.value // _SECONDS_PER_HOUR)
        return OptionPlan(key=f"buy-{hours}h", market="capacity-block", buy_hours=hours)
    owned = written.reservation or written.capacity_block or ""
    group = owned if owned.startswith("arn:") else None
    return OptionPlan(
        key=f"{written.market}-{short_hash(owned)}",
        market=cast("Market", written.market),
        reservation=None if group else owned,
        reservation_group=group,
    )


def _image(
    spec: ClusterSpec, name: str, site: AwsSite, machine: Machine | None, catalog: Catalog
) -> ImagePlan:
    """Return the pool's image, else the site's, else the vendor's newest of the distribution."""
    pool, known = spec.pools[name], resolved_software(spec, name, catalog).distribution
    image = facts().images[known or facts().distribution]
    architecture = architecture_of(machine)
    named = pool.image or site.image
    parameter = image.parameters.get(architecture, "")
    return ImagePlan(
        ami=named or (f"resolve:ssm:{parameter}" if parameter else ""),
        user=site.ssh.user or image.user,
        root_device=image.root_device,
    )


def _zones(pool: Pool, site: AwsSite) -> list[str | None]:
    """Return the possible zones of a pool. An existing subnet is in one zone: the site's."""
    return [*pool.zones] if pool.zones and site.network.vpc is None else [site.zone_id]


def _joined(key: str, zone: str | None) -> str:
    return key if zone is None else f"{key}-{zone}"
