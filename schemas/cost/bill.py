"""What a cluster costs, in full: pools, sites, every market, power, and each price's source.

Only the spec and the catalog are read. A sum names what it lacks; what isn't known is never 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal, TypeAlias, cast

import msgspec

from ..catalog import Catalog, Machine, Market, Price
from ..catalog.figures import is_unverified
from ..derived.failover import at_site, failover_sites
from ..spec import ClusterSpec, Pool, Site
from ..spec.sites.site import CloudSite
from .pools import (
    HOURS_PER_MONTH,
    PoolCost,
    Power,
    StorageCost,
    pool_cost,
    power_of,
    quote,
    storage_costs,
    utilisation_of,
)

Holding: TypeAlias = Literal["rented", "own", "free"]
"""rented from a cloud; own: hosts that exist; free: containers on this machine, nodes in a file."""


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """What one node costs in one market, and who says so."""

    market: str
    usd_per_hour: float | None
    is_bound: bool = False
    """It costs at most this: the on-demand price, or a limit that the spec sets."""
    source: str | None = None
    """None: the price isn't known, or it is the spec's own limit."""
    date: str | None = None
    unverified: bool = False
    """The price, or the region it holds in, is not confirmed."""


class SitePrice(msgspec.Struct, frozen=True, kw_only=True):
    """A pool at another of its sites."""

    site: str
    machine: str | None
    usd_per_hour: float | None
    """Every machine running, on the dearest option there."""
    fallback_list: tuple[Offer, ...]
    """The ways to buy it there in their order, for one node."""


class PoolBill(msgspec.Struct, frozen=True, kw_only=True):
    """One pool."""

    name: str
    site: str
    machine: str | None
    holding: Holding
    nodes_now: int
    """Machines that are always there."""
    nodes: int
    """Most machines at once."""
    usd_per_hour_now: float | None
    """Of the machines that are always there, on the first option."""
    usd_per_hour: float | None
    """Worst case: every machine running, on the dearest option."""
    usd_per_month: float | None
    """The worst case's prices, elastic machines running for their share of the time."""
    is_bound_now: bool
    is_bound: bool
    """No option with a price of its own is as dear: it costs at most this."""
    fallback_list: tuple[Offer, ...]
    """The ways to buy it in their order, for one node; one of one's own machines, if priced."""
    markets: tuple[Offer, ...]
    """Every market the machine is sold in, for one node."""
    power: Power
    elsewhere: tuple[SitePrice, ...] = ()
    """What it costs at the other sites of its failover, in their order."""


class Sum(msgspec.Struct, frozen=True, kw_only=True):
    """A sum of money that says what it lacks."""

    usd: float | None
    """The sum of what is known; None: nothing in it is."""
    is_bound: bool
    lacks: tuple[str, ...]
    """Rented pools whose price isn't known."""


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """Sums over the machines of a site or of the cluster."""

    hour_now: Sum
    hour: Sum
    month: Sum
    kw: float | None
    """Of the pools whose power is known; None: of none is it."""
    kw_lacks: tuple[str, ...]
    kg_co2_per_hour: float | None
    """None: not known for every pool."""


class SiteBill(msgspec.Struct, frozen=True, kw_only=True):
    """One site."""

    name: str
    provider: str
    region: str | None
    totals: Totals


class Bill(msgspec.Struct, frozen=True, kw_only=True):
    """A whole cluster."""

    cluster: str
    utilisation: float
    hours_per_month: int = HOURS_PER_MONTH
    max_usd_per_hour: float | None
    """The budget's; None: it sets none."""
    max_usd_per_month: float | None
    pools: tuple[PoolBill, ...]
    sites: tuple[SiteBill, ...]
    totals: Totals
    storage: tuple[StorageCost, ...]
    """Managed storage that the spec makes; it is not in the totals of the machines."""
    own_unpriced: tuple[str, ...]
    """Pools of one's own machines without a price of one's own; in no sum."""


def bill(spec: ClusterSpec, catalog: Catalog, *, utilisation: float | None = None) -> Bill:
    """Return what a spec that passed its checks costs.

    Args:
        spec: the spec.
        catalog: has the machine types and their prices.
        utilisation: share of the time that elastic nodes run; default: the budget's.
    """
    share = utilisation_of(spec) if utilisation is None else utilisation
    pools = tuple(
        _pool(name, pool, spec.sites, catalog, share) for name, pool in spec.pools.items()
    )
    of_site: dict[str, list[PoolBill]] = {name: [] for name in spec.sites}
    for pool in pools:
        of_site[pool.site].append(pool)
    return Bill(
        cluster=spec.name,
        utilisation=share,
        max_usd_per_hour=None if spec.budget is None else spec.budget.max_usd_per_hour,
        max_usd_per_month=None if spec.budget is None else spec.budget.max_usd_per_month,
        pools=pools,
        sites=tuple(_site(name, spec.sites[name], found) for name, found in of_site.items()),
        totals=_totals(pools),
        storage=tuple(storage_costs(spec, catalog)),
        own_unpriced=tuple(p.name for p in pools if p.holding == "own" and not p.fallback_list),
    )


def _elsewhere(pool: Pool, sites: Mapping[str, Site], catalog: Catalog) -> Iterator[SitePrice]:
    for other in failover_sites(pool):
        there, site = at_site(pool, other), sites[other.site]
        machine = catalog.machines.get(there.machine or "")
        cost = pool_cost(there, site, catalog)
        yield SitePrice(
            site=other.site,
            machine=there.machine,
            usd_per_hour=cost.usd_per_hour,
            fallback_list=tuple(_fallback_list(there, cost, machine, site)),
        )


