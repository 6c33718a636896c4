"""Pools that may be made at another site: which can be, and whether their data is there too."""

from __future__ import annotations

from collections.abc import Iterator

from ...derived.failover import at_site, failover_sites
from ...derived.storage import Mounts, mount_point
from ...diagnostics import PathTuple, listing
from ...spec import CloudSite, FailoverSite, Pool, ScratchStorage
from ..context import CheckContext
from ..registry import Finding, check


def _others(context: CheckContext) -> Iterator[tuple[str, Pool, FailoverSite, PathTuple]]:
    """Yield (pool, itself, its other site, where that is written)."""
    for name, pool in context.pools.items():
        for index, other in enumerate(failover_sites(pool)):
            yield name, pool, other, ("pools", name, "failover", index)


@check("GC142", summary="A pool can't be made at another site.")
def failover_impossible(context: CheckContext) -> Iterator[Finding]:
    """`failover` names other sites at which `up` makes the pool where its own has no machines.

    They are sites of clouds, each once, and the pool is a compute pool of a fixed number of nodes.
    Nodes that come and go with the queue are requested while jobs wait, so they have `spill`: a
    pool at each site. The fixed pool of a controller is where the state of the scheduler is.
    """
    for name, pool in context.pools.items():
        if not pool.failover:
            continue
        path: PathTuple = ("pools", name, "failover")
        if pool.role != "compute":
            yield Finding(
                summary=f'pool "{name}" is a {pool.role}, which is made at one site',
                path=path,
                at_key=True,
                hint="remove failover",
                relies_on=(path, ("pools", name, "role")),
            )
        elif pool.is_elastic:
            yield Finding(
                summary=f'pool "{name}" comes and goes with the queue: `up` makes none of it',
                path=path,
                at_key=True,
                hint="write count: N; or a pool at the other site, and spill: {to: POOL} at the "
                "partition",
                relies_on=(path, ("pools", name, "count")),
            )
        elif pool.site in context.sites and context.cloud(pool) is None:
            yield Finding(
                summary=f'pool "{name}" is at site "{pool.site}", which has what it has',
                path=path,
                at_key=True,
                hint="remove failover; jobs that wait can spill to a pool at another site",
                relies_on=(path, ("sites", pool.site)),
            )
    seen: set[tuple[str, str]] = set()
    for name, pool, other, path in _others(context):
        yield from _wrong_site(context, name, other, path)
        if (name, other.site) in seen or other.site == pool.site:
            yield Finding(
                summary=f'pool "{name}" has site "{other.site}" already',
                path=path,
                hint="name each site once",
                relies_on=(path, ("pools", name, "site")),
            )
        seen.add((name, other.site))


def _wrong_site(
    context: CheckContext, name: str, other: FailoverSite, path: PathTuple
) -> Iterator[Finding]:
    declared = context.declared_sites
    if declared is not None and other.site not in declared:
        suggestion = context.suggest(other.site, declared)
        question = f': did you mean "{suggestion}"?' if suggestion else ""
        yield Finding(
            summary=f'pool "{name}" names an unknown site "{other.site}"{question}',
            path=path,
            hint=f"declared sites: {listing(declared)}",
        )
    elif other.site in context.sites and not isinstance(context.sites[other.site], CloudSite):
        yield Finding(
            summary=f'pool "{name}" can\'t be made at site "{other.site}", which is no cloud\'s',
            path=path,
            hint="name a site of a cloud",
            relies_on=(path, ("sites", other.site)),
        )


@check("GC469", summary="A pool would lack data at another site.")
def failover_without_data(context: CheckContext) -> Iterator[Finding]:
    """What a pool mounts at its own site it mounts at each site of `failover` as well.

    Data doesn't move with machines. Each mount point has a storage there: one that all sites
    reach, or one of that site, such as a copy (`copy_of`) or another scratch. `without` names what
    jobs can do without there. Disks of the nodes themselves are empty anywhere.
    """
    for name, pool, other, path in _others(context):
        if other.site not in context.sites or not context.mounts.are_certain:
            continue
        here = [each for each in context.mounts.of(name) if each not in other.without]
        pools = {**context.pools, name: at_site(pool, other)}
        there = list(Mounts(context.storage, pools, context.declared_sites).of(name))
        points = {mount_point(context.storage[each]) for each in there}
        for each in here:
            storage = context.storage[each]
            if isinstance(storage, ScratchStorage) or mount_point(storage) in points:
                continue
            yield Finding(
                summary=f'pool "{name}" would be without {storage.mount} (storage "{each}") at '
                f'site "{other.site}"',
                path=path,
                hint=f"add a storage of that site at {storage.mount} (copy_of: {each}), or write "
                f"{{site: {other.site}, without: [{each}]}}",
                relies_on=(path, ("storage",), ("pools", name, "site")),
            )
        for index, each in enumerate(other.without):
            if each not in context.storage and context.declared("storage") is not None:
                yield Finding(
                    summary=f'pool "{name}" does without storage "{each}", which is not declared',
                    path=(*path, "without", index),
                    hint=f"declared: {listing(context.declared('storage') or ())}",
                )
