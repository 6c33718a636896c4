"""Machine types selected by GPU, cloud, fabric, region and market, in an order."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from ..diagnostics import closest
from .load import Catalog
from .model.family import Family
from .model.machine import Machine, Market, Price

Order: TypeAlias = Literal["price", "gpus", "memory", "name"]
_SHORT = {"infiniband-": "ib-", "gpudirect-": "", "gib-metal": "gib-bm"}
"""How the beginnings of fabric names are cut short: ib-ndr, tcpxo."""
_SHORT_PLACES = {"bare-metal": "metal", "simulated": "sim"}


class MachineFilter(msgspec.Struct, frozen=True, kw_only=True):
    """What is looked for; None: all."""

    gpu: str | None = None
    """Model in any case, with the number in a node if that matters: h100, 8xh100."""
    cloud: str | None = None
    fabric: str | None = None
    region: str | None = None
    market: Market | None = None


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """A machine type as it can be had: where, and for how much."""

    machine: Machine
    where: str
    """Cloud, or the provider of one's own machines; simulated sites are not named."""
    price: Price | None
    """Lowest known one in the market and region that are looked for."""

    @property
    def usd_per_gpu_hour(self) -> float | None:
        """Price of one GPU; None where it has none or the price isn't known."""
        gpu = self.machine.gpu
        return self.price.usd_per_hour / gpu.count if self.price and gpu else None

    @property
    def fabric_gbps(self) -> float | None:
        """Bandwidth of the NICs for the GPUs' traffic in Gb/s, one direction."""
        rate = self.machine.fabric_gbytes_per_s
        return None if rate is None else rate * 8


class UnknownWord(NamedTuple):
    """A word that nothing in the catalog is called."""

    option: str
    word: str
    near: str | None
    known: list[str]


def places(machine: Machine) -> tuple[str, ...]:
    """Return the clouds and providers of a machine type, simulated sites last."""
    sites = sorted(machine.sites, key=lambda site: site == "simulated")
    return (machine.cloud, *sites) if machine.cloud else tuple(sites)


def offers(catalog: Catalog, wanted: MachineFilter, order: Order | None = None) -> list[Offer]:
    """Return the machine types that fit.

    Args:
        catalog: has them.
        wanted: what they must be. A region leaves out what is known not to be offered there.
        order: price and name count up, gpus (of a node) and memory (of all GPUs) down; what isn't
            known comes late, and simulated machines last. Default: by place, then by name.
    """
    found = [
        Offer(machine=machine, where=places(machine)[0], price=_price(machine, wanted))
        for machine in catalog.machines.values()
        if _fits(catalog, machine, wanted)
    ]
    return sorted(found, key=_key(order))


def families_for(catalog: Catalog, wanted: MachineFilter) -> list[Family]:
    """Return the families of CPU machines that fit, by place and name: none for a GPU."""
    if wanted.gpu is not None or wanted.region is not None:
        return []
    fitting = [
        family
        for family in catalog.families.values()
        if (wanted.cloud is None or any(_is_place(wanted.cloud, place) for place in family.sites))
        and (wanted.fabric is None or (family.fabric and _same(wanted.fabric, family.fabric)))
        and (wanted.market is None or wanted.market in (family.markets or ()))
    ]
    return sorted(fitting, key=lambda family: (family.sites[0], family.name))


def unknown_words(catalog: Catalog, wanted: MachineFilter) -> Iterator[UnknownWord]:
    """Yield the words that no machine type, fabric or region is called."""
    machines = list(catalog.machines.values())
    known: dict[str, tuple[str | None, set[str]]] = {
        "gpu": (_model(wanted.gpu), {m.gpu.model for m in machines if m.gpu}),
        "cloud": (wanted.cloud, {place for m in machines for place in places(m)}),
        "fabric": (wanted.fabric, set(catalog.fabrics)),
    }
    if wanted.region is not None:
        facts = catalog.providers.values()
        known["region"] = wanted.region, {region.name for each in facts for region in each.regions}
    for option, (word, options) in known.items():
        is_it = _is_place if option == "cloud" else _same
        if word is not None and not any(is_it(word, name) for name in options):
            near = closest(word.upper() if option == "gpu" else word, options)
            yield UnknownWord(option, word, near, sorted(options))


