"""What AWS offers for a pool now, by purchase option: price and room, with source and age."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime

from ...schemas.catalog import Catalog, Market
from ...schemas.diagnostics import Diagnostic, Severity
from ..provider import Offer
from ..pulumi.preflight import finding, price_finding
from .api import Answer, Api, filters
from .plan.types import OfferPlan, PoolPlan
from .preflight.capacity import reservation


def offers(api: Api, pool: PoolPlan, catalog: Catalog) -> tuple[Offer, ...]:
    """Return one offer for each option and zone, in the order in which they are tried."""
    return tuple(_offer(api, pool, offer, catalog) for offer in pool.offers)


def _offer(api: Api, pool: PoolPlan, offer: OfferPlan, catalog: Catalog) -> Offer:
    market = offer.option.market
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
    if offer.option.reservation is not None:
        owned = reservation(api, offer.option.reservation)
        available = None if owned is None else owned.available_instance_count
    return Offer(pool=pool.name, available=available, usd_per_hour=usd, source=source, age_s=age)


_MINUTE_S = 60


class _SpotPrice(Answer, frozen=True):
    spot_price: str
    timestamp: datetime


class _SpotPrices(Answer, frozen=True):
    spot_price_history: tuple[_SpotPrice, ...] = ()


class _Prices(Answer, frozen=True):
    price_list: tuple[str, ...] = ()


def spot_price(api: Api, machine: str) -> tuple[float, float] | None:
    """Return the newest spot price in USD per hour and its age in seconds; None: AWS has none."""
    answer = api.call(
        _SpotPrices,
        "ec2",
        "describe_spot_price_history",
        InstanceTypes=[machine],
        ProductDescriptions=["Linux/UNIX"],
        Filters=filters(),
        StartTime=datetime.now(UTC),
    )
    if not answer.spot_price_history:
        return None
    newest = max(answer.spot_price_history, key=lambda price: price.timestamp)
    age = (datetime.now(UTC) - newest.timestamp).total_seconds()
    return float(newest.spot_price), max(0.0, age)


def on_demand_price(api: Api, machine: str) -> float | None:
    """Return the list price in USD per hour; None: the price list has none."""
    wanted = {
        "instanceType": machine,
        "regionCode": api.region,
        "operatingSystem": "Linux",
        "tenancy": "Shared",
        "preInstalledSw": "NA",
        "capacitystatus": "Used",
    }
    answer = api.call(
        _Prices,
        "pricing",
        "get_products",
        ServiceCode="AmazonEC2",
        Filters=[{"Type": "TERM_MATCH", "Field": k, "Value": v} for k, v in wanted.items()],
    )
    prices = [price for product in answer.price_list for price in _list_prices(product)]
    return min(prices, default=None)


def _list_prices(product: str) -> Iterator[float]:
    """Yield the hourly prices in one product of the price list."""
    for term in json.loads(product).get("terms", {}).get("OnDemand", {}).values():
        for dimension in term.get("priceDimensions", {}).values():
            price = float(dimension.get("pricePerUnit", {}).get("USD", 0))
            if dimension.get("unit") == "Hrs" and price > 0:
                yield price


def check_price(api: Api, pool: PoolPlan, market: Market, catalog: Catalog) -> Iterator[Diagnostic]:
    """Yield what a machine costs, with source and age; a warning where the catalog is off.

    The price of a capacity block comes with its offering, and here from the catalog.
    """
    machine = catalog.machines.get(pool.machine)
    listed = machine.price(market, api.region) if machine is not None else None
    known = None if listed is None else listed.usd_per_hour
    if market == "spot":
        found = spot_price(api, pool.machine)
        if found is not None:
            usd, age_s = found
            source = f"EC2 spot price history, {age_s / _MINUTE_S:.0f} minutes old"
            yield price_finding("GC979", pool.machine, market, usd, source=source, known=known)
            return
    elif market == "on-demand":
        price = on_demand_price(api, pool.machine)
        if price is not None:
            source = f"AWS price list of {api.region}, queried now"
            yield price_finding("GC979", pool.machine, market, price, source=source, known=known)
            return
    if listed is not None:
        source = f"the catalog: {listed.source}, {listed.date}"
        usd = listed.usd_per_hour
        yield price_finding("GC979", pool.machine, market, usd, source=source, known=usd)
    elif market in {"on-demand", "spot"}:
        yield finding(
            "GC979",
            f"no price found for {pool.machine} ({market}) in {api.region}",
            severity=Severity.WARNING,
        )
