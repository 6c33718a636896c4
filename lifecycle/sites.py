"""The sites of a cluster with their providers, ready to be asked and told, all at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

import msgspec

from gcluster.inventory.hosts import ClusterInventory, Host
from gcluster.lifecycle import places
from gcluster.lifecycle.outcome import failure
from gcluster.stacks.provider import Provider, SiteContext, SiteEvent
from gcluster.stacks.registry import provider

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gcluster.lifecycle.cluster import Cluster
    from gcluster.schemas.spec import ClusterSpec, Site

T = TypeVar("T")


class OpenSite(msgspec.Struct, frozen=True, kw_only=True):
    """A site, its provider, and the context its calls take."""

    name: str
    provider: Provider
    context: SiteContext

    def booting(self, image: str | None) -> OpenSite:
        """Return the same site whose new nodes boot from `image`."""
        return msgspec.structs.replace(
            self, context=msgspec.structs.replace(self.context, image=image)
        )


def provider_name(site: Site) -> str:
    """Return what the spec says under `provider:`."""
    return str(site.__struct_config__.tag)


def ignore(_: SiteEvent) -> None:
    """Drop a site's progress."""


def open_sites(
    cluster: Cluster, emit: Callable[[SiteEvent], None] = ignore
) -> tuple[OpenSite, ...]:
    """Return the cluster's sites in spec order; nothing is contacted yet."""
    workdir = cluster.workdir
    catalog = cluster.catalog if cluster.catalogs else None
    cache = places.private_directory(places.cache_home())
    return tuple(
        OpenSite(
            name=name,
            provider=provider(provider_name(site), catalog),
            context=SiteContext(
                spec=cluster.spec,
                site=name,
                cluster_id=cluster.id,
                workdir=workdir,
                cache=cache,
                ledger=cluster.ledger,
                emit=emit,
            ),
        )
        for name, site in cluster.spec.sites.items()
    )


def at_each(sites: Iterable[OpenSite], call: Callable[[OpenSite], T]) -> dict[str, T]:
    """Call once per site, in parallel; the first exception is raised when all have ended."""
    everything = list(sites)
    with ThreadPoolExecutor(max_workers=max(1, len(everything))) as pool:
        futures = {site.name: pool.submit(call, site) for site in everything}
    return {name: future.result() for name, future in futures.items()}


def inventory(spec: ClusterSpec, hosts: Iterable[Host]) -> ClusterInventory:
    """Order hosts as the spec orders their pools, then by name."""
    order = {pool: index for index, pool in enumerate(spec.pools)}
    known = [host for host in hosts if host.pool in order]
    known.sort(key=lambda host: (order[host.pool], host.name))
    return ClusterInventory(cluster=spec.name, hosts=tuple(known))


def existing_hosts(cluster: Cluster) -> ClusterInventory:
    """Return the hosts that exist now, over all sites.

    Raises:
        LifecycleError: there are none.
    """
    per_site = at_each(open_sites(cluster), lambda site: site.provider.hosts(site.context))
    hosts = inventory(cluster.spec, (host for found in per_site.values() for host in found))
    if not hosts.hosts:
        hint = f"gcluster up {cluster.spec_path}"
        raise failure("GC908", f"{cluster.name} has no nodes", hint=hint)
    return hosts
