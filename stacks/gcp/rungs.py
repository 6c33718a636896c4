"""How a pool's machines are bought, try by try: each market of its ladder in each zone (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from ...schemas.spec import Pool, Rung
from .fabric_networks import InterfacePlan

if TYPE_CHECKING:
    from ...schemas.catalog import ProviderFacts

Market: TypeAlias = Literal["on-demand", "spot", "reservation", "capacity-block", "flex-start"]
ProvisioningModel: TypeAlias = Literal["STANDARD", "SPOT", "FLEX_START", "RESERVATION_BOUND"]
Affinity: TypeAlias = Literal["ANY_RESERVATION", "SPECIFIC_RESERVATION", "NO_RESERVATION"]

_MODELS: dict[Market, ProvisioningModel] = {
    "on-demand": "STANDARD",
    "spot": "SPOT",
    "reservation": "STANDARD",
    "capacity-block": "RESERVATION_BOUND",
    "flex-start": "FLEX_START",
}
_AFFINITIES: dict[Market, Affinity] = {
    "on-demand": "ANY_RESERVATION",
    "spot": "NO_RESERVATION",
    "reservation": "SPECIFIC_RESERVATION",
    "capacity-block": "SPECIFIC_RESERVATION",
    "flex-start": "NO_RESERVATION",
}
DENSE: frozenset[Market] = frozenset({"reservation", "capacity-block", "flex-start"})
"""Markets whose capacity is placed close together already, so that a policy isn't added."""


class RungPlan(msgspec.Struct, frozen=True, kw_only=True):
    """One try: a market in a zone."""

    key: str
    """Stable while the ladder has it: spot-us-central1-a."""
    market: Market
    zone: str
    reservation: str | None = None
    """Reservation to take capacity from, as the spec names it."""
    run_seconds: int | None = None
    """How long a flex-start machine runs before it is deleted."""
    interfaces: tuple[InterfacePlan, ...] = ()

    @property
    def provisioning_model(self) -> ProvisioningModel:
        """What Compute Engine calls the market."""
        return _MODELS[self.market]

    @property
    def affinity(self) -> Affinity:
        """Which reservations its machines may take capacity from."""
        return _AFFINITIES[self.market]

    @property
    def comes_and_goes(self) -> bool:
        """Whether the cloud takes the machine back by itself; it then deletes it."""
        return self.market in {"spot", "flex-start", "capacity-block"}


def rungs(pool: Pool, zones: Sequence[str], facts: ProviderFacts | None) -> list[RungPlan]:
    """Return the tries in order: the first market in every zone, then the next one."""
    longest = None if facts is None else facts.flex_start_seconds
    found: list[RungPlan] = []
    for entry in pool.market or ["on-demand"]:
        found += (_rung(entry, zone, longest) for zone in zones)
    return list(_distinct(found))


def _rung(entry: str | Rung, zone: str, flex_start_seconds: list[int] | None) -> RungPlan:
    if not isinstance(entry, Rung):
        market = entry
        run = flex_start_seconds[1] if market == "flex-start" and flex_start_seconds else None
        return _plan(market, zone, run_seconds=run)
    duration = entry.flex_start
    return _plan(
        entry.market,
        zone,
        reservation=entry.reservation or entry.capacity_block,
        run_seconds=None if duration is None else int(duration.value),
    )


def _plan(
    market: str, zone: str, *, reservation: str | None = None, run_seconds: int | None = None
) -> RungPlan:
    known: dict[str, Market] = {name: name for name in _MODELS}
    return RungPlan(
        key=f"{market}-{zone}",
        market=known.get(market, "on-demand"),
        zone=zone,
        reservation=reservation,
        run_seconds=run_seconds,
    )


def _distinct(found: Iterable[RungPlan]) -> Iterable[RungPlan]:
    """Give the second rung of a key a number: two reservations in one zone."""
    seen: dict[str, int] = {}
    for rung in found:
        seen[rung.key] = seen.get(rung.key, 0) + 1
        number = seen[rung.key]
        yield rung if number == 1 else msgspec.structs.replace(rung, key=f"{rung.key}-{number}")
