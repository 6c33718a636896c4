"""Golden images: one builder node, converged by the caller, whose disk becomes an image."""

from __future__ import annotations

from contextlib import suppress

import msgspec

from ....inventory.hosts import Host
from ....schemas.spec import ClusterSpec
from ...provider import Resource, SiteContext, provider_error
from .. import labels, nodes, records, ssh, survey
from ..engine import Container, Engine, find_engine
from ..nodes import prepare
from . import base_image

BUILDER = "image-builder"
"""Host name of the node that becomes an image."""

_CLEAN = f"""
rm -rf /root/.ssh /root/.ansible /root/.bash_history /var/tmp/* \
  /var/cache/apt/archives/*.deb /var/cache/apt/*.bin /var/log/journal/* /var/log/apt/* \
  /var/log/*.log /var/lib/systemd/random-seed
# Else roles take the empty folder for indexes read just now: by its time, which apt renews where it
# has to make one of its own folders or its lock there.
find /var/lib/apt/lists -type f -not -name lock -delete && touch --date=@0 /var/lib/apt/lists
{base_image.CLEAN_ROOT}
"""


def has_image(context: SiteContext, key: str) -> bool:
    """Return whether this machine has the image baked under `key`."""
    return _engine(context).has_image(base_image.node_reference(key))


def start_builder(context: SiteContext, key: str) -> Host:
    """Start a node from the base image on a network of its own, ready for SSH as root."""
    discard_builder(context)
    engine = _engine(context)
    elsewhere = _elsewhere(context)
    net = Resource(
        kind="network", name=_network_name(context.spec, context.site), properties={"cidr": "auto"}
    )
    node_base = prepare(elsewhere, engine, None, net=net, image_key=None, makes_nodes=True)
    node_base = msgspec.structs.replace(node_base, image_key=key)
    builder = Resource(kind="builder", name=BUILDER, parent=net.name)
    nodes.start(elsewhere, node_base, [builder], [])
    made = _builder(context, engine)
    if made is None:
        raise provider_error("GC913", "the image builder vanished while it started")
    return Host(
        name=BUILDER,
        site=context.site,
        pool="image",
        role="compute",
        machine=None,
        address=made.labels[labels.ADDRESS],
        ssh=ssh.target(node_base.private_key, records.load(elsewhere).ready[BUILDER].host_keys),
        image=base_image.base_digest(),
    )


def commit_builder(context: SiteContext, key: str) -> None:
    """Make the builder's disk the image `key`, without keys, ids and caches; remove the builder.

    Raises:
        ProviderError: there is no builder for `key`, or the engine failed; no image is left.
    """
    engine = _engine(context)
    builder = _builder(context, engine)
    if builder is None or builder.labels.get(labels.IMAGE) != key:
        raise provider_error("GC912", f"there is no builder for image {key[:16]}")
    engine.inside(builder.name, "/bin/sh", "-c", _CLEAN)
    engine.call("kill", builder.name)
    changes = (*base_image.BOOT_FLAGS, *labels.blank())
    engine.call(
        "commit", "--quiet", *changes, builder.name, base_image.node_reference(key), timeout_s=600
    )
    discard_builder(context)


def discard_builder(context: SiteContext) -> None:
    """Remove the builder and its network; fine when there is none."""
    engine = _engine(context)
    owner = {**labels.owner(context), labels.NODE: BUILDER}
    for builder in engine.containers(owner):
        engine.remove([builder.name])
        context.ledger.deleted(context.site, f"builder/{BUILDER}", builder.id)
    wanted = _network_name(context.spec, context.site)
    for net in engine.networks(labels.owner(context)):
        if net.name == wanted:
            engine.call("network", "rm", net.name)
            context.ledger.deleted(context.site, f"network/{net.name}", net.id)
    records.forget(_elsewhere(context))
    with suppress(OSError):
        _elsewhere(context).workdir.rmdir()


def _engine(context: SiteContext) -> Engine:
    return find_engine(survey.described(context.spec, context.site).runtime)


def _network_name(spec: ClusterSpec, site: str) -> str:
    return f"{survey.network_name(spec, site)}-builder"


def _elsewhere(context: SiteContext) -> SiteContext:
    """Return the context with a place of its own, so that a builder shares no key with nodes."""
    return msgspec.structs.replace(context, workdir=context.workdir / "builder")


def _builder(context: SiteContext, engine: Engine) -> Container | None:
    wanted = {**labels.owner(context), labels.NODE: BUILDER}
    return next(iter(engine.containers(wanted)), None)
