"""Opens the sites of a cluster: each with its provider and the context that its calls take."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from ...stacks.provider import SiteContext, SiteEvent
from ...stacks.registry import provider
from ..planning.purchase.decision import NO_WISHES, OptionOverrides
from ..planning.purchase.fallback_lists import FallbackLists
from ..secrets.makers import make_passphrase, read_passphrase
from ..state.check import refuse_damage
from . import places
from .cluster import Cluster
from .open_site import OpenSite, ignore
from .remains import refuse_lost
from .shared_credentials import write_credentials


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
        name: provider(site.provider, catalog) for name, site in cluster.spec.sites.items()
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
