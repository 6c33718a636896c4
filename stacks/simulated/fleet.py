"""How the simulated provider makes and removes nodes: intents, bulk calls, and lost answers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from ...inventory.hosts import pool_host_names
from ...schemas.diagnostics import Diagnostic, Severity
from ...schemas.spec import ClusterSpec, SimulatedSite
from ..provider import (
    ProviderError,
    Resource,
    ResourceChange,
    ResourceGraph,
    SiteContext,
    SiteEvent,
)
from . import stamps
from .cloud import Cloud, Node, Order

_BULK = 1000
"""Nodes per create call, about what the clouds' own bulk calls take."""


def described(context: SiteContext) -> SimulatedSite:
    """Return the spec's settings of a simulated site."""
    found = context.spec.sites[context.site]
    if not isinstance(found, SimulatedSite):
        raise TypeError(f"site {context.site!r} is not simulated")
    return found


def directory(context: SiteContext) -> Path:
    """Return where this site's files are."""
    return context.workdir / f"simulated-{context.site}"


def cloud(context: SiteContext) -> Cloud:
    """Open the file that is this site."""
    path = directory(context) / "nodes.json"
    return Cloud(path, described(context), context.spec.name, context.cluster_id)


def resource(spec: ClusterSpec, pool: str, node: str) -> Resource:
    """Return the resource of one node."""
    pool_spec = spec.pools[pool]
    properties: dict[str, str | int | bool | None] = {
        "machine": pool_spec.machine,
        "role": pool_spec.role,
    }
    return Resource(kind="node", name=node, pool=pool, properties=properties)


def changes(
    graph: ResourceGraph, there: Mapping[str, Node], given_up: Collection[str] = ()
) -> tuple[ResourceChange, ...]:
    """Compare the graph with what is there; what is no longer wanted comes last."""
    compared = [_change(wanted, there.get(wanted.name)) for wanted in graph.resources]
    names = {wanted.name for wanted in graph.resources}
    for name in sorted(there.keys() - names):
        left = Resource(kind="node", name=name, pool=there[name].pool)
        if there[name].elastic:
            compared.append(ResourceChange(effect="keep", resource=left, reason="elastic"))
        else:
            reason = "it was given up" if name in given_up else "it is no longer in the spec"
            compared.append(ResourceChange(effect="delete", resource=left, reason=reason))
    return tuple(compared)


def _change(wanted: Resource, node: Node | None) -> ResourceChange:
    if node is None:
        return ResourceChange(effect="create", resource=wanted, reason="it does not exist")
    if not node.booted:
        return ResourceChange(effect="replace", resource=wanted, reason="it never answered")
    if (node.role, node.machine) != (wanted.properties["role"], wanted.properties["machine"]):
        return ResourceChange(effect="replace", resource=wanted, reason="its kind changed")
    return ResourceChange(effect="keep", resource=wanted)


def finding(change: ResourceChange) -> Diagnostic:
    """Return the message about a node that was not available."""
    reason = (
        "the site refused to create it"
        if change.effect == "create"
        else f"it was created, but {change.reason}"
    )
    return Diagnostic(
        code="GC918",
        severity=Severity.ERROR,
        summary=f"node {change.resource.name} is missing: {reason}",
        hint="run the same command again, or lower the pool's count",
    )


def create(
    context: SiteContext, site: Cloud, missing: Sequence[Resource], elastic: str = ""
) -> None:
    """Create nodes in bulk, each with its intent before.

    A node that was refused stays missing and its intent is closed as failed, as all are where
    the whole call was; what became of one
    whose answer got lost is seen in the end, when all that was created is listed.
    """
    for start in range(0, len(missing), _BULK):
        batch = missing[start : start + _BULK]
        intents = context.ledger.intend_many(context.site, batch)
        try:
            answer = site.create([_order(wanted, intents[wanted.key], elastic) for wanted in batch])
        except ProviderError as error:  # it was throttled, and did nothing
            why = error.diagnostics[0].summary
            _at_once(context.ledger.failed, ((intent, why) for intent in intents.values()))
            raise
        context.ledger.created_many({intents[f"node/{n}"]: i for n, i in answer.ids.items()})
        refused = {intents[f"node/{n}"]: error for n, error in answer.errors.items()}
        _at_once(context.ledger.failed, refused.items())
        done = start + len(batch)
        what = f"{len(answer.ids)} of {len(batch)} nodes created"
        event = SiteEvent(site=context.site, done=done, total=len(missing), what=what)
        context.emit(event)
    names = frozenset(wanted.name for wanted in missing)
    if names:
        settle(context, site, mine=names.__contains__, wanted=names)


