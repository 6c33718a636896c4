"""What machines draw, the heat that has to go, the racks that it fills, and the energy of a run.

Rated power is what circuits are built for; while training, nodes draw less, and both are shown. The
hall draws PUE times that. 1 kW of power is 3,412 BTU/h of heat.
"""

from __future__ import annotations

import math
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta

from ...schemas.catalog import Machine, ProviderFacts
from ...schemas.catalog.model.machine import Date, Source
from ...schemas.spec.model import SpecModel
from ...schemas.structure.compose import read_data_file

BTU_PER_KWH = 3412.14
Basis: TypeAlias = Literal["catalog", "similar", "gpus"]
"""Where a node's power is from: the catalog, the vendor's own node with the same GPUs, or the GPUs
alone, where neither is known."""
_FILE = Path(__file__).parent / "data" / "power.yaml"
_KILO = 1000.0
Positive = Annotated[float, Meta(gt=0)]


class System(SpecModel, frozen=True, kw_only=True):
    """A node of the vendor's own."""

    name: str
    gpu: str
    gpus: Annotated[int, Meta(ge=1)]
    rated_w: Positive
    source: Source
    date: Date
    rack_nodes: Annotated[int, Meta(ge=1)] | None = None
    """Nodes of a rack that is one machine, cooled by liquid; None: racks are filled as they fit."""
    unverified: bool = False


class Draw(SpecModel, frozen=True, kw_only=True):
    """What of its rated power a node draws while it trains."""

    most: Positive
    mean: Positive
    source: Source
    date: Date


class Pue(SpecModel, frozen=True, kw_only=True):
    """Power of a hall against that of its computers."""

    value: Annotated[float, Meta(ge=1)]
    source: Source
    date: Date


class Rack(SpecModel, frozen=True, kw_only=True):
    """What a rack is built for."""

    kw: Positive
    air_kw: Positive
    """Most that air carries away."""
    source: Source
    date: Date


class PowerFigures(SpecModel, frozen=True, kw_only=True):
    """The file."""

    systems: list[System]
    draw: Draw
    pue: Pue
    rack: Rack


class Hall(msgspec.Struct, frozen=True, kw_only=True):
    """The user's values for the site; None: the default."""

    pue: float | None = None
    rack_kw: float | None = None
    kg_co2_per_kwh: float | None = None


class Power(msgspec.Struct, frozen=True, kw_only=True):
    """Power, heat, racks and energy of a number of machines, without what joins and stores."""

    gpus_kw: float | None
    """All GPUs at their limit; None: not known."""
    rated_kw: float
    """All nodes at their rated power."""
    basis: Basis
    drawn_kw: float
    """What they draw at most while training, as measured on nodes with H100."""
    hall_kw: float
    """Rated power times PUE: what the hall must deliver."""
    btu_per_h: float
    """Heat of the nodes at their rated power."""
    pue: float
    racks: int
    nodes_a_rack: int
    rack_kw: float
    """Of a full rack, at the nodes' rated power."""
    cooling: Literal["air", "liquid"]
    kwh: float | None
    """Of the run, PUE included; None: its days aren't known."""
    kg_co2: float | None
    """None: the factor of the grid isn't known."""
    sources: tuple[str, ...]


@lru_cache(maxsize=1)
def power_figures() -> PowerFigures:
    """Return the figures that come with gcluster."""
    return read_data_file(_FILE, PowerFigures)


def power(
    machine: Machine,
    nodes: int,
    *,
    hall: Hall,
    days: float | None = None,
    facts: ProviderFacts | None = None,
    region: str | None = None,
) -> Power | None:
    """Return what so many machines draw; None: nothing is known of one.

    Args:
        machine: their type.
        nodes: how many.
        hall: what is known of the place.
        days: how long they run; None: not known.
        facts: of the cloud, for its PUE and the carbon of its regions.
        region: of the cloud.
    """
    figures = power_figures()
    found = _node_w(machine, figures)
    if found is None:
        return None
    watts, basis, source, whole = found
    gpu = machine.gpu
    gpus = None if gpu is None or gpu.power_w is None else gpu.power_w * gpu.count
    pue, pue_source = _pue(hall, facts, figures)
    rated = watts * nodes / _KILO
    room = hall.rack_kw or figures.rack.kw
    together = whole or max(1, math.floor(room / (watts / _KILO)))
    drawn = rated * (figures.draw.most if basis != "gpus" else 1.0)
    kwh = None
    if days is not None:
        mean = figures.draw.mean if basis != "gpus" else 1.0
        kwh = rated * mean * pue * days * 24
    factor = hall.kg_co2_per_kwh
    if factor is None and facts is not None:
        here = (each for each in facts.regions if each.name == region)
        factor = next((each.kg_co2_per_kwh for each in here), None)
    full = min(together, nodes) * watts / _KILO
    return Power(
        gpus_kw=None if gpus is None else gpus * nodes / _KILO,
        rated_kw=rated,
        basis=basis,
        drawn_kw=drawn,
        hall_kw=rated * pue,
        btu_per_h=rated * BTU_PER_KWH,
        pue=pue,
        racks=math.ceil(nodes / together),
        nodes_a_rack=together,
        rack_kw=full,
        cooling="liquid" if whole or full > figures.rack.air_kw else "air",
        kwh=kwh,
        kg_co2=None if kwh is None or factor is None else kwh * factor,
        sources=(source, f"{figures.draw.source}, {figures.draw.date}", pue_source),
    )


def _node_w(machine: Machine, figures: PowerFigures) -> tuple[float, Basis, str, int | None] | None:
    """Return a node's rated power in W, where it is from, and the nodes of a rack that is one."""
    gpu = machine.gpu
    key = (gpu.model, gpu.count) if gpu else None
    like = next((each for each in figures.systems if (each.gpu, each.gpus) == key), None)
    whole = like.rack_nodes if like else None
    own = f"{machine.source}, {machine.date}"
    if machine.power_w is not None:
        return machine.power_w, "catalog", own, whole
    if like is not None:
        return like.rated_w, "similar", f"as {like.name}: {like.source}, {like.date}", whole
    if gpu is None or gpu.power_w is None:
        return None
    return gpu.power_w * gpu.count, "gpus", own, None


def _pue(hall: Hall, facts: ProviderFacts | None, figures: PowerFigures) -> tuple[float, str]:
    if hall.pue is not None:
        return hall.pue, "PUE as given"
    if facts is not None and facts.pue is not None:
        cited = facts.sources.get("pue")
        return facts.pue, f"{cited.source}, {cited.date}" if cited else f"PUE of {facts.name}"
    return figures.pue.value, f"{figures.pue.source}, {figures.pue.date}"
