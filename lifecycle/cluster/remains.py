"""What is at the sites of a cluster of whose nodes its state knows nothing: lost, never removed.

A state that is empty may be that of a cluster that was never made, or one that got lost. This
machine's index and the tags that everything wears tell which.
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
    from .sites import OpenSite


class Remains(msgspec.Struct, frozen=True, kw_only=True):
    """Something at a site that carries the cluster's name."""

    site: str
    cluster_id: str
    """The id that it carries; where things carry none, the cluster's own."""
    items: tuple[Leftover, ...]


def find_remains(
    cluster: Cluster, sites: Iterable[OpenSite], *, by_tag: bool
) -> tuple[Remains, ...]:
    """Return what carries the cluster's name, and is of no other cluster that this machine knows.

    Args:
        cluster: whose state knows nothing.
        sites: its sites.
        by_tag: sites whose things carry no id are asked too, although nothing hints at any.

    Raises:
        ProviderError: a site can't be asked.
    """
    lost = {entry.id for entry in remembered(cluster.state_url)}
    others = {entry.id for entry in known_clusters()} - lost
    found = []
    for site in sites:
        wearing = site.provider.ids_in_use(site.context)
        asked = set(wearing - others | lost)
        if by_tag and not asked:
            asked = {site.context.cluster_id}
        for identity in sorted(asked):
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
    """Refuse to take a cluster for one that was never made, where something of it is there.

    Args:
        cluster: the cluster.
        sites: its sites.
        by_tag: every site is asked, and one that can't be is an error.
        but_data: data that a `down` kept is no sign of a cluster.

    Raises:
        LifecycleError: its state has no identity, and something of it is there (GC1165).
        ProviderError: with `by_tag`, a site can't be asked.
    """
    if cluster.store.identity() is not None:
        return
    try:
        remains = find_remains(cluster, sites, by_tag=by_tag)
    except ProviderError:
        if by_tag:
            raise
        return  # whoever goes on asks it again, and says so
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
