"""What a cluster costs and draws, from its spec and the catalog. Unknown is None, never 0."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gcluster.schemas.hostlist import expand
from gcluster.schemas.spec import ClusterSpec, Pool

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gcluster.schemas.catalog import Catalog


class PoolCost(msgspec.Struct, frozen=True, kw_only=True):
    """One pool with all its machines."""

    count: int
    usd_per_hour: float | None
    watts: float | None
    """Most power its machines draw, where the catalog knows it."""


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """A whole cluster; a total is None as soon as one of its pools is unknown."""

    pools: dict[str, PoolCost]
    usd_per_hour: float | None
    watts: float | None
    unpriced: tuple[str, ...]
    """Pools whose price is unknown."""


def usd_per_hour(spec: ClusterSpec, catalog: Catalog) -> Cost:
    """Return the price and power of a spec that passed its checks, with every machine running."""
    pools = {name: _pool_cost(spec, pool, catalog) for name, pool in spec.pools.items()}
    return Cost(
        pools=pools,
        usd_per_hour=_total(cost.usd_per_hour for cost in pools.values()),
        watts=_total(cost.watts for cost in pools.values()),
        unpriced=tuple(name for name, cost in pools.items() if cost.usd_per_hour is None),
    )


def _pool_cost(spec: ClusterSpec, pool: Pool, catalog: Catalog) -> PoolCost:
    machine = catalog.machines.get(pool.machine) if pool.machine is not None else None
    count = _count(pool)
    site = spec.sites[pool.site]
    price = machine.price() if machine is not None else None
    rate = price.usd_per_hour if price is not None else None
    if site.makes_machines and not site.is_cloud:
        rate = 0.0  # containers on this machine and nodes in a file cost nothing
    power = machine.power_w if machine is not None else None
    return PoolCost(
        count=count,
        usd_per_hour=None if rate is None else rate * count,
        watts=None if power is None else power * count,
    )


def _count(pool: Pool) -> int:
    """Return how many machines a pool has (1 for a controller or login that does not say)."""
    if pool.hosts is None:
        return 1 if pool.most is None else pool.most
    items = [pool.hosts] if isinstance(pool.hosts, str) else pool.hosts
    return sum(len(expand(item if isinstance(item, str) else item.name)) for item in items)


def _total(figures: Iterable[float | None]) -> float | None:
    total = 0.0
    for figure in figures:
        if figure is None:
            return None
        total += figure
    return total
