"""Bring a local site to its graph, and take it away again; both can be killed and repeated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...inventory.hosts import Host
from ..provider import (
    Leftover,
    Resource,
    ResourceChange,
    SiteContext,
    SiteEvent,
    provider_error,
)
from . import faults, labels, nodes, records, survey, volumes
from .engine import Container, Network, Volume, find_engine
from .nodes import prepare
from .survey import Survey


def apply(context: SiteContext) -> None:
    """Remove what the spec no longer has, create what is missing, start what is stopped.

    Raises:
        ProviderError: one finding for each node that failed; the others are up.
    """
    found = survey.survey(context)
    _refuse_obstacles(context, found)
    _settle(context, found)
    acts = [c for c in survey.changes(context, found) if c.effect != "keep"]
    if not acts:
        return
    nodes.remove(context, found.engine, _named(found, acts, "replace", "delete"))
    _raise(context, found, acts)


def replace(context: SiteContext, names: Iterable[str]) -> None:
    """Remove the named nodes and bring the site to its graph; raises as `apply`."""
    found = survey.survey(context)
    _refuse_obstacles(context, found)
    _settle(context, found)
    nodes.remove(context, found.engine, [found.nodes[n] for n in names if n in found.nodes])
    apply(context)


def power_on(context: SiteContext, names: Iterable[str]) -> None:
    """Start the named nodes' containers where they have stopped.

    Raises:
        ProviderError: the engine can't.
    """
    found = survey.survey(context)
    named = [found.nodes[name] for name in names if name in found.nodes]
    stopped = [container.name for container in named if not container.running]
    if stopped:
        found.engine.call("start", *stopped)


def _raise(context: SiteContext, found: Survey, acts: list[ResourceChange]) -> None:
    missing = [
        c.resource for c in acts if c.effect in {"create", "replace"} and c.resource.kind == "node"
    ]
    created = [c.resource for c in acts if c.effect == "create" and c.resource.kind == "volume"]
    volumes.make(context, found.engine, created)
    node_base = prepare(
        context,
        found.engine,
        found.network,
        net=survey.graph(context.spec, context.site).resources[0],
        image_key=context.image,
        makes_nodes=bool(missing),
        # Nodes of the spec are hit where they start as machines of a cloud do, and nowhere else.
        faults=faults.injected() if _is_cloud_like(context) else faults.NONE,
    )
    nodes.start(context, node_base, missing, _named(found, acts, "update"))


def _is_cloud_like(context: SiteContext) -> bool:
    return survey.described(context.spec, context.site).boots_stock_image


def _named(found: Survey, acts: list[ResourceChange], *effects: str) -> list[Container]:
    return [found.nodes[c.resource.name] for c in acts if c.effect in effects]


def _refuse_obstacles(context: SiteContext, found: Survey) -> None:
    refusal = survey.obstacle(context, found)
    if refusal is not None:
        raise refusal


def _settle(context: SiteContext, found: Survey) -> None:
    """Record in the ledger what a killed run didn't: by the tokens on existing resources."""
    there: dict[str, Container | Network | Volume] = {
        **{f"node/{name}": container for name, container in found.nodes.items()},
        **{f"volume/{name}": volume for name, volume in found.volumes.items()},
    }
    if found.network is not None:
        there[f"network/{found.network.name}"] = found.network
    known = records.load(context).ids
    unrecorded = {key: thing for key, thing in there.items() if known.get(key) != thing.id}
    vanished = {key: gone for key, gone in known.items() if key not in there}
    if not (unrecorded or vanished):
        return
    for key, gone in vanished.items():
        context.ledger.deleted(context.site, key, gone)
    _record(context, unrecorded)
    with records.updated(context) as remembered:
        remembered.ids = {key: thing.id for key, thing in there.items()}
        for name, container in found.nodes.items():
            remembered.addresses[name] = container.labels[labels.ADDRESS]


def _settle_nodes(context: SiteContext, found: Survey, names: Iterable[str]) -> None:
    """Record in the ledger only nodes that a killed run created: others may be in progress."""
    there = {name: found.nodes[name] for name in names if name in found.nodes}
    known = records.load(context).ids
    unrecorded = {n: c for n, c in there.items() if known.get(f"node/{n}") != c.id}
    if not unrecorded:
        return
    _record(context, {f"node/{name}": container for name, container in unrecorded.items()})
    with records.updated(context) as remembered:
        for name, container in unrecorded.items():
            remembered.ids[f"node/{name}"] = container.id
            remembered.addresses[name] = container.labels[labels.ADDRESS]


