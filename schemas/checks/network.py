"""Networks of local sites: private, and large enough."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network

from ..diagnostics import PathTuple
from ..spec import LocalSite
from .cidrs import parsed
from .context import CheckContext
from .registry import Finding, check

_PRIVATE = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")  # RFC 1918
_RESERVED_ADDRESSES = 3
"""Network, gateway and broadcast."""
_AUTO_PREFIX = 24


def _path(site: str) -> PathTuple:
    return ("sites", site, "network", "cidr")


def _networks(context: CheckContext) -> Iterator[tuple[str, IPv4Network]]:
    """Yield (site, network) of the local sites whose CIDR is valid."""
    for name, site in context.sites.items():
        if isinstance(site, LocalSite) and site.network.cidr != "auto":
            network = parsed(site.network.cidr)
            if isinstance(network, IPv4Network):
                yield name, network


@check("GC302", summary="A local network is too small for its nodes.")
def cidr_too_small(context: CheckContext) -> Iterator[Finding]:
    """A site's network needs an address for each node and three more.

    The three are the network itself, the gateway and the broadcast address. "auto" takes a /24.
    """
    sizes = {name: network.num_addresses for name, network in _networks(context)}
    for name, site in context.sites.items():
        if isinstance(site, LocalSite) and site.network.cidr == "auto":
            sizes[name] = 2 ** (32 - _AUTO_PREFIX)
    for name, size in sizes.items():
        pools = context.pools_of_site.get(name, ())
        needed = sum(context.size(pool) or 0 for pool in pools) + _RESERVED_ADDRESSES
        if needed > size:
            prefix = 32 - (needed - 1).bit_length()
            yield Finding(
                summary=f'the network of site "{name}" has {size:,} addresses, '
                f"its nodes need {needed:,}",
                path=_path(name),
                hint=f"a /{prefix} is large enough, such as 10.64.0.0/{prefix}",
                relies_on=(_path(name), *(("pools", pool, "count") for pool in pools)),
            )


@check("GC303", summary="A local network is not a private one.")
def public_cidr(context: CheckContext) -> Iterator[Finding]:
    """Local networks lie in 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16 (RFC 1918).

    A public or loopback range would hide the real machines behind it from this one.
    """
    for name, network in _networks(context):
        if not any(network.subnet_of(IPv4Network(private)) for private in _PRIVATE):
            yield Finding(
                summary=f'site "{name}": {network} is not a private network',
                path=_path(name),
                hint=f"take it from {', '.join(_PRIVATE)}",
            )
