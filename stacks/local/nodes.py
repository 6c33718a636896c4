"""Nodes come and go: many at once, each with its intent written before and its result after."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from ipaddress import IPv4Network
from pathlib import Path

import msgspec

from ...schemas.diagnostics import Diagnostic
from ...schemas.stack.bundle import BUNDLES, NODE_FOLDER
from ..io.ssh import ensure_client_key
from ..provider import (
    ProviderError,
    Resource,
    SiteContext,
    SiteEvent,
    provider_error,
)
from . import labels, network, records, ssh, volumes
from .engine import Container, Engine, Network
from .faults import NONE, Faults
from .image import base_image
from .survey import container_name, described, runs_kubernetes

_AT_ONCE = 16
"""Nodes started at the same time; most of the time a start waits for its node's systemd."""


class NodeBase(msgspec.Struct, frozen=True, kw_only=True):
    """The common base of nodes; the same for all that start together."""

    engine: Engine
    network: str
    subnet: IPv4Network
    image: str
    """Reference in the engine; "" when no node has to be created."""
    image_key: str
    private_key: Path
    elastic: str = ""
    """Token of the grow that makes them."""
    faults: Faults = NONE


class _Start(msgspec.Struct, frozen=True, kw_only=True):
    """One node to start: to be made under `intent`, or there already."""

    resource: Resource
    container: str
    id: str | None = None
    """Of a container that exists already."""
    intent: str | None = None
    command: tuple[str, ...]


class _Started(msgspec.Struct, frozen=True, kw_only=True):
    """How it went. An id without host keys: it was made and never answered."""

    id: str | None
    host_keys: tuple[str, ...] = ()
    error: ProviderError | None = None


def prepare(
    context: SiteContext,
    engine: Engine,
    existing: Network | None,
    *,
    net: Resource,
    image_key: str | None,
    makes_nodes: bool,
    elastic: str = "",
    faults: Faults = NONE,
) -> NodeBase:
    """Return what nodes need before they can start, creating what is missing.

    Args:
        context: the site.
        engine: where it is created.
        existing: the network, where there is one.
        net: the network as a resource.
        image_key: a baked image, or None for the base image.
        makes_nodes: whether an image is needed at all.
        elastic: token of the requesting grow.
        faults: faults to simulate on the nodes.

    Raises:
        ProviderError: no free subnet, no such image, or the engine failed.
    """
    reference = _image(context, engine, image_key) if makes_nodes else ""
    home = records.directory(context)
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    return NodeBase(
        engine=engine,
        network=net.name,
        subnet=network.ensure_network(context, engine, existing, net),
        image=reference,
        image_key=image_key or base_image.base_digest(described(context.spec, context.site).image),
        private_key=ensure_client_key(home),
        elastic=elastic,
        faults=faults,
    )


def _image(context: SiteContext, engine: Engine, key: str | None) -> str:
    if key is not None:
        reference = base_image.node_reference(key)
        if not engine.has_image(reference):
            raise provider_error("GC912", f"there is no image {reference} on this machine")
        return reference
    variant = described(context.spec, context.site).image
    if not engine.has_image(base_image.base_reference(variant)):
        what = "building the base image (once on this machine)"
        context.emit(SiteEvent(site=context.site, done=0, total=1, what=what))
    return base_image.ensure_base(engine, context.cache, variant)


def start(
    context: SiteContext,
    node_base: NodeBase,
    missing: Sequence[Resource],
    stopped: Sequence[Container],
) -> None:
    """Make the missing nodes, start the stopped ones, and wait until sshd answers on each.

    Ledger and events are called from this thread only.

    Raises:
        ProviderError: one finding for each node that failed; the others are up.
    """
    starts = [*(_to_start(c) for c in stopped), *_to_make(context, node_base, missing)]
    if not starts:
        return
    with ThreadPoolExecutor(max_workers=min(_AT_ONCE, len(starts))) as pool:
        futures = {pool.submit(_run, context, node_base, item): item for item in starts}
        try:
            findings = _collect(context, futures)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
    if findings:
        raise ProviderError(*findings)


def _collect(
    context: SiteContext, futures: dict[Future[_Started], _Start]
) -> tuple[Diagnostic, ...]:
    findings: list[Diagnostic] = []
    for done, future in enumerate(as_completed(futures), start=1):
        item, outcome = futures[future], future.result()
        _record(context, item, outcome)
        name = item.resource.name
        if outcome.error is None:
            what = f"node {name} is up"
        else:
            what = f"node {name} failed: {outcome.error}"
            findings += (_named(context, name, d) for d in outcome.error.diagnostics)
        context.emit(SiteEvent(site=context.site, done=done, total=len(futures), what=what))
    return tuple(findings)


def _named(context: SiteContext, node: str, finding: Diagnostic) -> Diagnostic:
    return msgspec.structs.replace(
        finding,
        code="GC913",
        summary=f"node {node} did not start: {finding.summary}",
        hint=finding.hint
        or f"run the same command again; gcluster repair {context.spec.name} {node} remakes it",
    )


def _record(context: SiteContext, item: _Start, outcome: _Started) -> None:
    name = item.resource.name
    if item.intent is not None and outcome.id is None:
        context.ledger.failed(item.intent, str(outcome.error))
    elif item.intent is not None and outcome.id is not None:
        context.ledger.created(item.intent, outcome.id)
    if outcome.id is None:
        return
    with records.updated(context) as remembered:
        remembered.ids[item.resource.key] = outcome.id
        if outcome.error is None:
            remembered.ready[name] = records.Ready(outcome.id, outcome.host_keys)