def _order(wanted: Resource, intent: str, elastic: str) -> Order:
    machine = wanted.properties["machine"]
    return Order(
        name=wanted.name,
        pool=wanted.pool or "",
        role=str(wanted.properties["role"]),
        machine=None if machine is None else str(machine),
        token=intent,
        elastic=elastic,
    )


def settle(
    context: SiteContext,
    site: Cloud,
    *,
    mine: Callable[[str], bool] = bool,
    wanted: Collection[str] = (),
) -> None:
    """Bring the ledger up to date after a killed run: created, missing and removed nodes.

    A listing lags behind, so unclear cases are waited for.

    Args:
        context: has the ledger.
        site: to query.
        mine: returns whether a node's name is this caller's: others may be changing
        the rest.
        wanted: nodes that are about to be requested: an intent of theirs that created
        nothing stays open, so that the next call has its token.
    """
    intents = _of(context.ledger.unclear(context.site), mine)
    known = _of(context.ledger.known(context.site), mine)
    listed = [node for node in site.list().values() if mine(node.name)]
    if intents or known.keys() - {node.id for node in listed}:
        site.catch_up()
        listed = [node for node in site.list().values() if mine(node.name)]
    unrecorded = [node for node in listed if node.id not in known]
    made = {node.token for node in unrecorded}
    context.ledger.adopt(
        context.site,
        ((n.token, Resource(kind="node", name=n.name, pool=n.pool), n.id) for n in unrecorded),
    )
    requested = frozenset(wanted) - {node.name for node in listed}
    unmade = [i for i, name in intents.items() if i not in made and name not in requested]
    _at_once(context.ledger.failed, ((intent, "it was never made") for intent in unmade))
    there = {node.id for node in listed}
    gone = [(context.site, f"node/{name}", i) for i, name in known.items() if i not in there]
    _at_once(context.ledger.deleted, gone)


def _of(book: Mapping[str, str], mine: Callable[[str], bool]) -> dict[str, str]:
    """Return intent or id -> name, for this caller's nodes."""
    names = {key: place.removeprefix("node/") for key, place in book.items()}
    return {key: name for key, name in names.items() if mine(name)}


def elastic(spec: ClusterSpec, site: str) -> frozenset[str]:
    """Return the names of the nodes that come and go: others than `apply` make and remove them."""
    return frozenset(
        node
        for name, pool in spec.pools.items()
        if pool.site == site and pool.is_elastic
        for node in {*pool_host_names(name, msgspec.structs.replace(pool, count=pool.most))}
        - {*pool_host_names(name, pool)}
    )


def delete(context: SiteContext, site: Cloud, names: Iterable[str]) -> tuple[str, ...]:
    """Drop the stamps of nodes, delete them in one call, record it; return what is left.

    The stamps are dropped first: after a kill in between, a recreated node would seem to have them.
    """
    wanted = frozenset(names)
    if not wanted:
        return ()
    there = {name: node.id for name, node in site.list().items() if name in wanted}
    stamps.forget(context, there)
    site.delete(there.values())
    left = site.list().keys() & there.keys()
    gone = {name: identifier for name, identifier in there.items() if name not in left}
    deletions = ((context.site, f"node/{name}", provider_id) for name, provider_id in gone.items())
    _at_once(context.ledger.deleted, deletions)
    return tuple(sorted(left))


def _at_once(emit: Callable[..., None], items: Iterable[tuple[str, ...]]) -> None:
    """Record many nodes in the ledger from many threads: it writes those together."""
    with ThreadPoolExecutor(max_workers=64) as pool:
        list(pool.map(lambda item: emit(*item), items))
