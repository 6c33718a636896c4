"""Azure's current prices of a pool, from its public price list, without a login."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from urllib.parse import urlencode
from urllib.request import Request

from ...schemas.catalog import Catalog
from ...schemas.diagnostics import Diagnostic, Severity
from ..io.https import opened
from ..provider import Offer, provider_error
from ..pulumi.preflight import finding, price_finding
from .plan.types import OfferPlan, PoolPlan, SitePlan

PRICES = "https://prices.azure.com/api/retail/prices"
"""Azure Retail Prices REST API (learn.microsoft.com/rest/api/cost-management/retail-prices)."""
PRICE = "GC989"
"""Code of what a machine costs."""
_TIMEOUT_S = 20


def offers(
    plan: SitePlan, pool: PoolPlan, fetch: Callable[[str], bytes] | None = None
) -> tuple[Offer, ...]:
    """Return the price of each option; Azure doesn't publish its free capacity.

    Raises:
        ProviderError: GC966, the price list can't be reached.
    """
    query = (
        f"armRegionName eq '{plan.region}' and armSkuName eq '{pool.machine}' "
        "and priceType eq 'Consumption' and serviceName eq 'Virtual Machines'"
    )
    url = f"{PRICES}?{urlencode({'$filter': query, 'currencyCode': 'USD'})}"
    try:
        items = json.loads((fetch or _fetch)(url))["Items"]
    except OSError as error:
        raise provider_error(
            "GC966",
            f"Azure's price list can't be reached: {error}",
            hint="the plan shows the catalog's prices, with their dates",
        ) from error
    return tuple(_offer(pool, option, items) for option in pool.offers)


def check_price(
    plan: SitePlan,
    pool: PoolPlan,
    catalog: Catalog,
    fetch: Callable[[str], bytes] | None = None,
) -> Iterator[Diagnostic]:
    """Yield a machine's current price on each market; a warning where the catalog differs.

    Raises:
        ProviderError: GC966, the price list can't be reached.
    """
    machine = catalog.machines.get(pool.machine)
    by_market = {
        option.market: offer
        for option, offer in zip(pool.offers, offers(plan, pool, fetch), strict=True)
    }
    for market, offer in by_market.items():
        listed = machine.price(market, plan.region) if machine is not None else None
        known = None if listed is None else listed.usd_per_hour
        if offer.usd_per_hour is None:
            yield finding(
                PRICE,
                f"no price found for {pool.machine} ({market}) in {plan.region}",
                severity=Severity.WARNING,
                detail="Azure Retail Prices were queried now.",
            )
            continue
        source = f"Azure Retail Prices of {plan.region}, queried now"
        yield price_finding(
            PRICE, pool.machine, market, offer.usd_per_hour, source=source, known=known
        )


def _offer(pool: PoolPlan, option: OfferPlan, items: list[dict[str, object]]) -> Offer:
    spot = option.market == "spot"
    prices = [
        float(str(item["retailPrice"]))
        for item in items
        if "Windows" not in str(item.get("productName"))
        and "Low Priority" not in str(item.get("skuName"))
        and ("Spot" in str(item.get("skuName"))) == spot
    ]
    zone = f", zone {option.zone}" if option.zone else ""
    return Offer(
        pool=pool.name,
        available=None,
        usd_per_hour=min(prices, default=None),
        source=f"{option.market}{zone}: Azure Retail Prices",
        age_s=0.0,
    )


def _fetch(url: str) -> bytes:
    request = Request(url, headers={"Accept": "application/json"})  # noqa: S310  # our own https URL
    with opened(request, timeout=_TIMEOUT_S) as answer:
        found: bytes = answer.read()
    return found
