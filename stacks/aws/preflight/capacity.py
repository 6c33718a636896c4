"""Whether AWS has the machines of a site: zones, reservations, quotas."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import (
    UTC,
    datetime,  # msgspec reads the annotation
    timedelta,
)

import msgspec

from ....schemas.catalog import Catalog
from ....schemas.cost.quotas import QuotaNeed, still_needed
from ....schemas.diagnostics import Diagnostic, Severity
from ....schemas.spec import ClusterSpec
from ...pulumi.preflight import ExistingMachines, finding
from ..api import Answer, Api, filters
from ..plan.types import OfferPlan, PoolPlan


class _Offering(Answer, frozen=True):
    location: str


class _Offerings(Answer, frozen=True):
    instance_type_offerings: tuple[_Offering, ...] = ()


class Reservation(Answer, frozen=True):
    """A capacity reservation or block, from DescribeCapacityReservations."""

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


class Reservations(Answer, frozen=True):
    """What DescribeCapacityReservations answers."""

    capacity_reservations: tuple[Reservation, ...] = ()


def check_zones(api: Api, pool: PoolPlan) -> Iterator[Diagnostic]:
    """Yield the zones of a pool that don't offer its machine type."""
    wanted = filters(instance_type=pool.machine)
    answer = api.call(
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


def reservation(api: Api, name: str) -> Reservation | None:
    """Return a capacity reservation or block; None where the region of this account has none."""
    answer = api.find(
        Reservations,
        "ec2",
        "describe_capacity_reservations",
        missing="InvalidCapacityReservationId",
        CapacityReservationIds=[name],
    )
    return None if answer is None else next(iter(answer.capacity_reservations), None)


def check_reservation(
    api: Api, pool: PoolPlan, offer: OfferPlan, existing: ExistingMachines
) -> Iterator[Diagnostic]:
    """Yield what keeps a reservation or capacity block from serving a pool."""
    wanted = offer.option.reservation
    if wanted is None:
        return
    found = reservation(api, wanted)
    lead = f'pool "{pool.name}": reservation {wanted}'
    if found is None:
        yield finding("GC974", f"{lead} is not in {api.region} of this account")
        return
    mismatches = list(_mismatches(found, pool, offer))
    for each in mismatches:
        yield finding("GC974", f"{lead} {each}")
    missing = len(pool.nodes) - existing.of(pool.name)
    if not mismatches and found.available_instance_count < missing:
        yield finding(
            "GC974",
            f"{lead} has {found.available_instance_count} machines free, {missing} are still to "
            "be made",
            severity=Severity.WARNING,
            detail="What uses it may be this cluster's own elastic nodes, or another cluster.",
        )


def _mismatches(found: Reservation, pool: PoolPlan, offer: OfferPlan) -> Iterator[str]:
    kind = "capacity-block" if offer.option.market == "capacity-block" else "default"
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
    elif not group and offer.placement is not None:
        named = offer.placement.removeprefix("existing-")
        yield f"is in no placement group, so not in {named}; leave placement out"


_USAGE_PERIOD = timedelta(minutes=30)
"""Usage is published every minute (CloudWatch User Guide, "usage metrics", November 2026)."""


class _UsageMetric(Answer, frozen=True):
    metric_namespace: str = ""
    metric_name: str = ""
    metric_dimensions: dict[str, str] = msgspec.field(default_factory=dict)


class _QuotaValue(Answer, frozen=True):
    value: float
    quota_name: str = ""
    usage_metric: _UsageMetric = _UsageMetric()


class _Quota(Answer, frozen=True):
    quota: _QuotaValue


class _Point(Answer, frozen=True):
    timestamp: datetime
    maximum: float = 0.0


class _Points(Answer, frozen=True):
    datapoints: tuple[_Point, ...] = ()


def check_limit(api: Api, need: QuotaNeed) -> Iterator[Diagnostic]:
    """Yield a finding where a quota is below what the spec takes at its largest."""
    quota = _quota(api, need.code)
    if quota.value >= need.amount:
        return
    yield finding(
        "GC972",
        f"quota {need.code} ({quota.quota_name}) is {quota.value:g} {need.unit}, "
        f"pools {', '.join(need.pools)} need {need.amount}",
        detail="What already runs in the account counts against it too.",
        hint=_increase_hint(api, need.code, need.amount),
    )


def check_room(
    api: Api, spec: ClusterSpec, catalog: Catalog, need: QuotaNeed, existing: ExistingMachines
) -> Iterator[Diagnostic]:
    """Yield a warning where a quota is large enough, but others use what the spec still needs.

    Running machines of this cluster are part of the usage, and not needed again. Where AWS
    publishes no usage of the quota there is no warning.
    """
    missing = still_needed(spec, catalog, need, existing.counts())
    quota = _quota(api, need.code)
    if not missing or quota.value < need.amount:  # the limit itself is reported by check_limit
        return
    used = _used(api, quota.usage_metric)
    if used is None or quota.value - used >= missing:
        return
    yield finding(
        "GC972",
        f"quota {need.code} ({quota.quota_name}): {used:g} of {quota.value:g} are in use, "
        f"{missing} more are needed",
        severity=Severity.WARNING,
        detail="What is in use is CloudWatch's figure of the last minutes, for the whole account.",
        hint=_increase_hint(api, need.code, int(used) + missing),
    )


def _quota(api: Api, code: str) -> _QuotaValue:
    return api.call(
        _Quota, "service-quotas", "get_service_quota", ServiceCode="ec2", QuotaCode=code
    ).quota


def _used(api: Api, metric: _UsageMetric) -> float | None:
    """Return what CloudWatch last counted; None: it counts nothing of the kind."""
    if not metric.metric_name:
        return None
    now = datetime.now(UTC)
    points = api.call(
        _Points,
        "cloudwatch",
        "get_metric_statistics",
        Namespace=metric.metric_namespace,
        MetricName=metric.metric_name,
        Dimensions=[{"Name": k, "Value": v} for k, v in metric.metric_dimensions.items()],
        StartTime=now - _USAGE_PERIOD,
        EndTime=now,
        Period=300,
        Statistics=["Maximum"],
    ).datapoints
    newest = max(points, key=lambda point: point.timestamp, default=None)
    return None if newest is None else newest.maximum


def _increase_hint(api: Api, code: str, amount: int) -> str:
    return (
        "aws service-quotas request-service-quota-increase --service-code ec2 "
        f"--quota-code {code} --desired-value {amount} --region {api.region}"
    )
