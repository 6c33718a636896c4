"""Storage and the nodes that mount it: at one site, or joined by a link that is fast enough."""

from __future__ import annotations

from collections.abc import Iterator

from ..diagnostics import PathTuple, Severity
from ..spec import ObjectStorage, ScratchStorage
from .context import CheckContext
from .links import cut_off
from .registry import Finding, check

_SLOW_S = 0.010
"""Round trip in seconds from which a mounted file system is called slow: opening, reading and
closing a file are at least three of them, so that 1,000 small files take half a minute."""


def _far(context: CheckContext) -> Iterator[tuple[str, str, str, PathTuple]]:
    """Yield (storage, its site, another site that mounts it, where that is said)."""
    for name, storage in context.storage.items():
        home = context.mounts.home(name)
        if home is None or isinstance(storage, ObjectStorage | ScratchStorage):
            continue
        if storage.pools:
            for index, pool in enumerate(storage.pools):
                if pool in context.pools and context.pools[pool].site != home:
                    where = ("storage", name, "pools", index)
                    yield name, home, context.pools[pool].site, where
        elif storage.site is None:
            for site in context.pools_of_site:
                if site != home:
                    yield name, home, site, ("storage", name)


@check("GC407", summary="Nodes mount storage of a site that no route leads to.")
def storage_out_of_reach(context: CheckContext) -> Iterator[Finding]:
    """Nodes at another site reach a file system over a link between the two sites.

    `links` says how sites are joined; WireGuard is set up by gcluster, other routes exist already.
    Buckets need no link. A site whose nodes can't even reach the controllers is told as such
    (GC710). Nothing is said about two sites that are no clouds: their networks may be
    routed without gcluster.
    """
    said = cut_off(context)
    for name, home, site, path in _far(context):
        if context.are_apart(home, site) and not {home, site} & said.keys():
            yield Finding(
                summary=f'storage "{name}" stands at site "{home}", but nodes at "{site}" mount it '
                "and no link joins the two",
                path=path,
                at_key=path == ("storage", name),
                hint=f"add to links: {{between: [{home}, {site}]}}, or name the pools that mount "
                "it",
                relies_on=(
                    ("storage", name),
                    ("links",),
                    ("pools", "*", "site"),
                ),
            )


@check("GC408", summary="Nodes mount storage over a slow link.")
def storage_far_away(context: CheckContext) -> Iterator[Finding]:
    """A file system over a wide-area link is slow in proportion to the round trip.

    Opening, reading and closing a file wait for at least three round trips: at 30 ms, 1,000 small
    files, such as the import of a Python package, take a minute and a half. Keep a copy at the
    other site (`copy_of`), or let only pools at its own site mount it. From 10 ms on this is said,
    where the link gives its `latency`.
    """
    for name, home, site, path in _far(context):
        latency = context.routes.latency(home, site)
        if latency is None or latency < _SLOW_S:
            continue
        yield Finding(
            summary=f'nodes at site "{site}" mount storage "{name}" over {latency * 1000:g} ms',
            path=path,
            at_key=path == ("storage", name),
            severity=Severity.WARNING,
            hint=f'keep a copy at site "{site}", mounted at '
            f"{context.storage[name].mount} there, with copy_of: {name}",
            relies_on=(("storage", name), ("links",), ("pools", "*", "site")),
        )


@check("GC409", summary="Local disks are named for nodes of another site.")
def local_disks_elsewhere(context: CheckContext) -> Iterator[Finding]:
    """local-nvme is the nodes' own disks: `pools` are pools of its `site`."""
    for name, storage in context.storage.items():
        if not isinstance(storage, ScratchStorage) or storage.site is None:
            continue
        for index, word in enumerate(storage.pools):
            pool = context.pools.get(word)
            if pool is None or pool.site == storage.site:
                continue
            path: PathTuple = ("storage", name, "pools", index)
            yield Finding(
                summary=f'storage "{name}" is for site "{storage.site}", '
                f'but pool "{word}" is at "{pool.site}"',
                path=path,
                hint="leave site out: the pools say where the disks are",
                relies_on=(path, ("storage", name, "site"), ("pools", word, "site")),
            )