def short_fabric(name: str) -> str:
    """Return a fabric's name cut short for tables; `MachineFilter.fabric` may be written so too."""
    begin = next((begin for begin in _SHORT if name.startswith(begin)), "")
    return _SHORT.get(begin, "") + name.removeprefix(begin)


def short_place(name: str) -> str:
    """Return a place's name cut short for tables; `MachineFilter.cloud` may be written so too."""
    return _SHORT_PLACES.get(name, name)


def _is_place(word: str, name: str) -> bool:
    return word.casefold() in {name, short_place(name)}


def _same(word: str, name: str) -> bool:
    return word.casefold() in {name.casefold(), short_fabric(name).casefold()}


def _model(word: str | None) -> str | None:
    """Return the model in "8xH100"."""
    return None if word is None else _counted(word)[1]


def _counted(word: str) -> tuple[int | None, str]:
    match = re.fullmatch(r"([0-9]{1,3})\s*[xX]\s*(.+)", word.strip())
    return (int(match[1]), match[2]) if match else (None, word.strip())


def _fits(catalog: Catalog, machine: Machine, wanted: MachineFilter) -> bool:
    if wanted.gpu is not None:
        count, model = _counted(wanted.gpu)
        gpu = machine.gpu
        if gpu is None or not _same(model, gpu.model) or count not in {None, gpu.count}:
            return False
    return (
        (wanted.cloud is None or any(_is_place(wanted.cloud, place) for place in places(machine)))
        and (
            wanted.fabric is None
            or (machine.fabric is not None and _same(wanted.fabric, machine.fabric))
        )
        and (wanted.market is None or wanted.market in (machine.markets or ()))
        and (wanted.region is None or _may_be_in(catalog, machine, wanted.region))
    )


def _may_be_in(catalog: Catalog, machine: Machine, region: str) -> bool:
    """Say whether a place of the machine has the region, and its zones are in it or not known."""
    facts = [catalog.providers[place] for place in places(machine) if place in catalog.providers]
    here = next((known for each in facts for known in each.regions if known.name == region), None)
    if here is None:
        return False
    zones = machine.zones
    return zones is None or any(z in here.zones or z.startswith(f"{region}-") for z in zones)


def _price(machine: Machine, wanted: MachineFilter) -> Price | None:
    fitting = [
        price
        for price in machine.prices
        if price.market == (wanted.market or "on-demand")
        and (wanted.region is None or price.region in {None, wanted.region})
    ]
    return min(fitting, key=lambda price: price.usd_per_hour, default=None)


def _by_price(offer: Offer) -> float:
    return offer.price.usd_per_hour if offer.price else float("inf")


def _by_gpus(offer: Offer) -> float:
    return -(offer.machine.gpu.count if offer.machine.gpu else 0)


def _by_memory(offer: Offer) -> float:
    gpu = offer.machine.gpu
    return -(gpu.count * gpu.memory_gib if gpu else 0)


_ORDERS: dict[Order, Callable[[Offer], float]] = {
    "price": _by_price,
    "gpus": _by_gpus,
    "memory": _by_memory,
}


def _key(order: Order | None) -> Callable[[Offer], tuple[bool, float | str, str]]:
    """Return what to sort by; where figures are compared, simulated machines come last."""
    if order is None:
        return lambda offer: (False, offer.where, offer.machine.name)
    figure = _ORDERS.get(order)
    if figure is None:
        return lambda offer: (False, "", offer.machine.name)
    return lambda offer: (offer.machine.simulated, figure(offer), offer.machine.name)
