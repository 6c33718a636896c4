"""The sites of a cluster with their providers, ready to be queried and changed, all at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import msgspec

from ...inventory.hosts import ClusterInventory, Host
from ...schemas.derived.control_planes import managed_by
from ...schemas.spec import ClusterSpec, Site
from ...stacks.provider import Provider, SiteContext, SiteEvent, SiteOutputs
from ...stacks.registry import provider
from ..planning.purchase.fallback_lists import NO_WISHES, FallbackLists, OptionOverrides
from ..secrets.makers import make_passphrase, read_passphrase
from ..state.check import refuse_damage
from . import places
from .cluster import Cluster
from .outcome import LifecycleError, failure
from .remains import refuse_lost
from .shared_credentials import write_credentials

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


def provider_name(site: Site) -> str:
    """Return the spec's `provider:` value."""
    return str(site.__struct_config__.tag)


def ignore(_: SiteEvent) -> None:
    """Drop a site's progress."""


def equip(sites: Iterable[OpenSite]) -> None:
    """Find the tools that create sites; the sites themselves are not queried.

    Raises:
        ProviderError: one is missing and can't be installed.
    """
    for equipped in {s.provider.name: s.provider for s in sites}.values():
        equipped.ensure_tools()


def open_sites(
    cluster: Cluster,
    emit: Callable[[SiteEvent], None] = ignore,
    *,
    making: bool = False,
    delete_data: Iterable[str] = (),
    wishes: OptionOverrides = NO_WISHES,
    repairing: bool = False,
) -> tuple[OpenSite, ...]:
    """Return the cluster's sites in spec order; the state is only checked for loss and damage.

    Args:
        cluster: whose sites.
        emit: gets their progress.
        making: stacks may be created, so their passphrase and the nodes' key are generated where
            missing. Not for read-only commands, which write nothing.
        delete_data: storage of the spec whose data `destroy` removes.
        wishes: pool name -> purchase option that was requested for it.
        repairing: the state may be damaged; the sites can only list what exists.

    Raises:
        LifecycleError: the state is damaged (GC900), or lost while nodes exist (GC1165).
    """
    workdir = cluster.workdir
    if not repairing:
        refuse_damage(cluster.events)
        write_credentials(cluster, workdir, making=making)
    catalog = cluster.catalog if cluster.catalogs else None
    cache = places.private_directory(places.cache_home())
    providers = {
        name: provider(provider_name(site), catalog) for name, site in cluster.spec.sites.items()
    }
    fallback = FallbackLists(cluster, providers, wishes)
    decisions = fallback.decide_all()
    opened = tuple(
        OpenSite(
            name=name,
            provider=providers[name],
            context=SiteContext(
                spec=cluster.spec,
                site=name,
                cluster_id=cluster.id,
                workdir=workdir,
                cache=cache,
                ledger=cluster.ledger,
                emit=emit,
                purchased=fallback.purchased(decisions, name),
                buys=wishes.buy,
                offerings=wishes.offerings,
                state=cluster.state_url,
                passphrase=partial(make_passphrase if making else read_passphrase, cluster),
                delete_data=frozenset(delete_data),
            ),
        )
        for name in cluster.spec.sites
    )
    if not repairing:
        refuse_lost(cluster, opened)
    return opened


def fallback_lists_of(
    cluster: Cluster, sites: Iterable[OpenSite], wishes: OptionOverrides = NO_WISHES
) -> FallbackLists:
    """Return the fallback lists of the pools of open sites, as they are now."""
    return FallbackLists(cluster, {site.name: site.provider for site in sites}, wishes)


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


def existing_hosts(cluster: Cluster, *, may_be_none: bool = False) -> ClusterInventory:
    """Return the hosts that exist now, over all sites.

    Raises:
        LifecycleError: there are none (GC908), and there must be some; or a cloud runs their
            control plane and its API gives no answer (GC1043).
    """
    sites = open_sites(cluster)
    per_site = at_each(sites, lambda site: site.provider.hosts(site.context))
    found = [host for hosts in per_site.values() for host in hosts]
    everyone = [*found, *_managed(cluster, sites)]
    hosts = inventory(cluster.spec, everyone, site_outputs(sites))
    if not hosts.hosts and not may_be_none:
        hint = f"gcluster up {cluster.spec_path}"
        raise failure("GC908", f"{cluster.name} has no nodes", hint=hint)
    return hosts


def _managed(cluster: Cluster, sites: tuple[OpenSite, ...]) -> tuple[Host, ...]:
    """Return the nodes that a cloud's control plane runs."""
    spec = cluster.spec
    if managed_by(spec) is None:
        return ()
    from ..kubernetes.managed import joining, nodes  # noqa: PLC0415  # only for Kubernetes

    seen = nodes.see(spec, sites, cluster.workdir)
    if seen.problem:
        raise LifecycleError(joining.silence(spec, seen.problem))
    planned = [h for site in sites for h in site.provider.planned_hosts(spec, site.name)]
    return nodes.with_managed_nodes(spec, planned, seen.nodes)[1]
