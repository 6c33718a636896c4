"""Networks that clouds make: large enough, and of private addresses."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from ..diagnostics import Severity
from ..spec import CloudSite
from .cidrs import Network, kubernetes_networks, parsed, readable, site_networks
from .context import CheckContext
from .overlaps import ends, overlap
from .registry import Finding, check

_PRIVATE = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7")
"""RFC 1918, RFC 6598, RFC 4193."""


@check("GC309", summary="A cloud network is too small for the largest size of its pools.")
def subnet_too_small(context: CheckContext) -> Iterator[Finding]:
    """A site's network has an address for every node that may be there at once.

    Pools count with their `max`. The provider keeps some addresses of every subnet (AWS and Azure
    5, Google 4). Interfaces that only carry the fabric (efa-only, RDMA) take none here; subnets of
    login nodes and file systems come out of the same network, so leave it room.
    """
    for placed in readable(site_networks(context)):
        name = placed.written.site or ""
        site = context.sites.get(name)
        if not isinstance(site, CloudSite):
            continue
        facts = context.providers.get(site.provider)
        kept = (facts.subnet_reserved_addresses if facts is not None else None) or 0
        pools = context.pools_of_site.get(name, ())
        nodes = sum(context.size(pool) or 0 for pool in pools)
        if nodes + kept <= placed.network.num_addresses:
            continue
        bits = (nodes + kept - 1).bit_length()
        prefix = placed.network.max_prefixlen - bits
        default = "the default " if placed.written.is_default else ""
        yield Finding(
            summary=f'site "{name}": {default}{placed.network} has '
            f"{placed.network.num_addresses:,} addresses, {nodes:,} nodes and the {kept} that "
            f"{site.provider} keeps need {nodes + kept:,}",
            path=placed.written.path,
            at_key=placed.written.is_default,
            hint=f"take at least a /{prefix}",
            relies_on=(placed.written.path, *(("pools", pool, "count") for pool in pools)),
        )


@check("GC319", summary="A network that is made has public addresses.")
def public_addresses(context: CheckContext) -> Iterator[Finding]:
    """Networks of nodes, pods and services are private: 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16.

    With the addresses of somebody else's machines inside, those can't be reached from the nodes.
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
