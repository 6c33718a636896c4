"""Networks and other things that exist already: named whole, and in the provider's own form."""

from __future__ import annotations

from collections.abc import Iterator

from ..spec import CloudSite
from .context import CheckContext
from .registry import Finding, check


def _clouds(context: CheckContext) -> Iterator[tuple[str, CloudSite]]:
    for name, site in context.sites.items():
        if isinstance(site, CloudSite):
            yield name, site


@check("GC314", summary="A network is to be made and exists at once.")
def made_and_existing(context: CheckContext) -> Iterator[Finding]:
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
def parts_without_network(context: CheckContext) -> Iterator[Finding]:
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
