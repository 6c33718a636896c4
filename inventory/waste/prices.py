"""What a node of each pool costs an hour, as `gcluster cost` has it."""

from __future__ import annotations

from ...schemas.catalog import Catalog
from ...schemas.cost.pools import pool_cost
from ...schemas.spec import ClusterSpec


def node_prices(spec: ClusterSpec, catalog: Catalog) -> dict[str, float]:
    """Return pool -> USD for one of its nodes and hour, on the first option that it is bought on.

    Pools whose price isn't known are left out. Nodes that a site makes on this machine cost 0.
    """
    found: dict[str, float] = {}
    for name, pool in spec.pools.items():
        cost = pool_cost(pool, spec.sites[pool.site], catalog)
        if cost.usd_per_node_hour is not None:
            found[name] = cost.usd_per_node_hour
    return found
