"""What nodes stand on: the network made or found, the image, the key."""

from __future__ import annotations

from ipaddress import IPv4Network

from ..io.ssh import ensure_client_key
from ..provider import (
    ProviderError,
    Resource,
    SiteContext,
    SiteEvent,
    provider_error,
)
from . import image, labels, network, records
from .engine import Engine, Network
from .faults import NONE, Faults
from .nodes import NodeBase
from .survey import described

_TRIES = 8
"""Subnets to try when other clusters take the free ones at the same time."""


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
    """Return what nodes need before they can start, making what is missing.

    Args:
        context: the site.
        engine: where it is made.
        existing: the network, where there is one.
        net: the network as a resource.
        image_key: a baked image, or None for the base image.
        makes_nodes: whether an image is needed at all.
        elastic: token of the grow that asks.
        faults: what goes wrong with the nodes.

    Raises:
        ProviderError: no free subnet, no such image, or the engine failed.
    """
    reference = _image(context, engine, image_key) if makes_nodes else ""
    home = records.directory(context)
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    return NodeBase(
        engine=engine,
        network=net.name,
        subnet=_network(context, engine, existing, net),
        image=reference,
        image_key=image_key or image.base_digest(described(context.spec, context.site).image),
        private_key=ensure_client_key(home),
        elastic=elastic,
        faults=faults,
    )


def _image(context: SiteContext, engine: Engine, key: str | None) -> str:
    if key is not None:
        reference = image.node_reference(key)
        if not engine.has_image(reference):
            raise provider_error("GC912", f"there is no image {reference} on this machine")
        return reference
    variant = described(context.spec, context.site).image
    if not engine.has_image(image.base_reference(variant)):
        what = "building the base image (once on this machine)"
        context.emit(SiteEvent(site=context.site, done=0, total=1, what=what))
    return image.ensure_base(engine, context.cache, variant)


def _network(
    context: SiteContext, engine: Engine, existing: Network | None, net: Resource
) -> IPv4Network:
    if existing is not None:
        return IPv4Network(existing.subnets[0])
    intent = context.ledger.intend(context.site, net)
    try:
        made, subnet = _create(context, engine, net, intent)
    except ProviderError as error:
        context.ledger.failed(intent, str(error))
        raise
    context.ledger.created(intent, made)
    with records.updated(context) as remembered:
        remembered.ids[net.key] = made
        remembered.addresses.clear()
    return subnet


def _create(
    context: SiteContext, engine: Engine, net: Resource, intent: str
) -> tuple[str, IPv4Network]:
    """Make the network in the first subnet that the engine accepts."""
    used = network.used_networks(
        (s for n in engine.networks() for s in n.subnets), network.host_routes()
    )
    cidr = str(net.properties["cidr"])
    worn = {**labels.owner(context), labels.KIND: "network", labels.TOKEN: intent}
    refused: ProviderError | None = None
    kind = ("--internal",) if net.properties.get("internal") else ()
    for tried, subnet in enumerate(network.candidates(cidr, net.name, used)):
        if tried == _TRIES:
            break
        where = (f"--subnet={subnet}", f"--gateway={network.gateway(subnet)}", *kind)
        try:
            engine.call("network", "create", *where, *labels.flags(worn), net.name)
        except ProviderError as error:
            if not network.is_clash(str(error)):
                raise
            refused = error
            continue
        made = engine.networks({**labels.owner(context), labels.KIND: "network"})
        return next(n.id for n in made if n.name == net.name), subnet
    raise refused or provider_error(
        "GC915",
        f"no /24 of {network.AUTO_RANGE} is free on this machine",
        hint="set network.cidr of the site to a free network",
    )
