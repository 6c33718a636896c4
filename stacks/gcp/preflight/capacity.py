"""Whether Google has what a pool needs: quota, machine types in the zones, reservations, prices."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ....schemas.catalog import Catalog
from ....schemas.cost.quotas import QuotaNeed, still_needed
from ....schemas.diagnostics import Diagnostic, Severity
from ....schemas.spec import ClusterSpec
from ...pulumi.preflight import ExistingMachines, finding
from ..api import Answer, Api
from ..plan.layout import SitePlan
from ..plan.pools import OfferPlan, PoolPlan, reservation_name

_EVERYWHERE = "GPUS_ALL_REGIONS"
"""The one quota of GPUs that belongs to the project and not to a region."""


class _Quota(Answer, frozen=True):
    metric: str
    limit: float
    usage: float = 0


class _Quotas(Answer, frozen=True):
    quotas: tuple[_Quota, ...] = ()


class _Properties(Answer, frozen=True):
    machine_type: str = ""


class _Count(Answer, frozen=True):
    count: str = "0"
    in_use_count: str = "0"
    instance_properties: _Properties = _Properties()

    @property
    def free(self) -> int:
        """Unused machines."""
        return int(self.count) - int(self.in_use_count)


class Reservation(Answer, frozen=True):
    """Capacity that is reserved."""

    name: str
    status: str = ""
    deployment_type: str = ""
    """DENSE: blocks of machines close together."""
    reservation_mode: str = ""
    """CALENDAR: it was reserved for a time, at whose end its machines end."""
    resource_policies: dict[str, str] = msgspec.field(default_factory=dict)
    """Placement policies that it was made with."""
    specific_reservation: _Count = _Count()

    @property
    def is_bound(self) -> bool:
        """Whether its machines must be RESERVATION_BOUND."""
        return self.deployment_type == "DENSE" or self.reservation_mode == "CALENDAR"


def check_limit(api: Api, need: QuotaNeed) -> Iterator[Diagnostic]:
    """Yield a finding where the project may not have that much, or the limit is unknown."""
    found = _quota(api, need)
    where = f"quota {need.code} in {need.region}"
    if found is None:
        yield finding(
            "GC982",
            f"{where} is not among those that Compute Engine reports; {need.amount} {need.unit} "
            "are needed",
            severity=Severity.WARNING,
            hint="look on the project's page IAM & Admin, Quotas",
        )
    elif found.limit < need.amount:
        yield finding(
            "GC982",
            f"{where} is {found.limit:g}, the pools {', '.join(need.pools)} need {need.amount}",
            hint="request more on the project's page IAM & Admin, Quotas, or lower the count",
        )


def check_room(
    api: Api, spec: ClusterSpec, catalog: Catalog, need: QuotaNeed, existing: ExistingMachines
) -> Iterator[Diagnostic]:
    """Yield a warning where a quota is large enough, but others use what the spec still needs.

    Machines of this cluster that run are among what is used, and are needed no more.
    """
    found = _quota(api, need)
    if found is None or found.limit < need.amount:  # reported by check_limit
        return
    missing = still_needed(spec, catalog, need, existing.counts())
    if found.limit - found.usage < missing:
        yield finding(
            "GC982",
            f"quota {need.code} in {need.region}: {found.usage:g} of {found.limit:g} are in use, "
            f"{missing} more are needed",
            severity=Severity.WARNING,
            hint="request more on the project's page IAM & Admin, Quotas, or lower the count",
        )


def _quota(api: Api, need: QuotaNeed) -> _Quota | None:
    path = api.in_project() if need.code == _EVERYWHERE else api.in_region(need.region)
    quotas = {quota.metric: quota for quota in api.call(_Quotas, path).quotas}
    return quotas.get(need.code)


def check_zone(api: Api, pool: PoolPlan, zone: str) -> Iterator[Diagnostic]:
    """Yield a finding where a zone has no such machine type."""
    if api.find(Answer, f"{api.in_zone(zone)}/machineTypes/{pool.machine}") is None:
        first = pool.offers[0].zone == zone
        yield finding(
            "GC983",
            f'pool "{pool.name}": zone {zone} has no {pool.machine}',
            severity=Severity.ERROR if first else Severity.WARNING,
            hint=f"gcluster machines show {pool.machine} shows the known zones",
        )


def reservation(api: Api, option: OfferPlan) -> Reservation | None:
    """Return the reservation of an option; None: its zone has none of this name."""
    named = reservation_name(option.reservation or "")
    project = named.project or api.project
    path = f"projects/{project}/zones/{option.zone}/reservations/{named.name}"
    return api.find(Reservation, path)


def check_reservation(
    api: Api, pool: PoolPlan, option: OfferPlan, existing: ExistingMachines
) -> Iterator[Diagnostic]:
    """Yield what keeps a reservation from serving a pool: missing, of another type, too small."""
    lead = f'reservation {option.reservation} of pool "{pool.name}"'
    found = reservation(api, option)
    if found is None:
        yield finding("GC984", f"{lead} is not in {option.zone}")
        return
    kind = found.specific_reservation.instance_properties.machine_type.rpartition("/")[2]
    if kind and kind != pool.machine:
        yield finding("GC984", f"{lead} is for {kind}, not {pool.machine}")
    if found.status not in {"READY", ""}:
        yield finding("GC984", f"{lead} is {found.status.lower()}, not ready")
        return
    yield from _unbound(lead, found, pool, option)
    missing = len(pool.nodes) - existing.of(pool.name)
    if found.specific_reservation.free < missing:
        yield finding(
            "GC984",
            f"{lead} has {found.specific_reservation.free} machines free, {missing} are still to "
            "be made",
            severity=Severity.WARNING,
            detail="What uses it may be this cluster's own elastic nodes, or another cluster.",
        )


def _unbound(
    lead: str, found: Reservation, pool: PoolPlan, option: OfferPlan
) -> Iterator[Diagnostic]:
    """Yield what keeps machines out of a ready reservation: model and placement.

    Cluster Toolkit's slurm-gcp decides by the same fields (resume.py, November 2026): dense and
    calendar ones need RESERVATION_BOUND, policies are the reservation's own, and plain ones take
    none.
    """
    if found.is_bound and option.provisioning_model != "RESERVATION_BOUND":
        kind = "is dense" if found.deployment_type == "DENSE" else "is of calendar mode"
        yield finding(
            "GC984",
            f"{lead} {kind}: its machines must be bound to it",
            hint=f"write market: [{{capacity_block: {option.reservation}}}]",
        )
    own = [policy.rpartition("/")[2] for policy in found.resource_policies.values()]
    named = (pool.placement.existing or "").rpartition("/")[2]
    if own and named not in own:
        yield finding(
            "GC984",
            f"{lead} was made with placement policy {own[0]}, which its machines must carry",
            hint=f"write placement: {own[0]}",
        )
    elif named and not own and not found.is_bound:
        yield finding(
            "GC984",
            f"{lead} is a plain one, which takes no placement policy such as {named}",
            hint="leave placement out",
        )


def check_price(plan: SitePlan, pool: PoolPlan, catalog: Catalog) -> Iterator[Diagnostic]:
    """Yield what a machine costs on each market of the fallback list, with source and age.

    Google's price list is a catalog of parts without names of machine types, so this is the
    catalog's figure without a query.
    """
    machine = catalog.machines.get(pool.machine)
    for market in dict.fromkeys(option.market for option in pool.offers):
        price = None if machine is None else machine.price(market, plan.region)
        if price is not None:
            yield finding(
                "GC987",
                f"{pool.machine} is {price.usd_per_hour:g} USD an hour ({market})",
                severity=Severity.NOTE,
                detail=f"{price.source}, {price.date}",
            )
