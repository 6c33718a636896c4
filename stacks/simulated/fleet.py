"""How the simulated provider makes and removes nodes: intents, bulk calls, and lost answers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from gcluster.schemas.diagnostics import Diagnostic, Severity
from gcluster.schemas.spec import ClusterSpec, SimulatedSite
from gcluster.stacks.provider import (
    Resource,
    ResourceChange,
    ResourceGraph,
    SiteContext,
    SiteEvent,
)
from gcluster.stacks.simulated import stamps
from gcluster.stacks.simulated.cloud import Cloud, Node, Order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

_BULK = 1000
"""Nodes per create call, about what the clouds' own bulk calls take."""


def described(context: SiteContext) -> SimulatedSite:
    """Return what the spec says about a simulated site."""
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


def changes(graph: ResourceGraph, there: Mapping[str, Node]) -> tuple[ResourceChange, ...]:
    """Compare the graph with what is there; what is no longer wanted comes last."""
    compared = [_change(wanted, there.get(wanted.name)) for wanted in graph.resources]
    names = {wanted.name for wanted in graph.resources}
    for name in sorted(there.keys() - names):
        left = Resource(kind="node", name=name, pool=there[name].pool)
        if there[name].elastic:
            compared.append(ResourceChange(effect="keep", resource=left, reason="elastic"))
        else:
            reason = "the spec no longer asks for it"
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
    """Return what is said about a node that could not be had."""
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
    """Create nodes in bulk, each with its intent before; unclear answers are resolved by listing.

    A node that was refused stays missing and its intent is closed as failed.
    """
    for start in range(0, len(missing), _BULK):
        batch = missing[start : start + _BULK]
        intents = context.ledger.intend_many(context.site, batch)
        answer = site.create(_order(wanted, intents[wanted.key], elastic) for wanted in batch)
        there = site.list() if answer.errors else {}
        lost = {n: there[n].id for n in answer.errors if n in there}
        known = {**answer.ids, **lost}
        context.ledger.created_many({intents[f"node/{n}"]: i for n, i in known.items()})
        refused = {intents[f"node/{n}"]: e for n, e in answer.errors.items() if n not in known}
        _at_once(context.ledger.failed, refused.items())
        site.confirm(known)
        done = start + len(batch)
        what = f"{len(known)} of {len(batch)} nodes created"
        event = SiteEvent(site=context.site, done=done, total=len(missing), what=what)
        context.emit(event)


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


def settle(context: SiteContext, site: Cloud) -> None:
    """Tell the ledger what an earlier, killed run created and didn't tell."""
    untold = [node for node in site.list().values() if not node.confirmed]
    if untold:
        context.ledger.created_many({node.token: node.id for node in untold})
        site.confirm(node.name for node in untold)


def delete(context: SiteContext, site: Cloud, names: Iterable[str]) -> None:
    """Delete nodes in one call, forget their stamps, and tell the ledger."""
    wanted = list(names)
    if not wanted:
        return
    gone = site.delete(wanted)
    stamps.forget(context, gone)
    told = ((context.site, f"node/{name}", provider_id) for name, provider_id in gone.items())
    _at_once(context.ledger.deleted, told)


def _at_once(tell: Callable[..., None], items: Iterable[tuple[str, ...]]) -> None:
    """Tell the ledger about many nodes from many threads: it writes those together."""
    with ThreadPoolExecutor(max_workers=64) as pool:
        list(pool.map(lambda item: tell(*item), items))
