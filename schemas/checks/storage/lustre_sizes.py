"""Sizes and throughput of Lustre, and hosts of the spec that serve file systems."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ...catalog import LustreOffer, ProviderFacts
from ...diagnostics import PathTuple, Severity
from ...spec import CloudSite, LustreStorage, NfsStorage
from ...spec.units import ByteSize
from ...structure.fix.edits import Replace
from ..context import CheckContext
from ..registry import Finding, check
from .lustre import lustre, source_of

_GIB = 2.0**30
_MB = 1e6
_PERSISTENT = "persistent-2"


def _made(context: CheckContext) -> Iterator[tuple[str, LustreStorage, ProviderFacts]]:
    """Yield file systems that are made, with what their provider offers."""
    for name, storage in lustre(context):
        facts = context.site_facts(storage.site)
        if source_of(storage) == "capacity" and facts is not None and facts.lustre:
            yield name, storage, facts


def deployment_of(storage: LustreStorage, facts: ProviderFacts) -> str | None:
    """Return the kind of file system that is meant; None: any that the provider has."""
    if storage.deployment != "auto":
        return storage.deployment
    return _PERSISTENT if any(o.deployment == _PERSISTENT for o in facts.lustre) else None


def offers(storage: LustreStorage, facts: ProviderFacts) -> list[LustreOffer]:
    """Return what a provider offers of the kind that is requested, at any throughput."""
    kind = deployment_of(storage, facts)
    return [
        offer
        for offer in facts.lustre
        if offer.efa == storage.efa and kind in {None, offer.deployment}
    ]


def _needs(name: str, *keys: str) -> tuple[tuple[str, ...], ...]:
    common = ("capacity", "deployment", "efa", "site", *keys)
    return tuple(("storage", name, key) for key in common)


def _mb(value: float) -> str:
    return f"{value:g} MB/s/TiB"


@check("GC415", summary="A Lustre throughput that the provider does not offer.")
def lustre_throughput_not_offered(context: CheckContext) -> Iterator[Finding]:
    """Throughput for each TiB comes in a few steps, given by the provider's catalog entry.

    FSx for Lustre (PERSISTENT_2, SSD) has 125, 250, 500 and 1000 MB/s/TiB. Where there are several
    the spec must choose: it decides the price and which sizes there are.
    """
    for name, storage, facts in _made(context):
        steps = sorted({o.throughput_mb_per_s_per_tib or 0 for o in offers(storage, facts)} - {0})
        if storage.throughput is None:
            if len(steps) > 1:
                yield Finding(
                    summary=f'storage "{name}" does not say its throughput',
                    path=("storage", name),
                    at_key=True,
                    hint=f"add throughput: one of {', '.join(map(_mb, steps))}",
                    relies_on=_needs(name, "throughput"),
                )
            continue
        requested = storage.throughput.value / _MB
        if not steps or any(math.isclose(requested, step) for step in steps):
            continue
        nearest = min(steps, key=lambda step: abs(step - requested))
        yield Finding(
            summary=f'storage "{name}": {facts.name} has no Lustre with {storage.throughput}; '
            f"the nearest is {_mb(nearest)}",
            path=("storage", name, "throughput"),
            hint=f"choose one of {', '.join(map(_mb, steps))}",
            relies_on=_needs(name, "throughput"),
        )


@check("GC416", summary="A Lustre size that the provider does not make.")
def lustre_size_not_offered(context: CheckContext) -> Iterator[Finding]:
    """Managed Lustre is made in steps, given by the provider's catalog entry.

    FSx PERSISTENT_2 (SSD) is 1200 GiB or a multiple of 2400 GiB; with EFA a multiple of 38400,
    19200, 9600 or 4800 GiB at 125, 250, 500 or 1000 MB/s/TiB. Whether EFA can be used is decided
    when the file system is made and can't be changed later.
    """
    for name, storage, facts in _made(context):
        fitting = [o for o in offers(storage, facts) if _has_throughput(o, storage)]
        if not fitting or storage.capacity is None:
            continue
        requested = storage.capacity.value / _GIB
        below = max((_down(offer, requested) for offer in fitting), default=0.0)
        above = min((_up(offer, requested) for offer in fitting), default=math.inf)
        if math.isclose(below, requested) or math.isclose(above, requested):
            continue
        near = [ByteSize(size * _GIB) for size in (below, above) if 0 < size < math.inf]
        path = ("storage", name, "capacity")
        yield Finding(
            summary=f'storage "{name}": {facts.name} makes no Lustre of {storage.capacity}'
            f"{_kind(storage)}",
            path=path,
            hint=f"the nearest {'sizes are' if len(near) > 1 else 'size is'} "
            f"{' and '.join(map(str, near))} ({_rule(fitting)})",
            relies_on=_needs(name, "throughput"),
            fix=Replace(path, str(near[-1])) if above < math.inf else None,
        )


def _has_throughput(offer: LustreOffer, storage: LustreStorage) -> bool:
    if storage.throughput is None or offer.throughput_mb_per_s_per_tib is None:
        return True
    return math.isclose(offer.throughput_mb_per_s_per_tib, storage.throughput.value / _MB)


def _kind(storage: LustreStorage) -> str:
    """Say what the sizes depend on."""
    parts = [str(storage.throughput)] if storage.throughput is not None else []
    parts += ["EFA"] if storage.efa else []
    return f" with {' and '.join(parts)}" if parts else ""


def _rule(fitting: list[LustreOffer]) -> str:
    """Write the steps: 1200 GiB, or from 2400 GiB on in steps of 2400 GiB."""
    rules = [f"{size:g} GiB" for offer in fitting for size in offer.sizes_gib]
    for offer in fitting:
        most = "on" if offer.maximum_gib is None else f"to {offer.maximum_gib:g} GiB"
        rules.append(f"from {offer.minimum_gib:g} GiB {most} in steps of {offer.step_gib:g} GiB")
    return ", or ".join(dict.fromkeys(rules))


def _up(offer: LustreOffer, requested: float) -> float:
    """Return the smallest size of an offer in GiB that holds what is requested; inf: none does."""
    steps = max(0, math.ceil((requested - offer.minimum_gib) / offer.step_gib - 1e-9))
    stepped = offer.minimum_gib + steps * offer.step_gib
    if offer.maximum_gib is not None and stepped > offer.maximum_gib:
        stepped = math.inf
    return min([stepped, *(size for size in offer.sizes_gib if size >= requested)])


def _down(offer: LustreOffer, requested: float) -> float:
    """Return the largest size of an offer in GiB that is at most the requested; 0: none."""
    most = min(requested, offer.maximum_gib or math.inf)
    steps = math.floor((most - offer.minimum_gib) / offer.step_gib + 1e-9)
    stepped = offer.minimum_gib + steps * offer.step_gib if steps >= 0 else 0.0
    return max([stepped, *(size for size in offer.sizes_gib if size <= requested)])


@check("GC420", summary="A kind of Lustre that the provider does not have.")
def lustre_deployment_not_offered(context: CheckContext) -> Iterator[Finding]:
    """`deployment` is a kind of FSx for Lustre, and scratch file systems have no EFA.

    Other providers have one kind, or derive it from the throughput; leave `deployment` out there.
    """
    for name, storage, facts in _made(context):
        kinds = {offer.deployment for offer in facts.lustre}
        if storage.deployment == "auto":
            continue
        path = ("storage", name, "deployment")
        if storage.deployment not in kinds:
            yield Finding(
                summary=f'storage "{name}": {facts.name} has no Lustre of the kind '
                f"{storage.deployment}",
                path=path,
                hint="remove deployment",
                relies_on=_needs(name),
            )
        elif not offers(storage, facts):
            yield Finding(
                summary=f'storage "{name}": {storage.deployment} can\'t be reached over EFA',
                path=path,
                hint="remove efa, or write deployment: persistent-2",
                relies_on=_needs(name),
            )


@check("GC468", summary="A key of one's own for a scratch file system.")
def key_of_scratch(context: CheckContext) -> Iterator[Finding]:
    """FSx encrypts scratch file systems by keys of its own and takes no other.

    "If you create a scratch file system, the data is encrypted using keys managed by Amazon FSx"
    (FSx for Lustre User Guide, Encrypting data at rest; read 2026-11). Where the site's `kms_key`
    is to hold for all data, take a persistent one.
    """
    for name, storage, _ in _made(context):
        site = context.sites.get(storage.site or "")
        of_site = isinstance(site, CloudSite) and site.kms_key is not None
        if storage.deployment != "scratch-2" or not (storage.kms_key or of_site):
            continue
        own = storage.kms_key is not None
        path: PathTuple = ("storage", name, "kms_key" if own else "deployment")
        yield Finding(
            summary=f'storage "{name}": a scratch file system is not encrypted by '
            + ("a key of one's own" if own else f'the key of site "{storage.site}"'),
            path=path,
            at_key=own,
            severity=Severity.ERROR if own else Severity.WARNING,
            hint="write deployment: persistent-2" + (", or remove kms_key" if own else ""),
            relies_on=(*_needs(name), path, ("sites",)),
        )


@check("GC419", summary="Lustre servers have something else to do.")
def lustre_servers_not_dedicated(context: CheckContext) -> Iterator[Finding]:
    """Hosts that serve Lustre do nothing else: no jobs, no logins, no scheduler.

    A job that fills a server's memory stops the file system for all users. Give them a pool of
    their own that no partition names; without any `partitions` every compute pool takes jobs.
    """
    scheduler = context.scheduler
    partitions = scheduler.partitions if scheduler is not None else {}
    in_partition = {pool: name for name, one in partitions.items() for pool in one.pools}
    for name, storage in lustre(context):
        pool = context.pools.get(storage.servers.pool) if storage.servers is not None else None
        if storage.servers is None or pool is None:
            continue
        word = storage.servers.pool
        if pool.role != "compute":
            busy = f"is a {pool.role}"
        elif word in in_partition:
            busy = f'runs the jobs of partition "{in_partition[word]}"'
        elif not partitions and scheduler is not None:
            busy = "runs jobs: without partitions every compute pool does"
        else:
            continue
        path: PathTuple = ("storage", name, "servers", "pool")
        yield Finding(
            summary=f'storage "{name}" is served by pool "{word}", which {busy}',
            path=path,
            hint="give the servers a pool of their own, and name partitions without it",
            relies_on=(path, ("pools", word, "role"), ("scheduler", "partitions")),
        )


def _exports(context: CheckContext) -> Iterator[tuple[str, NfsStorage]]:
    for name, storage in context.storage.items():
        if isinstance(storage, NfsStorage):
            yield name, storage


@check("GC421", summary="An NFS storage names no server.")
def nfs_without_server(context: CheckContext) -> Iterator[Finding]:
    """`server` is a pool whose first host exports the folder, or the address of a server."""
    controllers = [name for name, pool in context.pools.items() if pool.role == "controller"]
    for name, storage in _exports(context):
        if storage.server is None:
            yield Finding(
                summary=f'storage "{name}" does not say who serves it',
                path=("storage", name),
                at_key=True,
                hint=f"add server: {(controllers or ['10.0.0.9'])[0]}",
                relies_on=(("storage", name, "server"),),
            )


@check("GC422", summary="An NFS server looks like a pool, but is none.")
def nfs_server_not_a_pool(context: CheckContext) -> Iterator[Finding]:
    """A word that is no pool is taken for the address of a server.

    So a misspelt pool would be looked up in the network. A word that is close to a pool's name is
    an error, any other without a dot a warning: write the address or the full name of the server.
    """
    hosts = {host for group in context.host_groups for host in group.names or ()}
    pools = context.declared_pools or frozenset()
    for name, storage in _exports(context):
        word = storage.server
        if word is None or word in pools or word in hosts or "." in word or ":" in word:
            continue
        suggestion = context.suggest(word, pools)
        question = f': did you mean "{suggestion}"?' if suggestion else ""
        path: PathTuple = ("storage", name, "server")
        yield Finding(
            summary=f'storage "{name}": server "{word}" is neither a pool nor an address{question}',
            path=path,
            severity=Severity.ERROR if suggestion else Severity.WARNING,
            hint="name a pool, or a server by its address or full name",
            suggestion=suggestion,
            relies_on=(path, ("pools", "*", "hosts")),
        )


@check("GC423", summary="A pool that runs jobs serves NFS.")
def nfs_server_is_compute_pool(context: CheckContext) -> Iterator[Finding]:
    """A node that runs jobs is a bad file server: a job can fill it or take it down.

    Let a controller or login pool serve, or a server that exists. Where the pool may have no node
    at all, there is nothing that could serve.
    """
    for name, storage in _exports(context):
        pool = context.pools.get(storage.server or "")
        site = None if pool is None else context.sites.get(pool.site)
        if pool is None or pool.role != "compute" or (site is not None and site.is_cloud):
            continue  # a cloud's are refused (GC449)
        path: PathTuple = ("storage", name, "server")
        empty = pool.least == 0
        never = "; it may have no node" if empty else ""
        yield Finding(
            summary=f'storage "{name}": its server, pool "{storage.server}", runs jobs{never}',
            path=path,
            severity=Severity.ERROR if empty else Severity.WARNING,
            hint="let a controller or login pool serve it, or a server that exists",
            relies_on=(
                path,
                ("pools", storage.server or "", "role"),
                ("pools", storage.server or "", "count"),
            ),
        )
