"""What still carries a site's tags in Azure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...schemas.catalog import Catalog
from ..provider import Leftover
from ..pulumi.hosts import usd_on_demand
from ..pulumi.names import CLUSTER, POOL, SITE
from ..pulumi.plan import STORAGE_TAG
from .plan.types import SitePlan

if TYPE_CHECKING:
    from .api import Api, Tagged

_DATA = {"microsoft.storage/storageaccounts", "microsoft.storagecache/amlfilesystems"}
"""What holds data."""


def leftovers(api: Api, plan: SitePlan, catalog: Catalog) -> tuple[Leftover, ...]:
    """Return everything of a site, sorted by kind and name; data is marked as kept.

    Machines and scale sets have the catalog's price on demand, the most that they cost.

    A network or group that kept data stands in is marked alike where the data is there.

    Raises:
        ProviderError: Azure can't be asked.
    """
    found = {item.id: item for item in api.tagged(CLUSTER, plan.cluster)}
    ours = [item for item in found.values() if item.tags.get(SITE) == plan.site]
    data = [i for i in ours if i.type.casefold() in _DATA or STORAGE_TAG in i.tags]
    groups = {_group(item.id) for item in data}
    return tuple(
        sorted(
            (
                Leftover(
                    kind=item.type.rpartition("/")[2],
                    name=item.name,
                    provider_id=item.id,
                    usd_per_hour=_price(item, plan, catalog),
                    kept_data=(_group(item.id) in groups and not plan.resource_group)
                    or item in data,
                )
                for item in ours
            ),
            key=lambda item: (item.kind, item.name),
        )
    )


def _price(item: Tagged, plan: SitePlan, catalog: Catalog) -> float | None:
    """Return USD/h of a machine, or of all machines of a scale set; None: unknown."""
    sizes = {pool.name: pool.machine for pool in plan.pools}
    size = item.sku.name or sizes.get(item.tags.get(POOL, ""), "")
    many = {"virtualmachines": 1, "virtualmachinescalesets": item.sku.capacity}.get(
        item.type.casefold().rpartition("/")[2]
    )
    usd = usd_on_demand(catalog, size, plan.region)
    return None if usd is None or many is None else usd * many


def _group(identifier: str) -> str:
    """Return the resource group of an id, in small letters: Azure spells it in several ways."""
    return "/".join(identifier.casefold().split("/")[:5])
