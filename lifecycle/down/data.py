"""Data that `down` keeps: what it costs, and which of it a person may name for deletion."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable

import msgspec

from ...schemas.cost.pools import HOURS_PER_MONTH, storage_costs
from ...schemas.derived.storage import is_on_volume, simulated_nfs
from ...schemas.spec import ClusterSpec, FileService, LustreStorage, ObjectStorage
from ...stacks.provider import Leftover
from ..cluster.cluster import Cluster
from ..cluster.open_site import OpenSite, at_each
from ..cluster.outcome import Exit, failure


def check_names(cluster: Cluster, names: Iterable[str], existing: Iterable[Leftover] = ()) -> None:
    """Refuse names of no storage that the cluster made, in its spec or among what exists.

    Raises:
        LifecycleError: GC928 names the storage that there is (exit code USAGE).
    """
    spec = cluster.spec
    here = {name for pool in spec.pools for name in simulated_nfs(spec, pool)}
    made = [name for name in spec.storage if name in here or is_made(spec, name)]
    made += [name for item in existing for name in item.storage if name not in made]
    for name in names:
        if name in made:
            continue
        known = name in cluster.spec.storage
        what = (
            f"{name} was not made by gcluster, so its data is not deleted either"
            if known
            else f"{cluster.name} has no storage {name}"
        )
        near = [] if known else difflib.get_close_matches(name, made, n=1)
        there = f"storage that can be named: {', '.join(made)}" if made else "no storage was made"
        raise failure(
            "GC928",
            what,
            detail="nothing was changed",
            hint=f'did you mean "{near[0]}"? {there}' if near else there,
            exit_code=Exit.USAGE,
        )


def is_made(spec: ClusterSpec, name: str) -> bool:
    """Return whether a site's cloud creates it."""
    storage = spec.storage[name]
    if isinstance(storage, ObjectStorage):
        return storage.create
    if isinstance(storage, LustreStorage | FileService):
        return storage.is_made
    return is_on_volume(spec, name)


def check_free(found: Iterable[Leftover], names: Collection[str]) -> None:
    """Refuse to delete data on which other, kept data is stored.

    Raises:
        LifecycleError: GC929 (exit code USAGE).
    """
    data = (item for item in found if item.kept_data and item.storage)
    held = [item for item in data if set(item.storage) <= set(names)]
    if held:
        raise failure(
            "GC929",
            f"the data of {', '.join(held[0].storage)} can't be deleted: other data that is kept "
            f"needs {held[0].kind} {held[0].name}",
            detail="nothing was changed",
            hint="name the storage that imports from it or exports to it as well",
            exit_code=Exit.USAGE,
        )


def kept_data(cluster: Cluster, sites: Iterable[OpenSite]) -> tuple[Leftover, ...]:
    """Return the data that `down` kept on sites that keep some, with its price.

    Raises:
        ProviderError: a cloud can't be queried.
    """
    if not cluster.was_applied:
        return ()
    machines = [site for site in sites if _keeps_data(site)]
    found = at_each(machines, lambda site: site.provider.refresh(site.context))
    kept = (item for items in found.values() for item in items if item.kept_data)
    return priced(cluster, kept)


def _keeps_data(site: OpenSite) -> bool:
    described = site.context.spec.sites[site.name]
    return described.is_cloud or described.is_made_here


def priced(cluster: Cluster, found: Iterable[Leftover]) -> tuple[Leftover, ...]:
    """Return what was found, data with the catalog's price for its size.

    What isn't known is left unknown: a bucket is billed by what is in it.
    """
    items = tuple(found)
    if not any(item.storage for item in items):
        return items
    months = _months(cluster.spec, cluster)
    return tuple(_with_price(item, months) for item in items)


def _months(spec: ClusterSpec, cluster: Cluster) -> dict[str, float]:
    costs = storage_costs(spec, cluster.catalog)
    return {c.name: c.usd_per_month for c in costs if c.usd_per_month is not None}


def _with_price(item: Leftover, months: dict[str, float]) -> Leftover:
    known = [months[name] for name in item.storage if name in months]
    if not item.storage or len(known) < len(item.storage):
        return item
    month = sum(known)
    return msgspec.structs.replace(item, usd_per_month=month, usd_per_hour=month / HOURS_PER_MONTH)
