"""What AWS would give for a pool now, rung by rung: price and room, each with source and age."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..provider import Offer
from .api import Api
from .capacity import reservation
from .prices import on_demand_price, spot_price

if TYPE_CHECKING:
    from ...schemas.catalog import Catalog
    from .plan import OfferPlan, PoolPlan


def offers(api: Api, pool: PoolPlan, catalog: Catalog) -> tuple[Offer, ...]:
    """Return one offer for each rung and zone, in the order in which they are tried."""
    return tuple(_offer(api, pool, offer, catalog) for offer in pool.offers)


def _offer(api: Api, pool: PoolPlan, offer: OfferPlan, catalog: Catalog) -> Offer:
    market = offer.rung.market
    available: int | None = None
    usd: float | None = None
    source, age = f"AWS price list ({offer.key})", 0.0
    if market == "spot":
        found = spot_price(api, pool.machine)
        source = f"EC2 spot price history ({offer.key})"
        usd, age = found or (None, 0.0)
    elif market == "capacity-block":
        machine = catalog.machines.get(pool.machine)
        price = None if machine is None else machine.price("capacity-block", api.region)
        usd = None if price is None else price.usd_per_hour
        source = (
            f"{price.source}, {price.date} ({offer.key})" if price else f"no price ({offer.key})"
        )
    else:
        usd = on_demand_price(api, pool.machine)
    if offer.rung.reservation is not None:
        owned = reservation(api, offer.rung.reservation)
        available = None if owned is None else owned.available_instance_count
    return Offer(pool=pool.name, available=available, usd_per_hour=usd, source=source, age_s=age)
