"""What nodes draw from the grid, and the carbon of it. What the catalog doesn't know is None."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from .spec import Site

if TYPE_CHECKING:
    from .catalog import Catalog, Machine

Basis: TypeAlias = Literal["node", "gpus"]
"""What a power is that of: the whole node, or its GPUs alone where that is all that is known."""
_KILO = 1000


class Power(msgspec.Struct, frozen=True, kw_only=True):
    """What the machines of a pool draw at most, and the carbon of it."""

    kw_now: float | None
    """Of the machines that are always there."""
    kw: float | None
    """Every machine running."""
    basis: Basis | None
    """None where the power is not known."""
    pue: float | None
    """Already in the figures; None: not known, and they are without cooling and losses."""
    kg_co2_per_hour: float | None
    """Every machine running, in kg CO2e."""


def power_of(
    machine: Machine | None, site: Site, catalog: Catalog, *, least: int, count: int
) -> Power:
    """Return the power of so many machines of a type; simulated ones have none of their own.

    Args:
        machine: the machine type; None: the pool names none.
        site: where they stand; its provider's PUE and its region's carbon intensity count.
        catalog: has both.
        least: machines that are always there.
        count: most machines at once.
    """
    watts, basis = (None, None) if site.is_made_here else _watts(machine)
    facts = catalog.providers.get(site.provider)
    pue = None if facts is None else facts.pue
    kilowatts = None if watts is None else watts / _KILO * (pue or 1.0)
    kg = carbon_intensity(site, catalog)
    return Power(
        kw_now=None if kilowatts is None else kilowatts * least,
        kw=None if kilowatts is None else kilowatts * count,
        basis=basis,
        pue=pue,
        kg_co2_per_hour=None if kilowatts is None or kg is None else kilowatts * count * kg,
    )


def carbon_intensity(site: Site, catalog: Catalog) -> float | None:
    """Return kg CO2e per kWh at a site; None where it has no region or that isn't known."""
    facts = catalog.providers.get(site.provider)
    region = getattr(site, "region", None)
    here = (each for each in (facts.regions if facts else ()) if each.name == region)
    return next((each.kg_co2_per_kwh for each in here), None)


def _watts(machine: Machine | None) -> tuple[float | None, Basis | None]:
    """Return what a node draws in W: as known, else its GPUs at their limit."""
    if machine is None:
        return None, None
    if machine.power_w is not None:
        return machine.power_w, "node"
    gpu = machine.gpu
    if gpu is None or gpu.power_w is None:
        return None, None
    return gpu.power_w * gpu.count, "gpus"
