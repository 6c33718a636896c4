"""Purchase options of a pool with their prices, and what each resource of the stack buys."""

from __future__ import annotations

from ....schemas.catalog import Catalog
from ....schemas.spec import ClusterSpec
from ...provider import Purchase, PurchaseOption
from ...pulumi.names import Names
from ...pulumi.plan import priced, site_names
from .layout import described
from .pools import pools
from .types import PoolPlan

SET = "a scale set is bought in one way, in one zone"
"""Why the machines of a compute pool are all on one option."""


def purchase_options(
    spec: ClusterSpec, site: str, pool: str, catalog: Catalog
) -> tuple[PurchaseOption, ...]:
    """Return the options of a pool in the order in which they are tried; raises ProviderError."""
    here = described(spec, site)
    plan = next(p for p in pools(spec, site, here, catalog) if p.name == pool)
    machine = catalog.machines.get(plan.machine)
    found: list[PurchaseOption] = []
    for option in plan.offers:
        usd, bound = priced(machine, option.market, here.region, option.max_usd_per_hour)
        found.append(
            PurchaseOption(
                key=option.key,
                market=option.market,
                zone=option.zone or None,
                usd_per_hour=usd,
                is_bound=bound,
                whole=SET if plan.sets else "",
            )
        )
    return tuple(found)


def purchases(spec: ClusterSpec, site: str, catalog: Catalog) -> dict[str, Purchase]:
    """Return name of a scale set or machine -> what it buys; raises ProviderError.

    A scale set has two names: the program's, and that of direct calls to Azure.
    """
    names = site_names(spec, site)
    found: dict[str, Purchase] = {}
    for pool in pools(spec, site, described(spec, site), catalog):
        found |= _of_sets(pool, names)
        if not pool.sets:
            found |= {names(node): Purchase(pool=pool.name, nodes=(node,)) for node in pool.nodes}
    return found


def _of_sets(pool: PoolPlan, names: Names) -> dict[str, Purchase]:
    found: dict[str, Purchase] = {}
    for part in pool.sets:
        bought = Purchase(pool=pool.name, nodes=pool.part_names(part.name))
        found |= {names(part.name): bought, f"scale set {part.name}": bought}
    return found
