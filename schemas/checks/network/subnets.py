"""Subnets of clouds, networks that exist, and the forms of their ids."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain

from ...diagnostics import PathTuple, Severity
from ...spec import CloudSite, Option
from ...spec.model import SpecModel
from ..capacity.markets import purchase_options
from ..context import CheckContext
from ..registry import Finding, check
from .cidrs import Network, ends, kubernetes_networks, overlap, parsed, readable, site_networks

_PRIVATE = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7")
"""RFC 1918, RFC 6598, RFC 4193."""


@check("GC319", summary="A network that is made has public addresses.")
def network_cidr_public(context: CheckContext) -> Iterator[Finding]:
    """Networks of nodes, pods and services are private: 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16.

    If a range contains public addresses of others, those can't be reached from the nodes.
    Ranges that you own are fine, so this is a warning.
    """
    for placed in readable(chain(site_networks(context), kubernetes_networks(context))):
        site = context.sites.get(placed.written.site or "")
        if site is not None and not isinstance(site, CloudSite):
            continue
        if not any(_within(placed.network, private) for private in _PRIVATE):
            yield Finding(
                summary=f"{placed.written.who}: {placed.network} is not a private network",
                path=placed.written.path,
                severity=Severity.WARNING,
                hint=f"take it from {', '.join(_PRIVATE[:3])}",
            )


def _within(network: Network, text: str) -> bool:
    """Say whether a network lies in another."""
    other = parsed(text)
    if isinstance(other, str) or not overlap(network, other):
        return False
    return ends(other)[1] <= ends(network)[1] and ends(network)[2] <= ends(other)[2]


def _clouds(context: CheckContext) -> Iterator[tuple[str, CloudSite]]:
    for name, site in context.sites.items():
        if isinstance(site, CloudSite):
            yield name, site


@check("GC314", summary="A network is to be made and exists at once.")
def network_created_and_existing(context: CheckContext) -> Iterator[Finding]:
    """`cidr` is for a network that gcluster makes; one that exists has its own addresses.

    Give one of the two.
    """
    for name, site in _clouds(context):
        key, existing = site.existing_key, site.existing_network
        if existing is not None and site.network.cidr is not None:
            path = ("sites", name, "network", "cidr")
            yield Finding(
                summary=f'site "{name}": cidr is for a network to make, but {key} names one that '
                "exists",
                path=path,
                at_key=True,
                hint=f"remove cidr to use {existing}, or {key} to make a network",
                relies_on=(path, ("sites", name, "network", key)),
            )


@check("GC315", summary="Subnets or security groups without the network they are in.")
def subnets_without_network(context: CheckContext) -> Iterator[Finding]:
    """Subnets and security groups that exist belong to a network that exists: name it too.

    A network that gcluster makes gets subnets and groups of its own.
    """
    for name, site in _clouds(context):
        key, existing = site.existing_key, site.existing_network
        if existing is not None:
            continue
        subnets, given = site.subnets_key, site.names_subnets
        groups = bool(getattr(site.network, "security_groups", ()))
        for part in [subnets] * given + ["security_groups"] * groups:
            path = ("sites", name, "network", part)
            yield Finding(
                summary=f'site "{name}": {part} exist in a network that the site does not name',
                path=path,
                at_key=True,
                hint=f"add {key}: with the network they are in, or remove {part}",
                relies_on=(path, ("sites", name, "network", key)),
            )


@check("GC316", summary="A network that exists without the subnets to use.")
def network_without_subnets(context: CheckContext) -> Iterator[Finding]:
    """In a network that exists gcluster makes no subnets: it can't know which addresses are free.

    Name the subnet of the nodes, and on AWS the public one where nodes have public addresses.
    """
    for name, site in _clouds(context):
        key, existing = site.existing_key, site.existing_network
        subnets, given = site.subnets_key, site.names_subnets
        if existing is not None and not given:
            written = "subnet: NAME" if subnets == "subnet" else "subnets: {compute: ID}"
            yield Finding(
                summary=f'site "{name}": {key} names a network, but no {subnets} of it',
                path=("sites", name, "network", key),
                hint=f"add {written}",
                relies_on=(
                    ("sites", name, "network", key),
                    ("sites", name, "network", subnets),
                ),
            )


def _ids(context: CheckContext) -> Iterator[tuple[CloudSite, str, str, PathTuple]]:
    """Yield (site, kind, id, place) for everything that the spec names by an id."""
    for name, site in context.sites.items():
        if isinstance(site, CloudSite):
            for kind, text, below in _ids_of_site(site):
                if text is not None:
                    yield site, kind, text, ("sites", name, *below)
    yield from _ids_of_pools(context)


def _ids_of_pools(context: CheckContext) -> Iterator[tuple[CloudSite, str, str, PathTuple]]:
    """Yield the same of pools: images and capacity that is owned."""
    for name, pool in context.pools.items():
        cloud = context.cloud(pool) if pool.image is not None else None
        if cloud is not None and pool.image is not None:
            yield cloud, "image", pool.image, ("pools", name, "image")
    for _, pool, option, path in purchase_options(context):
        cloud = context.cloud(pool)
        for kind in ("reservation", "capacity_block"):
            text = getattr(option, kind, None) if isinstance(option, Option) else None
            if text is not None and cloud is not None:
                yield cloud, kind, text, (*path, kind)


def _ids_of_site(site: CloudSite) -> Iterator[tuple[str, str | None, PathTuple]]:
    yield "kms_key", site.kms_key, ("kms_key",)
    yield "image", site.image, ("image",)
    yield "zone", site.dns.zone if site.dns else None, ("dns", "zone")
    yield from _ids_of_network(site.network, ("network",))


def _ids_of_network(
    noun: SpecModel, path: PathTuple, kind: str = ""
) -> Iterator[tuple[str, str | None, PathTuple]]:
    """Yield what a network's keys name, the keys of its parts under the part's own kind."""
    for key in noun.__struct_fields__:
        value, below = getattr(noun, key), (*path, key)
        if isinstance(value, SpecModel):
            yield from _ids_of_network(value, below, kind or key)
        elif isinstance(value, list):
            yield from ((kind or key, text, (*below, index)) for index, text in enumerate(value))
        elif value is None or isinstance(value, str):
            yield kind or key, value, below


@check("GC318", summary="An id that does not look like one of the provider's.")
def provider_id_malformed(context: CheckContext) -> Iterator[Finding]:
    """Things that exist are named as the cloud names them: vpc-0abc, projects/p/global/networks/n.

    A name from the console's list, an id of something else, or one of another cloud is found by
    its form. Only the cloud knows whether it exists, so this is a warning.
    """
    for site, kind, text, path in _ids(context):
        facts = context.providers.get(site.provider)
        form = None if facts is None else facts.id_forms.get(kind)
        if form is None or re.fullmatch(form.pattern, text):
            continue
        yield Finding(
            summary=f'"{text[:60]}" does not look like {_what(kind)} of {site.provider}',
            path=path,
            severity=Severity.WARNING,
            hint=f"write it as {form.example}",
            relies_on=(path, ("sites", "*", "provider")),
        )


def _what(kind: str) -> str:
    words = {"kms_key": "a key", "zone": "a DNS zone", "image": "an image", "vpc": "a VPC"}
    return words.get(kind, f"a {kind.removesuffix('s').replace('_', ' ')}")