def _to_make(
    context: SiteContext, node_base: NodeBase, missing: Sequence[Resource]
) -> list[_Start]:
    """Give every missing node an address and an intent, before the first one is made."""
    if not missing:
        return []
    with records.updated(context) as remembered:
        given = network.assign(node_base.subnet, [r.name for r in missing], remembered.addresses)
        remembered.addresses.update(given)
    flags = _flags(context, node_base.engine)
    cloud_like = described(context.spec, context.site).boots_stock_image
    intents = context.ledger.intend_many(context.site, missing)
    starts = []
    for resource in missing:
        intent = intents[resource.key]
        object_labels = _labels(context, node_base, resource, given[resource.name], intent)
        name = container_name(context.spec, resource.name)
        command = (
            *("run", "--detach", "--pull=never", f"--name={name}", f"--hostname={resource.name}"),
            *(f"--network={node_base.network}", f"--ip={given[resource.name]}"),
            f"--mac-address={network.hardware_address(given[resource.name])}",
            *(f"--network-alias={resource.name}", "--shm-size=512m"),
            *node_base.faults.disk_flags(resource.name),
            *volumes.flags(context.spec, context.site, resource.pool or ""),
            *labels.flags(object_labels),
            *(ssh.seed_flags(context, node_base.private_key, resource.name) if cloud_like else ()),
            *(*flags, node_base.image, "/sbin/init", *node_base.faults.init_words(resource.name)),
        )
        starts.append(_Start(resource=resource, container=name, intent=intent, command=command))
    return starts


def _flags(context: SiteContext, engine: Engine) -> tuple[str, ...]:
    """Return what nodes are started with; those of Kubernetes see this machine's bundles of it."""
    if not runs_kubernetes(context.spec):
        return tuple(engine.system_container_flags())
    bundles = context.cache / BUNDLES
    bundles.mkdir(parents=True, exist_ok=True, mode=0o700)
    return (*engine.kubernetes_container_flags(), f"--volume={bundles}:{NODE_FOLDER}:ro")


def _labels(
    context: SiteContext, node_base: NodeBase, resource: Resource, address: str, intent: str
) -> dict[str, str]:
    return {
        **labels.owner(context),
        labels.KIND: resource.kind,
        labels.NODE: resource.name,
        labels.POOL: resource.pool or "",
        labels.ROLE: str(resource.properties.get("role", "")),
        labels.SCHEDULER: str(resource.properties.get("scheduler", "")),
        labels.MACHINE: str(resource.properties.get("machine") or ""),
        labels.MOUNTS: str(resource.properties.get("mounts", "")),
        labels.ADDRESS: address,
        labels.IMAGE: node_base.image_key,
        labels.TOKEN: intent,
        labels.ELASTIC: node_base.elastic,
    }


_WAKE = {"paused": "unpause"}
"""State of a container -> the engine's verb that has it run; "start" for all others."""


def _to_start(container: Container) -> _Start:
    resource = Resource(
        kind="node",
        name=container.labels[labels.NODE],
        pool=container.labels.get(labels.POOL),
    )
    command = () if container.running else (_WAKE.get(container.state, "start"), container.name)
    return _Start(resource=resource, container=container.name, id=container.id, command=command)


def _run(context: SiteContext, node_base: NodeBase, item: _Start) -> _Started:
    """Start one node and greet it; called from many threads."""
    made = item.id
    try:
        if made is None:
            node_base.faults.delay_before()
            node_base.faults.meet(item.resource.name)
        if item.command:
            printed = node_base.engine.call(*item.command, timeout_s=120).strip()
            made = made or printed
            node_base.faults.delay_after()
        if item.intent is not None:
            open_storage(context, node_base.engine, item.resource, item.container)
        if described(context.spec, context.site).boots_stock_image:
            host_keys = ssh.first_contact(node_base.engine, item.container)
        else:
            host_keys = ssh.authorize_key(node_base.engine, item.container, node_base.private_key)
    except ProviderError as error:
        if made is None:
            _remove_partial(context, node_base.engine, item.resource.name)
        return _Started(id=made, error=error)
    return _Started(id=made, host_keys=host_keys)


def open_storage(context: SiteContext, engine: Engine, node: Resource, container: str) -> None:
    """Let users write to the empty storage of a new node; raises ProviderError as the engine."""
    script = volumes.opening_script(context.spec, node.pool or "")
    if script:
        engine.inside(container, "sh", "-c", script)


def _remove_partial(context: SiteContext, engine: Engine, node: str) -> None:
    """Remove what a failed `run` left of this very node; a namesake of others is not touched."""
    wanted = {**labels.owner(context), labels.NODE: node}
    engine.remove(c.name for c in engine.containers(wanted))


def remove(
    context: SiteContext, engine: Engine, gone: Iterable[Container], faults: Faults = NONE
) -> None:
    """Remove nodes all at once, and record it in the ledger. Their addresses are free again."""
    containers = tuple(gone)
    faults.delay_before()
    engine.remove(c.name for c in containers)
    faults.delay_after()
    for container in containers:
        name = container.labels[labels.NODE]
        context.ledger.deleted(context.site, f"node/{name}", container.id)
        with records.updated(context) as remembered:
            remembered.ready.pop(name, None)
            remembered.ids.pop(f"node/{name}", None)
            remembered.addresses.pop(name, None)
