"""Purchase options of a pool with their prices, and what each resource of the stack buys."""

from __future__ import annotations

from ....schemas.catalog import Catalog
from ....schemas.spec import ClusterSpec
from ....schemas.spec.sites import OciSite
from ...provider import Purchase, PurchaseOption
from ...pulumi.plan import priced, site_names, site_of
from .pools import pool_plan
from .types import OfferPlan

_WHOLE = {
    "cluster-network": "a cluster network is made with all of its nodes",
    "memory-cluster": "a GPU memory cluster is one NVLink domain",
}


def purchase_options(
    spec: ClusterSpec, site: str, pool: str, catalog: Catalog
) -> tuple[PurchaseOption, ...]:
    """Return the options of a pool in the order in which they are tried."""
    plan = pool_plan(spec, pool, catalog)
    region = site_of(spec, site, OciSite).region

    def offered(offer: OfferPlan) -> PurchaseOption:
        market = offer.option.market
        usd, bound = priced(catalog.machines.get(plan.machine), market, region)
        return PurchaseOption(
            key=offer.key,
            market=market,
            zone=str(offer.domain),
            usd_per_hour=usd,
            is_bound=bound,
            whole=_WHOLE.get(plan.group, ""),
        )

    return tuple(offered(offer) for offer in plan.offers)


def purchases(spec: ClusterSpec, site: str, catalog: Catalog) -> dict[str, Purchase]:
    """Return name of an instance, or of a group of them in the program -> what it buys."""
    names = site_names(spec, site)
    found: dict[str, Purchase] = {}
    for name, pool in spec.pools.items():
        if pool.site == site:
            plan = pool_plan(spec, name, catalog)
            for offer in plan.offers:
                found[names(f"{name}-{offer.key}")] = Purchase(pool=name, nodes=plan.nodes)
            found |= {names(node): Purchase(pool=name, nodes=(node,)) for node in plan.nodes}
    return found
