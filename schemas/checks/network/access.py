"""Who may reach the cluster from outside, and the addresses it is reached at."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network

from ...derived.links import gateway_pool, is_tunnel
from ...diagnostics import PathTuple, Severity
from ...spec import CloudSite, LocalSite
from ...spec.sites import Proxy
from ...structure.fix.edits import Remove
from ..context import CheckContext
from ..registry import Finding, check
from .cidrs import admin_networks, parsed, readable

_WIDEST = {4: 8, 6: 16}
"""Shortest prefix that one organisation has: /8 blocks were given to single ones (IANA IPv4 address
space registry); of IPv6 the registries themselves get /12 (IANA IPv6 unicast assignments)."""


@check("GC310", summary="SSH is open to the world.")
def ssh_open_to_world(context: CheckContext) -> Iterator[Finding]:
    """`admin_cidrs` names the networks that may reach SSH, never all of them.

    Login nodes that answer the whole internet are attacked within minutes. Name the network of your
    office or VPN; a single address is written 192.0.2.7/32.
    """
    for placed in readable(admin_networks(context)):
        if placed.network.prefixlen == 0:
            yield Finding(
                summary=f"{placed.written.who}: {placed.network} opens SSH to the world",
                path=placed.written.path,
                hint="name your own network, such as 192.0.2.0/24, or one address: 192.0.2.7/32",
                fix=Remove(placed.written.path),
            )


@check("GC311", summary="SSH is open to a large part of the world.")
def ssh_open_to_large_range(context: CheckContext) -> Iterator[Finding]:
    """A network of more than 16 million addresses (IPv4 /8) is no organisation's own.

    Name the networks that people really come from.
    """
    for placed in readable(admin_networks(context)):
        network = placed.network
        if 0 < network.prefixlen < _WIDEST[network.version]:
            yield Finding(
                summary=f"{placed.written.who}: {network} is more than any one network",
                path=placed.written.path,
                severity=Severity.WARNING,
                hint="name your own network, such as 192.0.2.0/24",
            )


@check("GC312", summary="A compute pool requests public addresses.")
def compute_public_address(context: CheckContext) -> Iterator[Finding]:
    """Compute nodes are reached through the login or controller node, never from outside.

    Machines with several NICs get no public address by themselves anyway. The way out is a NAT.
    """
    for name, pool in context.pools.items():
        if pool.public_address and pool.role == "compute" and context.cloud(pool) is not None:
            path = ("pools", name, "public_address")
            yield Finding(
                summary=f'compute pool "{name}" requests public addresses',
                path=path,
                hint="remove public_address; log in through a login pool that has it",
                fix=Remove(path),
                relies_on=(path, ("pools", name, "role"), ("pools", name, "site")),
            )


@check("GC313", summary="A public address that can't be reached.")
def public_ip_without_cidrs(context: CheckContext) -> Iterator[Finding]:
    """A public address is of use where `admin_cidrs` says who may reach SSH there.

    Without any, SSH is closed from outside, and the tunnel or the network that leads there needs no
    public address. Where nothing else leads there, that is an error (GC317).
    """
    for name, pool in context.pools.items():
        site = context.cloud(pool)
        if not pool.public_address or pool.role == "compute" or site is None:
            continue
        if not site.network.admin_cidrs and (site.tunnel or site.existing_network):
            yield Finding(
                summary=f'pool "{name}" has a public address, but site "{pool.site}" lets '
                "no network reach it",
                path=("pools", name, "public_address"),
                severity=Severity.WARNING,
                hint=f"add to the network of site {pool.site}: admin_cidrs: [192.0.2.0/24], your "
                "own network",
                relies_on=(
                    ("pools", name, "public_address"),
                    ("pools", name, "role"),
                    ("sites", pool.site, "network"),
                ),
            )


@check("GC317", summary="A cloud site has no way to log in.")
def site_without_login(context: CheckContext) -> Iterator[Finding]:
    """Gcluster and people reach a cloud's nodes over SSH to its controller or login node.

    `admin_cidrs` opens that node's firewall, and makes no way to it. There is one where the node
    has a `public_address` and `admin_cidrs` says from where, where the cloud's own tunnel leads to
    it (`ssh: {tunnel: ...}` on AWS and Google), where a link joins the site with another, or in a
    network of yours that exists and is reached from here. A site with none of them would be made
    and then not be reached. A link `via: wireguard` is no way in: gcluster logs in to set it up.
    """
    links = [link for link in context.links if not is_tunnel(link, context.sites)]
    linked = {site for link in links for site in link.between}
    for name, site in context.sites.items():
        if not isinstance(site, CloudSite) or name in linked:
            continue
        entries = [
            (pool, context.pools[pool])
            for pool in context.pools_of_site.get(name, ())
            if context.pools[pool].role != "compute"
        ]
        if not entries or site.existing_network or site.tunnel:
            continue
        via = [entry for entry in entries if entry[0] == site.ssh.via] or entries
        # A gateway of a tunnel gets a public address for that.
        gateways = {
            gateway_pool(link, name, context.pools)
            for link in context.links
            if name in link.between and is_tunnel(link, context.sites)
        }
        is_public = any(pool.public_address or key in gateways for key, pool in via)
        if is_public and site.network.admin_cidrs:
            continue
        yield Finding(
            summary=f'no way to log in to site "{name}": '
            + (
                "admin_cidrs is not specified"
                if is_public
                else f"{_listed([pool for pool, _ in via])} has no public address"
            ),
            path=("sites", name),
            at_key=True,
            hint=_way_in(site, min(via, key=lambda entry: entry[1].role != "login")[0], is_public),
            relies_on=(
                ("sites", name, "network"),
                ("sites", name, "ssh"),
                ("links",),
                ("pools", "*", "role"),
                ("pools", "*", "public_address"),
            ),
        )


def _listed(pools: list[str]) -> str:
    return f'pool "{pools[0]}"' if len(pools) == 1 else f"none of {', '.join(pools)}"


_TUNNELS = {"aws": "instance-connect", "gcp": "iap"}
"""Provider -> the tunnel that requires least of an image."""


def _way_in(site: CloudSite, pool: str, is_public: bool) -> str:
    """Return what to write to make login possible."""
    cidrs = "network: {admin_cidrs: [192.0.2.0/24]} with the network you come from"
    if is_public:
        return f"add {cidrs}"
    public = f"add public_address: true to pools.{pool}"
    public += "" if site.network.admin_cidrs else f", and {cidrs}"
    tunnel = _TUNNELS.get(site.provider)
    return public + (f"; or, without a public address, ssh: {{tunnel: {tunnel}}}" if tunnel else "")


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


@check("GC322", summary="A URL of the spec contains a user or password.")
def login_in_url(context: CheckContext) -> Iterator[Finding]:
    """The spec, what is compiled of it and files of every node would have the login in the clear.

    Let the nodes' network in at the proxy or the mirror, by their addresses, or run a local
    forwarder that adds the login; then the URL needs none.
    """
    for path, url in _urls(context):
        if "@" in url.partition("://")[2].partition("/")[0]:
            yield Finding(
                summary="the URL has a login in it, which nodes would keep in the clear",
                path=path,
                hint="leave the login out, and let the nodes in by their addresses",
                is_secret=True,
            )


def _urls(context: CheckContext) -> Iterator[tuple[PathTuple, str]]:
    for name, site in context.sites.items():
        proxy: Proxy | None = getattr(site, "proxy", None)
        if proxy is not None:
            yield ("sites", name, "proxy", "https"), proxy.https
    for name, source in context.software.sources.items():
        for key in ("url", "key_url"):
            url: str | None = getattr(source, key)
            if url is not None:
                yield ("software", "sources", name, key), url
