"""What still carries a site's tags in OCI, by its search over all services."""

from __future__ import annotations

from collections.abc import Iterator

from ...schemas.catalog import Catalog
from ..provider import Leftover
from ..pulumi.hosts import usd_on_demand
from ..pulumi.names import CLUSTER
from .api import Answer, Api
from .hosts import instances
from .plan.types import SitePlan

_GONE = {"TERMINATED", "DELETED", "TERMINATING", "DELETING"}
_DATA = {"volume": "disk", "bucket": "bucket", "lustrefilesystem": "file-system"}
"""Types of resources that hold data, in lower case, and what they are called here."""
_KINDS = {"instance": "node", "vcn": "network", **_DATA}
_MOMENTARY = {"vnic", "bootvolume", "consolehistory", "privateip"}
"""Types that end with their instance, or by themselves."""


class _Item(Answer, frozen=True):
    resource_type: str
    identifier: str
    display_name: str | None = None
    lifecycle_state: str | None = None
    freeform_tags: dict[str, str] | None = None


class _Items(Answer, frozen=True):
    items: tuple[_Item, ...] = ()


def leftovers(api: Api, plan: SitePlan, catalog: Catalog) -> tuple[Leftover, ...]:
    """Return everything of a site, sorted by kind and name; data is marked as kept.

    The search lags behind by minutes, so machines are asked for themselves.

    Raises:
        OciError: the search failed: then nobody can say that nothing is left.
    """
    shapes = {pool.name: pool.machine for pool in plan.pools}
    found: dict[str, Leftover] = {}
    for machine in instances(api, plan):
        found[machine.id] = Leftover(
            kind="node",
            name=machine.host or machine.display_name,
            provider_id=machine.id,
            usd_per_hour=usd_on_demand(catalog, shapes.get(machine.pool, ""), plan.region),
        )
    for item in _tagged(api, plan):
        kind = item.resource_type.lower()
        if kind != "instance" and kind not in _MOMENTARY:
            found[item.identifier] = Leftover(
                kind=_KINDS.get(kind, kind),
                name=item.display_name or item.identifier,
                provider_id=item.identifier,
                kept_data=kind in _DATA,
            )
    return tuple(sorted(found.values(), key=lambda item: (item.kind, item.name)))


def _tagged(api: Api, plan: SitePlan) -> Iterator[_Item]:
    """Yield what the search finds by the cluster's tag; a query has one key and value."""
    wanted = plan.labels.found_by()
    where = f"freeformTags.key = '{CLUSTER}' && freeformTags.value = '{wanted[CLUSTER]}'"
    query = {"type": "Structured", "query": f"query all resources where {where}"}
    for page in api.pages(_Items, "search", "search_resources", query):
        for item in page.items:
            is_ours = wanted.items() <= (item.freeform_tags or {}).items()
            if is_ours and (item.lifecycle_state or "").upper() not in _GONE:
                yield item
