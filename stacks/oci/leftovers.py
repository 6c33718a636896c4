"""Resources in OCI with a site's tags, and those that a killed run had begun to create.

The first are found by OCI's search over all services, which lags behind by minutes; the second by
the lists of each kind, which don't. OCI accepts a name twice, and completes what was requested: it
is imported. Created again it would exist, and be billed, twice; and some of it blocks its
successor: a subnet of its addresses, a gateway of the only one that a VCN has.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from functools import cache
from typing import Any, TypeAlias

import msgspec

from ...schemas.catalog import Catalog
from ..provider import Leftover
from ..pulumi.data import read_data
from ..pulumi.engine.checkpoint import Begun, StackResource
from ..pulumi.hosts import usd_on_demand
from ..pulumi.names import CLUSTER
from .api import Answer, Api
from .hosts import instances
from .plan.types import SitePlan

GONE = {"TERMINATED", "DELETED", "TERMINATING", "DELETING", "DETACHED", "DETACHING"}
MAKING = {"PROVISIONING", "SCALING", "STARTING", "CREATING", "UPDATING", "ATTACHING"}
"""States (lifecycleState) of what goes or is gone, and of what OCI still works on."""
_DATA = {
    "volume": "disk",
    "bucket": "bucket",
    "filesystem": "file-system",
    "lustrefilesystem": "file-system",
}
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

    The search lags behind by minutes, so machines are queried directly.

    Raises:
        OciError: the search failed: then leftovers are unknown.
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
            if is_ours and (item.lifecycle_state or "").upper() not in GONE:
                yield item


class Lister(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How resources of a kind are found again (data/lists.yaml explains each field)."""

    service: str
    list: str
    ask: dict[str, str] | None = None
    more: dict[str, Any] = {}
    by: tuple[str, ...] = ("displayName",)
    id: str = "{id}"


@cache
def listers() -> dict[str, Lister]:
    """Return type -> how its resources are found again."""
    return read_data("oci", "lists", dict[str, Lister])


def is_group(one: StackResource) -> bool:
    """Return whether it is a set of machines that OCI creates together, for hours."""
    return one.type.endswith((":ClusterNetwork", ":ComputeGpuMemoryCluster"))


def begun_ids(api: Api, plan: SitePlan, begun: Begun, known: Collection[str]) -> dict[str, str]:
    """Return URN -> import id of those begun resources that exist.

    Args:
        api: the site's region.
        plan: the site; resources with foreign tags are left alone.
        begun: what the stack has as begun.
        known: ids of what the stack has.

    Raises:
        OciError: OCI can't be queried.
    """
    there = ((one, _existing(api, plan, one, known)) for one in begun if one.type in listers())
    return {one.urn: _imported(one, found) for one, found in there if found is not None}


def await_made(
    api: Api,
    plan: SitePlan,
    begun: Begun,
    notify: Callable[[str], None],
    *,
    patience_s: float = 2 * 3600.0,  # as long as the provider waits for the slowest: Lustre
    pause_s: float = 15.0,
) -> None:
    """Wait for what OCI still makes of what was begun: what others need of it isn't known before.

    Raises:
        OciError: as `begun_ids`.
    """
    waiting, until = list(begun), time.monotonic() + patience_s
    while waiting and time.monotonic() < until:
        found = [(one, _existing(api, plan, one, ())) for one in waiting]
        waiting = [one for one, it in found if it and it.get("lifecycleState") in MAKING]
        if waiting:
            notify(f"OCI still makes {', '.join(one.name for one in waiting)}")
            time.sleep(pause_s)


_Resource: TypeAlias = dict[str, Any]
"""A list's entry of one resource."""


def _existing(
    api: Api, plan: SitePlan, one: StackResource, known: Collection[str]
) -> _Resource | None:
    """Return a list's entry of a begun resource; None where it doesn't exist."""
    lister, ours = listers()[one.type], plan.labels.found_by().items()
    inputs = {"compartmentId": plan.compartment, **one.inputs}
    asks = lister.ask or {"compartment_id": "compartmentId"}
    requested = {parameter: inputs[key] for parameter, key in asks.items()}
    anything: Any = object
    for page in api.pages(anything, lister.service, lister.list, **requested, **lister.more):
        things: list[_Resource] = page["items"] if isinstance(page, dict) else page
        for thing in things:
            tags = thing.get("freeformTags") or {}
            if (
                all(_said(thing.get(key)) == _said(one.inputs.get(key)) for key in lister.by)
                and thing.get("lifecycleState") not in GONE
                and ("freeformTags" not in one.inputs or ours <= tags.items())
                and not {thing.get("id"), _imported(one, thing)} & set(known)
            ):
                return thing
    return None


def _said(value: Any) -> Any:
    """Return a value without members that OCI lists as null: programs leave them out."""
    if not isinstance(value, dict):
        return value
    return {key: _said(item) for key, item in value.items() if item is not None}


def _imported(one: StackResource, thing: _Resource) -> str:
    return listers()[one.type].id.format_map({**one.inputs, "id": "", **thing})
