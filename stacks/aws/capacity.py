"""Whether AWS has what a site asks for: zones, quotas, reservations, capacity blocks, prices."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from gcluster.schemas.diagnostics import Diagnostic, Severity
from gcluster.stacks.aws.api import Answer, AwsError, filters

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gcluster.schemas.quotas import QuotaNeed
    from gcluster.stacks.aws.api import Api
    from gcluster.stacks.aws.plan import OfferPlan, PoolPlan

PRICE_TOLERANCE = 0.05
"""Share by which a price may be off the catalog's before it is told."""


class _Offering(Answer, frozen=True):
    location: str


class _Offerings(Answer, frozen=True):
    instance_type_offerings: tuple[_Offering, ...] = ()


class _QuotaValue(Answer, frozen=True):
    value: float
    quota_name: str = ""


class _Quota(Answer, frozen=True):
    quota: _QuotaValue


class Reservation(Answer, frozen=True):
    """A capacity reservation or block, as DescribeCapacityReservations tells it."""

    capacity_reservation_id: str
    instance_type: str
    state: str
    availability_zone_id: str = ""
    total_instance_count: int = 0
    available_instance_count: int = 0
    reservation_type: str = "default"
    placement_group_arn: str = ""
    start_date: datetime | None = None
    end_date: datetime | None = None


class _Reservations(Answer, frozen=True):
    capacity_reservations: tuple[Reservation, ...] = ()


class _BlockOffering(Answer, frozen=True):
    availability_zone: str = ""
    start_date: datetime | None = None
    upfront_fee: str = ""
    currency_code: str = "USD"


class _BlockOfferings(Answer, frozen=True):
    capacity_block_offerings: tuple[_BlockOffering, ...] = ()


class _SpotPrice(Answer, frozen=True):
    spot_price: str
    timestamp: datetime


class _SpotPrices(Answer, frozen=True):
    spot_price_history: tuple[_SpotPrice, ...] = ()


class _Prices(Answer, frozen=True):
    price_list: tuple[str, ...] = ()


def check_zones(api: Api, pool: PoolPlan) -> Iterator[Diagnostic]:
    """Yield the zones of a pool that don't offer its machine type."""
    wanted = filters(instance_type=pool.machine)
    answer = api.ask(
        _Offerings,
        "ec2",
        "describe_instance_type_offerings",
        LocationType="availability-zone-id",
        Filters=wanted,
    )
    offering = sorted(offer.location for offer in answer.instance_type_offerings)
    for zone in dict.fromkeys(offer.zone for offer in pool.offers):
        if zone is not None and zone not in offering:
            yield finding(
                "GC973",
                f'pool "{pool.name}": {pool.machine} is not offered in {zone}',
                hint=f"zones of {api.region} that offer it: {', '.join(offering) or 'none'}",
            )


def check_quota(api: Api, need: QuotaNeed) -> Iterator[Diagnostic]:
    """Yield a finding where a quota is below what the spec takes at its largest."""
    answer = api.ask(
        _Quota, "service-quotas", "get_service_quota", ServiceCode="ec2", QuotaCode=need.code
    )
    if answer.quota.value >= need.amount:
        return
    yield finding(
        "GC972",
        f"quota {need.code} ({answer.quota.quota_name}) is {answer.quota.value:g} {need.unit}, "
        f"pools {', '.join(need.pools)} need {need.amount}",
        detail="What already runs in the account counts against it too.",
        hint="aws service-quotas request-service-quota-increase --service-code ec2 "
        f"--quota-code {need.code} --desired-value {need.amount} --region {api.region}",
    )


def reservation(api: Api, name: str) -> Reservation | None:
    """Return a capacity reservation or block; None where the region of this account has none."""
    try:
        answer = api.ask(
            _Reservations, "ec2", "describe_capacity_reservations", CapacityReservationIds=[name]
        )
    except AwsError as error:
        if not error.code.startswith("InvalidCapacityReservationId"):
            raise
        return None
    return next(iter(answer.capacity_reservations), None)