def _record(context: SiteContext, unrecorded: Mapping[str, Container | Network | Volume]) -> None:
    """Bring the ledger to what exists: resource key -> what the engine lists."""
    found = []
    for key, thing in unrecorded.items():
        kind, _, name = key.partition("/")
        resource = Resource(kind=kind, name=name, pool=thing.labels.get(labels.POOL))
        found.append((thing.labels[labels.TOKEN], resource, thing.id))
    context.ledger.adopt(context.site, found)


def existing(context: SiteContext) -> tuple[Leftover, ...]:
    """Return everything that carries this cluster's name, id and site, builders included."""
    engine = find_engine(survey.described(context.spec, context.site).runtime)
    owner = labels.owner(context)
    found = [
        Leftover(
            kind=c.labels.get(labels.KIND, "node"),
            name=c.labels.get(labels.NODE) or c.name,
            provider_id=c.id,
        )
        for c in engine.containers(owner)
    ]
    found += [
        Leftover(
            kind="volume",
            name=volume.name,
            provider_id=volume.name,
            kept_data=bool(storage) and storage not in context.delete_data,
            storage=(storage,) if storage else (),
            usd_per_month=0.0 if storage else None,
        )
        for volume in engine.volumes(owner)
        for storage in [volume.labels.get(labels.STORAGE)]
    ]
    found += [
        Leftover(kind="network", name=n.name, provider_id=n.id) for n in engine.networks(owner)
    ]
    return tuple(found)


def destroy(context: SiteContext) -> None:
    """Remove containers, networks and keys of this cluster's name and id, nothing else.

    Volumes of a storage hold data: those in `context.delete_data` are removed.

    Raises:
        ProviderError: the engine refused; what is left is found by its labels the next time.
    """
    engine = find_engine(survey.described(context.spec, context.site).runtime)
    left = [item for item in existing(context) if not item.kept_data]
    by_node = {c.id: c.labels[labels.NODE] for c in engine.containers(labels.owner(context))}
    containers = [item for item in left if item.provider_id in by_node]
    engine.remove(item.provider_id for item in containers)
    for item in left:
        if item.kind == "network":
            engine.call("network", "rm", item.name)
        elif item.kind == "volume":
            engine.remove_volume(item.name)
    for done, item in enumerate(left, start=1):
        name = by_node.get(item.provider_id, item.name)
        context.ledger.deleted(context.site, f"{item.kind}/{name}", item.provider_id)
        what = f"{item.kind} {name} is gone"
        context.emit(SiteEvent(site=context.site, done=done, total=len(left), what=what))
    records.forget(context)


def grow(context: SiteContext, pool: str, names: Iterable[str], token: str) -> tuple[Host, ...]:
    """Create the named nodes in addition to those of the graph; existing ones are only started.

    Raises:
        ProviderError: the site isn't up, or nodes failed; the others are up.
    """
    found = survey.survey(context)
    _refuse_obstacles(context, found)
    wanted = list(names)
    _settle_nodes(context, found, wanted)
    if found.network is None:
        raise provider_error(
            "GC917", f'site "{context.site}" is not up: there is no network to grow in'
        )
    missing = [
        survey.node_resource(context.spec, context.site, pool, name)
        for name in wanted
        if name not in found.nodes
    ]
    ready = records.load(context).ready
    stopped = [
        c
        for name in wanted
        if (c := found.nodes.get(name)) is not None and not (c.running and name in ready)
    ]
    node_base = prepare(
        context,
        found.engine,
        found.network,
        net=survey.graph(context.spec, context.site).resources[0],
        image_key=context.image,
        makes_nodes=bool(missing),
        elastic=token,
        faults=faults.injected(),
    )
    nodes.start(context, node_base, missing, stopped)
    return tuple(h for h in survey.hosts(context, survey.survey(context)) if h.name in set(wanted))


def shrink(context: SiteContext, names: Iterable[str]) -> None:
    """Remove elastic nodes; those that are gone already are fine.

    Raises:
        ProviderError: a node belongs to the spec.
    """
    found = survey.survey(context)
    requested = list(names)
    _settle_nodes(context, found, requested)
    wanted = [found.nodes[name] for name in requested if name in found.nodes]
    fixed = [c.labels[labels.NODE] for c in wanted if not c.labels.get(labels.ELASTIC)]
    if fixed:
        raise provider_error(
            "GC917",
            f"node {fixed[0]} belongs to the spec, it isn't elastic",
            hint="lower the pool's count instead",
        )
    if wanted:
        nodes.remove(context, found.engine, wanted, faults.injected())
