"""Tunnels between sites: which pool has the gateway, what lies behind it, what packets fit.

The gateway of a site is the first host of the pool that the link's `gateway` names there; without
one, of its controllers, else of its logins. Hosts that come and go are none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from .routes import first_links
from .spec import ClusterSpec, Pool, Site
from .spec.link import Link
from .spec.sites.site import DEFAULT_CLOUD_CIDR, CloudSite

TUNNEL_PORT = 51820
"""UDP port of WireGuard: what its own documents use; no number of IANA's is its own."""
_WIDEST_OUTSIDE = 1500
"""Bytes of a packet on the internet (Ethernet, RFC 894)."""
_AROUND = 80
"""Bytes that WireGuard puts around a packet: IPv6 40, UDP 8, its own head and tag 32 (wg-quick(8)
takes as many)."""
_ROLES = ("controller", "login")


def is_tunnel(link: Link, sites: Mapping[str, Site]) -> bool:
    """Say whether gcluster sets a tunnel up for a link.

    Not where an end is containers or simulated: the machine that has them routes between them.
    """
    ends = [sites.get(name) for name in link.between]
    return link.via == "wireguard" and all(e is not None and not e.is_made_here for e in ends)


def gateway_pool(link: Link, site: str, pools: Mapping[str, Pool]) -> str | None:
    """Return the pool whose first host is a link's gateway at a site; None: it has none."""
    here = sorted(name for name, pool in pools.items() if pool.site == site and pool.least != 0)
    named = [name for name in link.gateways if name in here]
    by_role = [name for role in _ROLES for name in here if pools[name].role == role]
    return next(iter([*named, *by_role]), None)


def gateway_links(spec: ClusterSpec, pool: str) -> tuple[int, ...]:
    """Return the links (their indices) whose gateway the first host of a pool is."""
    site = spec.pools[pool].site
    return tuple(
        index
        for index, link in enumerate(spec.links)
        if site in link.between
        and is_tunnel(link, spec.sites)
        and gateway_pool(link, site, spec.pools) == pool
    )


def other_end(link: Link, site: str) -> str:
    """Return the site at a link's other end."""
    return link.between[1] if link.between[0] == site else link.between[0]


def networks_of(site: Site) -> tuple[str, ...]:
    """Return the networks of a site's nodes, as far as they are known."""
    written = tuple(site.networks.values())
    if not written and isinstance(site, CloudSite) and site.existing_network is None:
        return (DEFAULT_CLOUD_CIDR,)
    return written


def networks_of_sites(spec: ClusterSpec, sites: Iterable[str]) -> list[str]:
    """Return the networks of several sites, each once, in the order of the spec."""
    wanted = set(sites)
    found = (cidr for n, s in spec.sites.items() if n in wanted for cidr in networks_of(s))
    return list(dict.fromkeys(found))


class WayOut(NamedTuple):
    """What a site's packets for other sites take first."""

    link: int
    """Index in the spec."""
    sites: tuple[str, ...]
    """Where it leads to: the link's other end, and what lies behind that."""
    networks: tuple[str, ...]


def ways_out(spec: ClusterSpec, site: str) -> tuple[WayOut, ...]:
    """Return the links that a site's packets for other sites take first, in the spec's order."""
    by_link: dict[int, list[str]] = {}
    for there, index in first_links(spec.links, site).items():
        by_link.setdefault(index, []).append(there)
    return tuple(
        WayOut(index, tuple(sorted(there)), tuple(sorted(networks_of_sites(spec, there))))
        for index, there in sorted(by_link.items())
    )


class RouteTo(NamedTuple):
    """A network of another site, and the gateway that leads to it."""

    network: str
    pool: str
    """The gateway is its first host."""


class SiteEnds(NamedTuple):
    """What a site that makes its network needs of its links."""

    routes: tuple[RouteTo, ...]
    """Of tunnels; other links bring their own."""
    let_in: tuple[str, ...]
    """Networks of the sites that any link leads to."""


def site_ends(spec: ClusterSpec, site: str) -> SiteEnds:
    """Return a site's routes into tunnels, and who may come in over its links."""
    ways = ways_out(spec, site)
    routes = [
        RouteTo(network, pool)
        for way in ways
        if is_tunnel(spec.links[way.link], spec.sites)
        and (pool := gateway_pool(spec.links[way.link], site, spec.pools)) is not None
        for network in way.networks
    ]
    let_in = dict.fromkeys(network for way in ways for network in way.networks)
    return SiteEnds(tuple(routes), tuple(let_in))


def tunnel_mtu(link: Link, sites: Mapping[str, Site]) -> int:
    """Return the MTU of a tunnel in bytes: what fits through both ends' ways out whole."""
    if link.mtu is not None:
        return link.mtu
    ways = [_WIDEST_OUTSIDE]
    for name in link.between:
        site = sites[name]
        ways.append(site.way_out_mtu)
        if isinstance(site, CloudSite) and site.network.mtu is not None:
            ways.append(site.network.mtu)
    return min(ways) - _AROUND
