"""What Google would give for a pool, option by option: price and room, each with source and age."""

from __future__ import annotations

from datetime import UTC, datetime

from ...schemas.catalog import Catalog, Price
from ..provider import Offer
from .api import Api
from .plan.layout import SitePlan
from .plan.pools import OfferPlan, PoolPlan
from .preflight.capacity import reservation


def offers(
    api: Api, plan: SitePlan, pool: PoolPlan, catalog: Catalog, *, now: datetime | None = None
) -> tuple[Offer, ...]:
    """Return one offer for each option, in the order they are tried; raises GoogleError."""
    today = now or datetime.now(UTC)
    machine = catalog.machines.get(pool.machine)
    prices = (
        None if machine is None else machine.price(r.market, plan.region) for r in pool.offers
    )
    return tuple(
        _offer(api, pool.name, option, price, today)
        for option, price in zip(pool.offers, prices, strict=True)
    )


def _offer(api: Api, pool: str, option: OfferPlan, price: Price | None, today: datetime) -> Offer:
    found = reservation(api, option) if option.reservation is not None else None
    source = f"no price ({option.key})" if price is None else f"{price.source} ({option.key})"
    return Offer(
        pool=pool,
        available=None if found is None else found.specific_reservation.free,
        usd_per_hour=None if price is None else price.usd_per_hour,
        source=source,
        age_s=0.0 if price is None else _age_s(price.date, today),
    )


def _age_s(date: str, today: datetime) -> float:
    """Return seconds since a day, or since the first of a month."""
    whole = date if date.count("-") > 1 else f"{date}-01"
    changed = datetime.fromisoformat(whole).replace(tzinfo=UTC)
    return max(0.0, (today - changed).total_seconds())