def _pool(
    name: str, pool: Pool, sites: Mapping[str, Site], catalog: Catalog, share: float
) -> PoolBill:
    site = sites[pool.site]
    machine = catalog.machines.get(pool.machine) if pool.machine is not None else None
    cost = pool_cost(pool, site, catalog, utilisation=share)
    fallback_list = tuple(_fallback_list(pool, cost, machine, site))
    sold = _sold(machine, site, catalog)
    return PoolBill(
        name=name,
        site=pool.site,
        machine=pool.machine,
        holding=_holding(site),
        nodes_now=cost.least,
        nodes=cost.count,
        usd_per_hour_now=cost.usd_per_hour_now,
        usd_per_hour=cost.usd_per_hour,
        usd_per_month=cost.usd_per_month,
        is_bound_now=bool(cost.usd_per_hour_now) and fallback_list[0].is_bound,
        is_bound=bool(cost.usd_per_hour) and _is_bound(fallback_list),
        fallback_list=fallback_list,
        markets=tuple(_offer(machine, market, getattr(site, "region", "")) for market in sold),
        power=power_of(machine, site, catalog, least=cost.least, count=cost.count),
        elsewhere=tuple(_elsewhere(pool, sites, catalog)),
    )


def _holding(site: Site) -> Holding:
    if isinstance(site, CloudSite):
        return "rented"
    return "free" if site.makes_machines else "own"


def _is_bound(fallback_list: tuple[Offer, ...]) -> bool:
    """Say whether the dearest option's price is only a bound."""
    sure = max((o.usd_per_hour or 0 for o in fallback_list if not o.is_bound), default=0.0)
    return max((o.usd_per_hour or 0 for o in fallback_list), default=0.0) > sure


def _fallback_list(
    pool: Pool, cost: PoolCost, machine: Machine | None, site: Site
) -> Iterator[Offer]:
    """Yield the options as they are priced, each with the source of its price."""
    if isinstance(site, CloudSite):
        for written, option in zip(
            pool.market or ["on-demand"], cost.purchase_options, strict=True
        ):
            if not isinstance(written, str) and written.spot_max_usd_per_hour is not None:
                yield Offer(market="spot", usd_per_hour=option.usd_per_hour, is_bound=True)
            else:
                yield _offer(machine, cast("Market", option.market), site.region)
    elif not site.makes_machines and machine is not None:
        price, own = machine.price(), site.own_price(machine.name)
        if own is not None:
            yield Offer(market="own", usd_per_hour=own, source=f"usd_per_hour of site {pool.site}")
        elif price is not None:
            yield _cited(machine, price, "own", is_bound=False)


def _sold(machine: Machine | None, site: Site, catalog: Catalog) -> Iterable[Market]:
    """Return the markets of a rented machine: its own, else its provider's."""
    if machine is None or not isinstance(site, CloudSite):
        return ()
    facts = catalog.providers.get(site.provider)
    return machine.markets or (facts.markets if facts is not None else ())


def _offer(machine: Machine | None, market: Market, region: str) -> Offer:
    found = quote(machine, market, region)
    if machine is None or found.price is None:
        return Offer(market=market, usd_per_hour=None)
    return _cited(machine, found.price, market, is_bound=found.is_bound)


def _cited(machine: Machine, price: Price, market: str, *, is_bound: bool) -> Offer:
    return Offer(
        market=market,
        usd_per_hour=price.usd_per_hour,
        is_bound=is_bound,
        source=price.source,
        date=price.date,
        unverified=is_unverified(machine, f"prices.{machine.prices.index(price)}"),
    )


def _site(name: str, site: Site, pools: list[PoolBill]) -> SiteBill:
    return SiteBill(
        name=name,
        provider=site.provider,
        region=getattr(site, "region", None),
        totals=_totals(pools),
    )


def _totals(pools: Iterable[PoolBill]) -> Totals:
    counted = list(pools)
    known = [pool.power.kw for pool in counted if pool.power.kw is not None]
    carbon = [pool.power.kg_co2_per_hour for pool in counted if pool.holding != "free"]
    return Totals(
        hour_now=_sum(counted, lambda p: p.usd_per_hour_now, lambda p: p.is_bound_now),
        hour=_sum(counted, lambda p: p.usd_per_hour, lambda p: p.is_bound),
        month=_sum(counted, lambda p: p.usd_per_month, lambda p: p.is_bound),
        kw=sum(known) if known else None,
        kw_lacks=tuple(p.name for p in counted if p.power.kw is None and p.holding != "free"),
        kg_co2_per_hour=None
        if not carbon or None in carbon
        else sum(kg for kg in carbon if kg is not None),
    )


def _sum(
    pools: list[PoolBill],
    figure: Callable[[PoolBill], float | None],
    is_bound: Callable[[PoolBill], bool],
) -> Sum:
    """Add up what is known; one's own machines without a price are no part of it."""
    known = [value for pool in pools if (value := figure(pool)) is not None]
    return Sum(
        usd=sum(known) if known else None,
        is_bound=any(map(is_bound, pools)),
        lacks=tuple(p.name for p in pools if p.holding == "rented" and figure(p) is None),
    )
