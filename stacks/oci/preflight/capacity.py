"""Whether OCI has what a site needs: limits, machines in a domain, reservations, prices."""

from __future__ import annotations

from collections.abc import Iterator

from ....schemas.catalog import Catalog
from ....schemas.cost.quotas import QuotaNeed, still_needed
from ....schemas.diagnostics import Diagnostic, Severity
from ....schemas.spec import ClusterSpec
from ...pulumi.preflight import ExistingMachines, finding
from ..api import Answer, Api
from ..plan.types import OfferPlan, PoolPlan, SitePlan


class _Domain(Answer, frozen=True):
    name: str


class _Availability(Answer, frozen=True):
    used: int | None = None
    available: int | None = None
    effective_quota_value: float | None = None


class _ShapeAvailability(Answer, frozen=True):
    availability_status: str = ""
    available_count: int | None = None


class _Report(Answer, frozen=True):
    shape_availabilities: tuple[_ShapeAvailability, ...] = ()


class _ReservedShape(Answer, frozen=True):
    instance_shape: str = ""
    reserved_count: int = 0
    used_count: int = 0


class Reservation(Answer, frozen=True):
    """A capacity reservation, from GetComputeCapacityReservation."""

    id: str
    availability_domain: str = ""
    lifecycle_state: str = ""
    instance_reservation_configs: tuple[_ReservedShape, ...] = ()

    def free(self, shape: str) -> int:
        """Return how many machines of a shape are reserved and not in use."""
        of = [part for part in self.instance_reservation_configs if part.instance_shape == shape]
        return sum(part.reserved_count - part.used_count for part in of)


def domain_name(api: Api, plan: SitePlan, number: int) -> str:
    """Return the name of an availability domain in this tenancy: Uocm:US-ASHBURN-AD-2."""
    kind, call = tuple[_Domain, ...], "list_availability_domains"
    names = [domain.name for domain in api.call(kind, "identity", call, plan.tenancy)]
    return next((name for name in names if name.endswith(f"-{number}")), "")


def check_domain(api: Api, plan: SitePlan, number: int) -> Iterator[Diagnostic]:
    """Yield a finding where the region has no such availability domain."""
    if not domain_name(api, plan, number):
        yield finding("GC973", f"{plan.region} has no availability domain {number}")


def check_limit(
    api: Api,
    plan: SitePlan,
    spec: ClusterSpec,
    catalog: Catalog,
    *,
    need: QuotaNeed,
    existing: ExistingMachines,
) -> Iterator[Diagnostic]:
    """Yield a finding for each availability domain whose limit is below what is still needed.

    Limits are OCI's, quotas the compartment's administrator's: what is left counts both.
    """
    missing = still_needed(spec, catalog, need, existing.counts())
    pools = [pool for pool in plan.pools if pool.name in need.pools]
    for number in sorted({offer.domain for pool in pools for offer in pool.offers}):
        found = api.call(
            _Availability,
            "limits",
            "get_resource_availability",
            "compute",
            need.code,
            plan.tenancy,
            availability_domain=domain_name(api, plan, number),
        )
        if found.available is not None and found.available < missing:
            first = any(pool.offers[0].domain == number for pool in pools)
            yield finding(
                "GC972",
                f"limit {need.code} leaves {found.available} {need.unit} in availability domain "
                f"{number} of {plan.region}, pools {', '.join(need.pools)} need {missing} more",
                severity=Severity.ERROR if first else Severity.WARNING,
                detail=f"{found.used} are in use.",
                hint="request more on the tenancy's page Limits, Quotas and Usage, or lower the "
                "count",
            )


def check_capacity(
    api: Api, plan: SitePlan, pool: PoolPlan, offer: OfferPlan, existing: ExistingMachines
) -> Iterator[Diagnostic]:
    """Yield the capacity report's objections to an offer; requesting one creates nothing."""
    report = api.call(
        _Report,
        "compute",
        "create_compute_capacity_report",
        {
            "compartmentId": plan.tenancy,
            "availabilityDomain": domain_name(api, plan, offer.domain),
            "shapeAvailabilities": [_wanted_shape(pool)],
        },
    )
    missing = len(pool.nodes) - existing.of(pool.name)
    for found in report.shape_availabilities:
        lead = f'pool "{pool.name}": {pool.machine} in availability domain {offer.domain}'
        if found.availability_status == "HARDWARE_NOT_SUPPORTED":
            yield finding("GC973", f"{lead} is not offered")
        elif found.availability_status == "OUT_OF_HOST_CAPACITY" and missing > 0:
            yield finding(
                "GC973",
                f"{lead}: out of host capacity now",
                severity=Severity.WARNING,
                hint="name another domain or market for the pool, or try again later",
            )
        elif found.available_count is not None and found.available_count < missing:
            yield finding(
                "GC973",
                f"{lead}: {found.available_count} to be had now, {missing} are still to be made",
                severity=Severity.WARNING,
            )


def _wanted_shape(pool: PoolPlan) -> dict[str, object]:
    requested: dict[str, object] = {"instanceShape": pool.shape.name}
    if pool.shape.ocpus is not None:
        size = {"ocpus": pool.shape.ocpus, "memoryInGBs": pool.shape.memory_gib}
        requested["instanceShapeConfig"] = size
    return requested


def reservation(api: Api, name: str) -> Reservation | None:
    """Return a capacity reservation; None where this login sees none of this OCID."""
    return api.find(Reservation, "compute", "get_compute_capacity_reservation", name)


def check_reservation(
    api: Api, plan: SitePlan, pool: PoolPlan, offer: OfferPlan, existing: ExistingMachines
) -> Iterator[Diagnostic]:
    """Yield what keeps a reservation from serving a pool."""
    wanted = offer.option.reservation or ""
    lead = f'pool "{pool.name}": reservation {wanted}'
    found = reservation(api, wanted)
    if found is None:
        yield finding("GC974", f"{lead} is not in {plan.region}, or not for this login")
        return
    if found.lifecycle_state != "ACTIVE":
        yield finding("GC974", f"{lead} is {found.lifecycle_state.lower()}")
    where = domain_name(api, plan, offer.domain)
    if found.availability_domain != where:
        yield finding("GC974", f"{lead} is in {found.availability_domain}, not {where}")
    missing = len(pool.nodes) - existing.of(pool.name)
    if found.free(pool.shape.name) < missing:
        yield finding(
            "GC974",
            f"{lead} has {found.free(pool.shape.name)} {pool.shape.name} free, {missing} are still "
            "to be made",
        )
