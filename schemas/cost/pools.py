"""What pools and storage cost an hour, and the power that they take."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias, cast

import msgspec

from ..catalog import Catalog, Citation, LustreOffer, Machine, Market, Price
from ..checks.storage.file_services import service_offers
from ..checks.storage.lustre_sizes import offers
from ..derived.hostlist import expand
from ..derived.storage import is_on_volume, volume_gib
from ..spec import (
    ClusterSpec,
    FileService,
    LustreStorage,
    NfsStorage,
    ObjectStorage,
    Pool,
    Site,
    SizedService,
)
from ..spec.sites.purchase import Option
from ..spec.sites.site import CloudSite

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
        site: where they are; its provider's PUE and its region's carbon intensity count.
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


_GIB = 2.0**30
_MB = 1e6


class StorageCost(msgspec.Struct, frozen=True, kw_only=True):
    """One file system or bucket that is made at a cloud and billed by its size."""

    name: str
    site: str | None
    type: str
    gib: float | None
    """Size to make; None: as large as what is put in."""
    usd_per_month: float | None
    """None: the price is not known, or the size isn't."""
    citation: Citation | None = None
    """Where the price comes from."""


def storage_costs(spec: ClusterSpec, catalog: Catalog) -> Iterator[StorageCost]:
    """Yield the managed storage that the spec makes; what exists already is not of its making."""
    for name, storage in spec.storage.items():
        site = spec.sites.get(storage.site) if storage.site is not None else None
        if isinstance(storage, ObjectStorage) and storage.create:
            yield StorageCost(
                name=name, site=storage.site, type="object", gib=None, usd_per_month=None
            )
        elif (
            isinstance(storage, LustreStorage)
            and isinstance(site, CloudSite)
            and storage.capacity is not None
            and storage.existing is None
        ):
            yield _lustre(name, storage, site, catalog)
        elif isinstance(storage, FileService) and storage.is_made:
            yield _service(name, storage, spec, catalog)
        elif isinstance(storage, NfsStorage) and is_on_volume(spec, name):
            yield _volume(name, storage, spec, catalog)


def _volume(name: str, storage: NfsStorage, spec: ClusterSpec, catalog: Catalog) -> StorageCost:
    site = spec.pools[storage.server or ""].site
    facts, gib = catalog.providers.get(spec.sites[site].provider), volume_gib(storage)
    disk = None if facts is None else facts.data_disk
    return StorageCost(
        name=name,
        site=site,
        type="nfs",
        gib=gib,
        usd_per_month=None if disk is None else gib * disk.usd_per_gib_month,
        citation=None if disk is None else Citation(source=disk.source, date=disk.date),
    )


def _service(name: str, storage: FileService, spec: ClusterSpec, catalog: Catalog) -> StorageCost:
    """Return what a file service's file system costs; EFS is billed by what is in it."""
    facts = catalog.providers.get(spec.sites[storage.site].provider)
    type_ = str(type(storage).__struct_config__.tag)
    cost = StorageCost(name=name, site=storage.site, type=type_, gib=None, usd_per_month=None)
    if facts is None or not isinstance(storage, SizedService) or storage.capacity is None:
        return cost
    gib = storage.capacity.value / _GIB
    cost = msgspec.structs.replace(cost, gib=gib)
    prices = {offer.usd_per_gib_month: offer for offer in service_offers(storage, facts)}
    if len(prices) != 1 or None in prices:
        return cost
    [(usd, offer)] = prices.items()
    return msgspec.structs.replace(
        cost,
        usd_per_month=None if usd is None else gib * usd,
        citation=Citation(source=offer.source, date=offer.date),
    )


def _lustre(name: str, storage: LustreStorage, site: CloudSite, catalog: Catalog) -> StorageCost:
    gib = None if storage.capacity is None else storage.capacity.value / _GIB
    offer = _offer(storage, site, catalog)
    storage_cost = StorageCost(
        name=name, site=storage.site, type="lustre", gib=gib, usd_per_month=None
    )
    if offer is None or offer.usd_per_gib_month is None or gib is None:
        return storage_cost
    return msgspec.structs.replace(
        storage_cost,
        usd_per_month=gib * offer.usd_per_gib_month,
        citation=Citation(source=offer.source, date=offer.date),
    )


