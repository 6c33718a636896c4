"""Resources in Azure with a site's tags, and those that a killed run had begun to create.

Azure completes their creation, so the stack imports them. Created again they would exist, and be
billed, twice; and some of them block their successor: a subnet of its addresses, a machine of its
network interface, an account of its name.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache

from ...schemas.catalog import Catalog
from ..provider import Leftover
from ..pulumi.data import read_data
from ..pulumi.engine.checkpoint import Begun, StackResource
from ..pulumi.hosts import usd_on_demand
from ..pulumi.names import CLUSTER, POOL, SITE
from ..pulumi.plan import STORAGE_TAG
from .api import Answer, Api, Tagged
from .plan.types import SitePlan

_DATA = {"microsoft.storage/storageaccounts", "microsoft.storagecache/amlfilesystems"}
"""What holds data."""


def leftovers(api: Api, plan: SitePlan, catalog: Catalog) -> tuple[Leftover, ...]:
    """Return everything of a site, sorted by kind and name; data is marked as kept.

    Machines and scale sets have the catalog's price on demand, the most that they cost.

    A network or group that holds kept data is marked alike where the data exists.

    Raises:
        ProviderError: Azure can't be queried.
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


_PROVIDER = "azure-native:"


class _There(Answer, frozen=True):
    tags: dict[str, str] | None = None


@cache
def addresses() -> dict[str, str]:
    """Return kind (compute.Disk) -> its address, by the names of its inputs."""
    return read_data("azure", "addresses", dict[str, str])


def begun_ids(api: Api, plan: SitePlan, begun: Begun, known: Collection[str]) -> dict[str, str]:
    """Return URN -> id of those begun resources that exist.

    The provider fills names and API versions into the inputs before it creates anything
    (pulumi-azure-native, provider.go, applyDefaults, November 2026). Resources with foreign tags
    are left alone.

    Args:
        api: the site's subscription.
        plan: the site.
        begun: what the stack has as begun.
        known: ids of what the stack has.

    Raises:
        ProviderError: Azure can't be queried.
    """
    stack = {identifier.casefold() for identifier in known}
    found: dict[str, str] = {}
    for one in begun:
        if not one.type.startswith(_PROVIDER):
            continue
        where = address(plan.subscription, one)
        there = api.find(_There, where, str(one.inputs["azureApiVersion"]))
        if there is None or where.casefold() in stack:
            continue
        if "tags" not in one.inputs or plan.labels.found_by().items() <= (there.tags or {}).items():
            found[one.urn] = where
    return found


def address(subscription: str, begun: StackResource) -> str:
    """Return a resource's address; KeyError for a kind that is not in addresses.yaml."""
    template = addresses()[begun.type.removeprefix(_PROVIDER).replace(":", ".")]
    name = begun.inputs.get("resourceGroupName", "")
    group = f"/subscriptions/{subscription}/resourceGroups/{name}"
    return template.format_map({**begun.inputs, "group": group})
