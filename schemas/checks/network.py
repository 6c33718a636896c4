"""Networks of local sites: private, large enough, apart from each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gcluster.schemas.checks.registry import Finding, check
from gcluster.schemas.fix import Replace
from gcluster.schemas.spec import LocalSite

if TYPE_CHECKING:
    from collections.abc import Iterator
    from ipaddress import IPv4Network

    from gcluster.schemas.checks.context import CheckContext
    from gcluster.schemas.diagnostics import PathTuple

_PRIVATE = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")  # RFC 1918
_RESERVED_ADDRESSES = 3
"""Network, gateway and broadcast."""
_AUTO_PREFIX = 24


def _path(site: str) -> PathTuple:
    return ("sites", site, "network", "cidr")


def _written(context: CheckContext) -> Iterator[tuple[str, str]]:
    """Yield (site, CIDR) of the local sites that name a network."""
    for name, site in context.sites.items():
        if isinstance(site, LocalSite) and site.network.cidr != "auto":
            yield name, site.network.cidr


def _networks(context: CheckContext) -> Iterator[tuple[str, IPv4Network]]:
    """Yield (site, network) of the local sites whose CIDR is valid."""
    for name, cidr in _written(context):
        network = _parsed(cidr)
        if not isinstance(network, str):
            yield name, network


def _parsed(cidr: str) -> IPv4Network | str:
    """Return the network, or what is wrong with it."""
    from ipaddress import AddressValueError, IPv4Network, NetmaskValueError  # noqa: PLC0415  # rare

    if "/" not in cidr:
        return 'it has no prefix length, such as "/24"'
    try:
        network = IPv4Network(cidr, strict=False)
    except (AddressValueError, NetmaskValueError, ValueError):
        return "it is no IPv4 network"
    if str(network.network_address) != cidr.split("/", 1)[0]:
        return f"it names a host: the network is {network}"
    return network


def _around_host(site: str, cidr: str) -> Replace | None:
    """Write the network that an address with a prefix length is in."""
    from ipaddress import IPv4Network  # noqa: PLC0415  # rare

    try:
        return Replace(_path(site), str(IPv4Network(cidr, strict=False))) if "/" in cidr else None
    except ValueError:
        return None


@check("GC301", summary="A CIDR is not an IPv4 network.")
def invalid_cidr(context: CheckContext) -> Iterator[Finding]:
    """A network is written as its first address and its prefix length: 10.42.0.0/24."""
    for name, cidr in _written(context):
        problem = _parsed(cidr)
        if isinstance(problem, str):
            yield Finding(
                summary=f'site "{name}": "{cidr[:60]}" is not a network: {problem}',
                path=_path(name),
                hint='write a network such as 10.42.0.0/24, or "auto"',
                fix=_around_host(name, cidr),
            )


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
        from ipaddress import IPv4Network  # noqa: PLC0415  # only for specs that name networks

        if not any(network.subnet_of(IPv4Network(private)) for private in _PRIVATE):
            yield Finding(
                summary=f'site "{name}": {network} is not a private network',
                path=_path(name),
                hint=f"take it from {', '.join(_PRIVATE)}",
            )


@check("GC304", summary="The networks of two local sites overlap.")
def overlapping_cidrs(context: CheckContext) -> Iterator[Finding]:
    """Local sites need networks of their own.

    Two container networks with the same addresses can't exist side by side on one machine.
    """
    widest: tuple[str, IPv4Network] | None = None
    ordered = sorted(_networks(context), key=lambda item: (item[1].network_address, item[1]))
    for name, network in ordered:
        if widest is not None and network.network_address <= widest[1].broadcast_address:
            line = context.line_of(_path(widest[0]))
            yield Finding(
                summary=f'site "{name}": {network} overlaps {widest[1]} of site "{widest[0]}", '
                f"line {line}",
                path=_path(name),
                hint='choose another network, or "auto"',
                relies_on=(_path(name), _path(widest[0])),
            )
        if widest is None or network.broadcast_address > widest[1].broadcast_address:
            widest = name, network
