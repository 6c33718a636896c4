"""Which capacity block a pool would buy: the earliest on offer in its zone, by its id."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from ....schemas.diagnostics import Diagnostic, Severity
from ...provider import BlockOffering, provider_error
from ...pulumi.preflight import ExistingMachines, finding
from ..api import Answer, Api
from ..plan.types import OfferPlan, PoolPlan


class _Segment(Answer, frozen=True):
    availability_zone: str = ""


class _Offering(Answer, frozen=True):
    capacity_block_offering_id: str
    availability_zone: str = ""
    start_date: datetime | None = None
    end_date: datetime | None = None
    upfront_fee: str = ""
    currency_code: str = "USD"
    capacity_block_offering_segments: tuple[_Segment, ...] = ()

    @property
    def zones(self) -> frozenset[str]:
        """Names of its machines' zones."""
        parts = (segment.availability_zone for segment in self.capacity_block_offering_segments)
        return frozenset(zone for zone in (self.availability_zone, *parts) if zone)

    @property
    def rank(self) -> tuple[bool, str, float, str]:
        """Sort key: the earliest, then the cheapest; equal ones are interchangeable."""
        starts = "" if self.start_date is None else self.start_date.isoformat()
        return not starts, starts, float(self.upfront_fee or "inf"), self.capacity_block_offering_id


class _Offerings(Answer, frozen=True):
    capacity_block_offerings: tuple[_Offering, ...] = ()


class _Zone(Answer, frozen=True):
    zone_name: str


class _Zones(Answer, frozen=True):
    availability_zones: tuple[_Zone, ...] = ()


def block_offering(api: Api, pool: PoolPlan, offer: OfferPlan) -> BlockOffering | None:
    """Return what the offer would buy now; None: nothing of the kind is on offer in its zone.

    A block over several zones doesn't count: the fabric ends at a zone.

    Raises:
        ProviderError: GC975, the offer has no zone, and a block in any could be the wrong one.
    """
    hours = offer.option.buy_hours
    if hours is None:
        return None
    if offer.zone is None:
        raise provider_error(
            "GC975",
            f'pool "{pool.name}": the zone of its capacity block is not specified',
            hint="write zone_id at the site, or zones: [ID] at the pool",
        )
    pages = api.pages(
        _Offerings,
        "ec2",
        "describe_capacity_block_offerings",
        InstanceType=pool.machine,
        InstanceCount=pool.most,
        CapacityDurationHours=hours,
        AllAvailabilityZones=True,
    )
    found = [each for page in pages for each in page.capacity_block_offerings]
    if not found:
        return None
    zone = _zone_name(api, offer.zone)
    fitting = [each for each in found if each.zones == {zone}]
    if not fitting:
        return None
    first = min(fitting, key=lambda each: each.rank)
    in_usd = first.currency_code == "USD" and first.upfront_fee
    return BlockOffering(
        id=first.capacity_block_offering_id,
        zone=offer.zone,
        starts=_text(first.start_date),
        ends=_text(first.end_date),
        usd=float(first.upfront_fee) if in_usd else None,
        price=f"{first.upfront_fee} {first.currency_code}",
    )


def _zone_name(api: Api, zone_id: str) -> str:
    """Return what this account calls a zone; "" where it has none of that id."""
    answer = api.call(
        _Zones,
        "ec2",
        "describe_availability_zones",
        ZoneIds=[zone_id],
        AllAvailabilityZones=True,
    )
    return answer.availability_zones[0].zone_name if answer.availability_zones else ""


def _text(when: datetime | None) -> str:
    return "" if when is None else f"{when:%Y-%m-%d %H:%M} UTC"


def check_block_offering(
    api: Api, pool: PoolPlan, offer: OfferPlan, existing: ExistingMachines
) -> Iterator[Diagnostic]:
    """Yield what a capacity block that is to be bought costs, or that there is none.

    A pool whose machines are all there has its block, and buys no other.
    """
    hours = offer.option.buy_hours
    if hours is None or existing.of(pool.name) >= pool.most:
        return
    found = block_offering(api, pool, offer)
    lead = f'pool "{pool.name}": a capacity block of {pool.most} {pool.machine} for {hours} h'
    if found is None:
        yield finding(
            "GC975",
            f"{lead} is not on offer in {offer.zone}",
            hint="request fewer, or a shorter time, or another zone",
        )
        return
    begins = f", from {found.starts}" if found.starts else ""
    yield finding(
        "GC975",
        f"{lead} in {found.zone} costs {found.price} at once{begins} ({found.id})",
        detail="It is not refundable: the money is gone whether the machines run or not.",
        severity=Severity.WARNING,
    )
