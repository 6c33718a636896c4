"""Purchase options of a pool with their prices, and what each resource of the stack buys."""

from __future__ import annotations

from collections.abc import Mapping

from ....inventory.hosts import pool_host_names
from ....schemas.catalog import Catalog
from ....schemas.spec import AwsSite, ClusterSpec
from ...provider import Purchase, PurchaseOption
from ...pulumi.names import POOL
from ...pulumi.plan import priced, site_names, site_of
from ..api import Api, tagged
from ..preflight.capacity import Reservations
from .pools import pool_plan
from .types import OfferPlan, SitePlan

_USABLE = ["active", "scheduled", "pending", "payment-pending", "assessing"]
"""States of a block that is or will be there (EC2 API, CapacityReservation, November 2026)."""


def purchase_options(
    spec: ClusterSpec, site: str, pool: str, catalog: Catalog
) -> tuple[PurchaseOption, ...]:
    """Return the options of a pool in the order in which they are tried."""
    plan = pool_plan(spec, pool, catalog)
    machine = catalog.machines.get(plan.machine)
    region = site_of(spec, site, AwsSite).region

    def offered(offer: OfferPlan) -> PurchaseOption:
        option = offer.option
        usd, bound = priced(machine, option.market, region, option.max_usd_per_hour)
        return PurchaseOption(
            key=offer.key,
            market=option.market,
            zone=offer.zone,
            usd_per_hour=usd,
            is_bound=bound,
            buy_hours=option.buy_hours,
        )

    return tuple(offered(offer) for offer in plan.offers)


def purchases(spec: ClusterSpec, site: str) -> dict[str, Purchase]:
    """Return name of an instance or a capacity block in the program -> what it buys."""
    names = site_names(spec, site)
    found: dict[str, Purchase] = {}
    for name, pool in spec.pools.items():
        if pool.site == site:
            found[names(f"block-{name}")] = Purchase(pool=name)
            nodes = pool_host_names(name, pool)
            found |= {names(node): Purchase(pool=name, nodes=(node,)) for node in nodes}
    return found


def bought_blocks(api: Api, plan: SitePlan, purchased: Mapping[str, str]) -> dict[str, str]:
    """Return pool -> id of the capacity block that this cluster bought for it and that is not over.

    AWS is queried only where a node is on an option that buys one. Raises ProviderError.
    """
    found: dict[str, str] = {}
    for pool in plan.pools:
        offers = pool.purchased(purchased).values()
        if all(offer.option.buy_hours is None for offer in offers):
            continue
        wanted = tagged({**plan.labels.found_by(), POOL: pool.name})
        answer = api.call(Reservations, "ec2", "describe_capacity_reservations", Filters=wanted)
        usable = [r for r in answer.capacity_reservations if r.state in _USABLE]
        usable.sort(key=lambda block: (block.state != "active", block.capacity_reservation_id))
        if usable:
            found[pool.name] = usable[0].capacity_reservation_id
    return found