def check_reservation(api: Api, pool: PoolPlan, offer: OfferPlan) -> Iterator[Diagnostic]:
    """Yield what keeps a reservation or capacity block from serving a pool."""
    wanted = offer.rung.reservation
    if wanted is None:
        return
    found = reservation(api, wanted)
    lead = f'pool "{pool.name}": reservation {wanted}'
    if found is None:
        yield finding("GC974", f"{lead} is not in {api.region} of this account")
        return
    for said in _mismatches(found, pool, offer):
        yield finding("GC974", f"{lead} {said}")


def _mismatches(found: Reservation, pool: PoolPlan, offer: OfferPlan) -> Iterator[str]:
    kind = "capacity-block" if offer.rung.market == "capacity-block" else "default"
    if found.reservation_type != kind:
        other = "a capacity block" if kind == "default" else "no capacity block"
        yield f"is {other}; write {'capacity_block' if kind == 'default' else 'reservation'}: ID"
    if found.instance_type != pool.machine:
        yield f"is for {found.instance_type}, not {pool.machine}"
    if offer.zone is not None and found.availability_zone_id not in {"", offer.zone}:
        yield f"is in {found.availability_zone_id}, not {offer.zone}"
    if found.state != "active":
        begins = f" (begins {found.start_date:%Y-%m-%d %H:%M} UTC)" if found.start_date else ""
        yield f"is {found.state}{begins}"
    elif found.total_instance_count < pool.most:
        yield f"has {found.total_instance_count} machines, the pool needs {pool.most}"
    group = found.placement_group_arn.rpartition("/")[2]
    if group and offer.placement != f"existing-{group}":
        yield f"was made in placement group {group}; write placement: {group}"


def check_block_offering(api: Api, pool: PoolPlan, offer: OfferPlan) -> Iterator[Diagnostic]:
    """Yield what a capacity block that is to be bought costs, or that there is none."""
    hours = offer.rung.buy_hours
    if hours is None:
        return
    answer = api.ask(
        _BlockOfferings,
        "ec2",
        "describe_capacity_block_offerings",
        InstanceType=pool.machine,
        InstanceCount=pool.most,
        CapacityDurationHours=hours,
    )
    lead = f'pool "{pool.name}": a capacity block of {pool.most} {pool.machine} for {hours} h'
    if not answer.capacity_block_offerings:
        yield finding("GC975", f"{lead} is not on offer", hint="ask for fewer, or for less time")
        return
    first = answer.capacity_block_offerings[0]
    begins = f", from {first.start_date:%Y-%m-%d %H:%M} UTC" if first.start_date else ""
    yield finding(
        "GC975",
        f"{lead} costs {first.upfront_fee} {first.currency_code} at once{begins}",
        detail="It is not refundable: the money is gone whether the machines run or not.",
        severity=Severity.WARNING,
    )


def spot_price(api: Api, machine: str, zone_name: str = "") -> tuple[float, float] | None:
    """Return the newest spot price in USD per hour and its age in seconds; None: AWS has none."""
    wanted = filters(availability_zone=zone_name) if zone_name else []
    answer = api.ask(
        _SpotPrices,
        "ec2",
        "describe_spot_price_history",
        InstanceTypes=[machine],
        ProductDescriptions=["Linux/UNIX"],
        Filters=wanted,
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
    answer = api.ask(
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


def check_price(api: Api, pool: PoolPlan, known: float | None) -> Iterator[Diagnostic]:
    """Yield a note where the price list says something else than the catalog."""
    price = on_demand_price(api, pool.machine)
    if price is None:
        return
    if known is not None and abs(price - known) <= known * PRICE_TOLERANCE:
        return
    before = "has no price" if known is None else f"says {known:.2f} USD/h"
    yield finding(
        "GC979",
        f"{pool.machine} costs {price:.2f} USD/h on demand in {api.region}; the catalog {before}",
        detail="From the AWS price list, asked now.",
        severity=Severity.WARNING,
    )


def finding(
    code: str,
    summary: str,
    *,
    detail: str = "",
    hint: str = "",
    severity: Severity = Severity.ERROR,
) -> Diagnostic:
    """Return a diagnostic that has no place in the spec."""
    return Diagnostic(code=code, severity=severity, summary=summary, detail=detail, hint=hint)