def _offer(storage: LustreStorage, site: CloudSite, catalog: Catalog) -> LustreOffer | None:
    """Return the kind of file system that the spec requests."""
    facts = catalog.providers.get(site.provider)
    requested = None if storage.throughput is None else storage.throughput.value / _MB
    fitting = [
        offer
        for offer in ([] if facts is None else offers(storage, facts))
        if requested is None
        or offer.throughput_mb_per_s_per_tib is None
        or math.isclose(offer.throughput_mb_per_s_per_tib, requested)
    ]
    return fitting[0] if len(fitting) == 1 else None


HOURS_PER_MONTH = 730
"""Hours a month is billed as: 365 days * 24 h / 12."""

_ON_DEMAND_AT_MOST: frozenset[str] = frozenset({"spot", "reservation", "flex-start"})
"""Sold at the on-demand price or below it: spot and flex-start are discounts on it, and capacity
reservations are billed at its rate (EC2 User Guide; Compute Engine documentation)."""


class OptionCost(msgspec.Struct, frozen=True, kw_only=True):
    """What one node costs on one option of a pool's market."""

    market: str
    usd_per_hour: float | None
    is_bound: bool = False
    """The price isn't the option's own: it costs at most this."""


class Quote(NamedTuple):
    """What the catalog says of one machine type in one market and region."""

    price: Price | None
    """The market's own, or the on-demand price in its stead; None: not known."""
    is_bound: bool = False
    """It is the on-demand price: a node costs at most this."""


class PoolCost(msgspec.Struct, frozen=True, kw_only=True):
    """One pool."""

    count: int
    """Most machines at once."""
    least: int
    """Machines that are always there."""
    usd_per_hour: float | None
    """Worst case: every machine running, on the dearest option."""
    usd_per_hour_now: float | None
    """Of the machines that are always there, on the first option."""
    usd_per_node_hour: float | None
    """Of one machine, on the first option."""
    usd_per_month: float | None
    """730 hours of the worst case, with elastic machines running as the budget's utilisation."""
    is_bound: bool
    """An option's price is unknown and the on-demand price is used: it costs at most this."""
    purchase_options: tuple[OptionCost, ...]
    """Empty where nothing is rented."""
    watts: float | None
    """Most power its machines draw, every machine running, where the catalog knows it."""


class SiteCost(msgspec.Struct, frozen=True, kw_only=True):
    """All pools of one site; a total is None as soon as one of them is unknown."""

    usd_per_hour: float | None
    usd_per_hour_now: float | None
    usd_per_month: float | None
    watts: float | None


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """A whole cluster; a total is None as soon as one of its pools is unknown."""

    pools: dict[str, PoolCost]
    sites: dict[str, SiteCost]
    usd_per_hour: float | None
    """Worst case: every machine running, each pool on its dearest option."""
    usd_per_hour_now: float | None
    """Of the machines that are always there."""
    usd_per_month: float | None
    watts: float | None
    unpriced: tuple[str, ...]
    """Pools whose worst case is unknown."""
    bounds: tuple[str, ...]
    """Pools whose worst case is an upper bound."""


def usd_per_hour(spec: ClusterSpec, catalog: Catalog, *, utilisation: float | None = None) -> Cost:
    """Return the price and power of a spec that passed its checks.

    Args:
        spec: the spec.
        catalog: has the machine types and their prices.
        utilisation: share of the time that elastic nodes run; default: the budget's.
    """
    if utilisation is None:
        utilisation = utilisation_of(spec)
    pools = {
        name: pool_cost(pool, spec.sites[pool.site], catalog, utilisation=utilisation)
        for name, pool in spec.pools.items()
    }
    by_site: dict[str, list[PoolCost]] = {name: [] for name in spec.sites}
    for name, pool in spec.pools.items():
        by_site[pool.site].append(pools[name])
    total = _site_cost(list(pools.values()))
    return Cost(
        pools=pools,
        sites={name: _site_cost(costs) for name, costs in by_site.items()},
        usd_per_hour=total.usd_per_hour,
        usd_per_hour_now=total.usd_per_hour_now,
        usd_per_month=total.usd_per_month,
        watts=total.watts,
        unpriced=tuple(name for name, cost in pools.items() if cost.usd_per_hour is None),
        bounds=tuple(name for name, cost in pools.items() if cost.is_bound),
    )


