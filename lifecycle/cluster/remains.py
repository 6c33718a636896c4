"""Resources of a cluster whose state knows no nodes: state lost, or nodes never removed.

An empty state may be of a cluster that was never created, or may have been lost. This machine's
index and the tags on all resources show which.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from ...stacks.provider import Leftover, ProviderError
from .cluster import Cluster
from .index import known_clusters, remembered
from .outcome import Exit, failure

if TYPE_CHECKING:
    from .open_site import OpenSite


class Remains(msgspec.Struct, frozen=True, kw_only=True):
    """Something at a site that carries the cluster's name."""

    site: str
    cluster_id: str
    """The cluster id in its tags; where resources carry none, the id of the opened cluster."""
    items: tuple[Leftover, ...]


def find_remains(
    cluster: Cluster, sites: Iterable[OpenSite], *, by_tag: bool
) -> tuple[Remains, ...]:
    """Return resources tagged with the cluster's name that belong to no other cluster of the index.

    Args:
        cluster: one whose state is empty.
        sites: its sites.
        by_tag: sites whose resources carry no id are queried too, even without a sign of any.

    Raises:
        ProviderError: a site can't be queried.
    """
    lost = {entry.id for entry in remembered(cluster.state_url)}
    others = {entry.id for entry in known_clusters()} - lost
    found = []
    for site in sites:
        wearing = site.provider.ids_in_use(site.context)
        requested = set(wearing - others | lost)
        if by_tag and not requested:
            requested = {site.context.cluster_id}
        for identity in sorted(requested):
            context = msgspec.structs.replace(site.context, cluster_id=identity)
            if identity in lost:  # a simulated site is in the folder of its id
                workdir = site.context.workdir.parent / identity
                context = msgspec.structs.replace(context, workdir=workdir)
            items = tuple(i for i in site.provider.sweep(context) if i.kind != "host")
            if items:
                found.append(Remains(site=site.name, cluster_id=identity, items=items))
    return tuple(found)


def refuse_lost(
    cluster: Cluster,
    sites: Iterable[OpenSite],
    *,
    by_tag: bool = False,
    but_data: bool = False,
) -> None:
    """Refuse to treat a cluster as new where resources of it exist.

    Args:
        cluster: the cluster.
        sites: its sites.
        by_tag: every site is queried, and one that can't be is an error.
        but_data: data that a `down` kept doesn't count.

    Raises:
        LifecycleError: its state has no identity, and resources of it exist (GC1165).
        ProviderError: with `by_tag`, a site can't be queried.
    """
    if cluster.store.identity() is not None:
        return
    try:
        remains = find_remains(cluster, sites, by_tag=by_tag)
    except ProviderError:
        if by_tag:
            raise
        return  # the next step queries it again and reports it
    lines = [
        f"site {each.site}: {item.kind} {item.name}"
        for each in remains
        for item in each.items
        if not (but_data and item.kept_data)
    ]
    if not lines:
        return
    target = cluster.store.target
    raise failure(
        "GC1165",
        f"{len(lines)} things of a cluster {cluster.name} are there, and the state at "
        f"{cluster.state_url} knows of none",
        detail="\n".join(lines),
        hint=f"if the state was lost: gcluster state repair {target}, then gcluster down {target} "
        "removes them",
        exit_code=Exit.LEFTOVERS,
    )
