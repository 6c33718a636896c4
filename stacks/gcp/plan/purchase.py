"""Purchase options of a pool with their prices, and what each resource of the stack buys."""

from __future__ import annotations

from ....inventory.hosts import pool_host_names
from ....schemas.catalog import Catalog
from ....schemas.spec import ClusterSpec, GcpSite
from ...provider import Purchase, PurchaseOption
from ...pulumi.plan import priced, site_names, site_of
from .pools import machine_of, zones_of
from .pools import option_plans as planned

QUEUED = "machines of the queue come together, or none does"
"""Why a pool is on flex-start with all its machines or with none."""


def purchase_options(
    spec: ClusterSpec, site: str, pool: str, catalog: Catalog
) -> tuple[PurchaseOption, ...]:
    """Return the options of a pool in the order in which they are tried."""
    here, described = site_of(spec, site, GcpSite), spec.pools[pool]
    machine = catalog.machines.get(machine_of(described))
    found: list[PurchaseOption] = []
    zones = zones_of(described, here, machine, catalog)
    for option in planned(described, zones, catalog.providers.get("gcp")):
        # Google has no price limit for spot machines, so one that the spec names is no bound.
        usd, bound = priced(machine, option.market, here.region)
        found.append(
            PurchaseOption(
                key=option.key,
                market=option.market,
                zone=option.zone,
                usd_per_hour=usd,
                is_bound=bound,
                whole=QUEUED if option.market == "flex-start" else "",
            )
        )
    return tuple(found)


def purchases(spec: ClusterSpec, site: str) -> dict[str, Purchase]:
    """Return name of a machine or a queued request in the program -> what it buys."""
    names = site_names(spec, site)
    found: dict[str, Purchase] = {}
    for name, pool in spec.pools.items():
        if pool.site == site:
            nodes = tuple(pool_host_names(name, pool))
            found[names(f"{name}-request")] = Purchase(pool=name, nodes=nodes)
            found |= {names(node): Purchase(pool=name, nodes=(node,)) for node in nodes}
    return found