def utilisation_of(spec: ClusterSpec) -> float:
    """Return the share of the time that elastic nodes run, as the budget says; 1 without one."""
    return 1.0 if spec.budget is None else spec.budget.utilisation


def quote(machine: Machine | None, market: Market, region: str) -> Quote:
    """Look up what a node costs in a market; the on-demand price may be used as a bound."""
    own = None if machine is None else machine.price(market, region)
    if own is not None or machine is None:
        return Quote(own)
    listed = machine.price(region=region)
    if listed is None or market not in _ON_DEMAND_AT_MOST:
        return Quote(None)
    return Quote(listed, is_bound=True)


def pool_cost(pool: Pool, site: Site, catalog: Catalog, *, utilisation: float = 1.0) -> PoolCost:
    """Return the price and power of one pool.

    Args:
        pool: a pool whose hosts, where it names some, can be read.
        site: the pool's site.
        catalog: has the machine types and their prices.
        utilisation: share of the time that elastic nodes run.
    """
    machine = catalog.machines.get(pool.machine) if pool.machine is not None else None
    count, least = _counts(pool)
    purchase_options: tuple[OptionCost, ...] = ()
    if isinstance(site, CloudSite):
        purchase_options = tuple(
            _option(option, machine, site.region) for option in pool.market or ["on-demand"]
        )
        rates = [option.usd_per_hour for option in purchase_options]
    elif site.makes_machines:
        rates = [0.0]  # containers on this machine and nodes in a file cost nothing
    else:
        price = None if machine is None else machine.price()
        listed = None if price is None else price.usd_per_hour
        own = site.own_price(pool.machine) if pool.machine is not None else None
        rates = [listed if own is None else own]
    worst, first = _dearest(rates), rates[0]
    running = least + (count - least) * utilisation
    return PoolCost(
        count=count,
        least=least,
        usd_per_hour=_times(worst, count),
        usd_per_hour_now=_times(first, least),
        usd_per_node_hour=first,
        usd_per_month=_times(worst, running * HOURS_PER_MONTH),
        is_bound=worst is not None and any(option.is_bound for option in purchase_options),
        purchase_options=purchase_options,
        watts=_times(None if machine is None else machine.power_w, count),
    )


def _option(written: str | Option, machine: Machine | None, region: str) -> OptionCost:
    """Price one node on an option, in the site's region."""
    market = written if isinstance(written, str) else written.market
    if isinstance(written, Option) and written.spot_max_usd_per_hour is not None:
        return OptionCost(market=market, usd_per_hour=written.spot_max_usd_per_hour, is_bound=True)
    found = quote(machine, cast("Market", market), region)
    rate = None if found.price is None else found.price.usd_per_hour
    return OptionCost(market=market, usd_per_hour=rate, is_bound=found.is_bound)


def _counts(pool: Pool) -> tuple[int, int]:
    """Return most and least machines (1 for a controller or login that does not say)."""
    if pool.hosts is None:
        return 1 if pool.most is None else pool.most, 1 if pool.least is None else pool.least
    items = [pool.hosts] if isinstance(pool.hosts, str) else pool.hosts
    hosts = sum(len(expand(item if isinstance(item, str) else item.name)) for item in items)
    return hosts, hosts


def _site_cost(pools: Sequence[PoolCost]) -> SiteCost:
    return SiteCost(
        usd_per_hour=_total(cost.usd_per_hour for cost in pools),
        usd_per_hour_now=_total(cost.usd_per_hour_now for cost in pools),
        usd_per_month=_total(cost.usd_per_month for cost in pools),
        watts=_total(cost.watts for cost in pools),
    )


def _dearest(rates: Iterable[float | None]) -> float | None:
    """Return the highest rate; None as soon as one is unknown."""
    known = list(rates)
    return None if None in known else max(rate for rate in known if rate is not None)


def _times(rate: float | None, number: float) -> float | None:
    """Multiply; none of something costs nothing, whatever one costs."""
    if number == 0:
        return 0.0
    return None if rate is None else rate * number


def _total(figures: Iterable[float | None]) -> float | None:
    total = 0.0
    for figure in figures:
        if figure is None:
            return None
        total += figure
    return total
