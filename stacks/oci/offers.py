"""What OCI offers for a pool now, by purchase option: price and room, with source and age."""

from __future__ import annotations

from datetime import UTC, datetime

from ...schemas.catalog import Catalog
from ..provider import Offer
from .api import Api
from .plan.types import OfferPlan, PoolPlan, SitePlan
from .preflight.capacity import reservation


def offers(
    api: Api, plan: SitePlan, pool: PoolPlan, catalog: Catalog, *, now: datetime | None = None
) -> tuple[Offer, ...]:
    """Return one offer for each option and domain, in the order in which they are tried.

    Prices are the catalog's: OCI's list has parts without the names of shapes. Raises OciError.
    """
    today = now or datetime.now(UTC)
    return tuple(
        _offer(api, plan, pool, offer, catalog=catalog, today=today) for offer in pool.offers
    )


def _offer(
    api: Api, plan: SitePlan, pool: PoolPlan, offer: OfferPlan, *, catalog: Catalog, today: datetime
) -> Offer:
    machine = catalog.machines.get(pool.machine)
    market = "on-demand" if offer.option.market == "reservation" else offer.option.market
    price = None if machine is None else machine.price(market, plan.region)
    owned = None
    if offer.option.reservation is not None:
        owned = reservation(api, offer.option.reservation)
    source = f"no price ({offer.key})"
    age = 0.0
    if price is not None:
        day = price.date if price.date.count("-") > 1 else f"{price.date}-01"
        source = f"{price.source} ({offer.key})"
        age = max(0.0, (today - datetime.fromisoformat(day).replace(tzinfo=UTC)).total_seconds())
    return Offer(
        pool=pool.name,
        available=None if owned is None else owned.free(pool.shape.name),
        usd_per_hour=None if price is None else price.usd_per_hour,
        source=source,
        age_s=age,
    )
