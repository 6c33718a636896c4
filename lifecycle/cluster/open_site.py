"""A site of a cluster, ready to be queried and changed; and calls of all sites at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import msgspec

from ...inventory.hosts import ClusterInventory, Host
from ...schemas.spec import ClusterSpec
from ...stacks.provider import Provider, SiteContext, SiteEvent, SiteOutputs
from ..planning.purchase.decision import NO_WISHES, OptionOverrides

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

    def taking(self, purchased: Mapping[str, str], wishes: OptionOverrides = NO_WISHES) -> OpenSite:
        """Return a copy of the site with these purchase options and the requested ones."""
        context = msgspec.structs.replace(
            self.context, purchased=purchased, buys=wishes.buy, offerings=wishes.offerings
        )
        return msgspec.structs.replace(self, context=context)


def ignore(_: SiteEvent) -> None:
    """Drop a site's progress."""


def equip(sites: Iterable[OpenSite]) -> None:
    """Find the tools that create sites; the sites themselves are not queried.

    Raises:
        ProviderError: one is missing and can't be installed.
    """
    for equipped in {s.provider.name: s.provider for s in sites}.values():
        equipped.ensure_tools()


def at_each(sites: Iterable[OpenSite], call: Callable[[OpenSite], T]) -> dict[str, T]:
    """Call once per site, in parallel; the first exception is raised when all have ended."""
    everything = list(sites)
    with ThreadPoolExecutor(max_workers=max(1, len(everything))) as pool:
        futures = {site.name: pool.submit(call, site) for site in everything}
    return {name: future.result() for name, future in futures.items()}


def site_outputs(sites: Iterable[OpenSite]) -> tuple[SiteOutputs, ...]:
    """Return what the clouds of these sites created for nodes to use; each site is queried once."""
    return tuple(at_each(sites, lambda site: site.provider.outputs(site.context)).values())


def inventory(
    spec: ClusterSpec, hosts: Iterable[Host], outputs: Iterable[SiteOutputs] = ()
) -> ClusterInventory:
    """Order hosts as the spec orders their pools, then by name; `outputs` are all sites'."""
    made = tuple(outputs)
    order = {pool: index for index, pool in enumerate(spec.pools)}
    known = [host for host in hosts if host.pool in order]
    known.sort(key=lambda host: (order[host.pool], host.name))
    return ClusterInventory(
        cluster=spec.name,
        hosts=tuple(known),
        storage={n: device for site in made for n, device in site.file_systems.items()},
        networks={pool: nics for site in made for pool, nics in site.fabric_networks.items()},
    )
