"""Which sites reach each other, and the tunnels between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from ..spec import ClusterSpec, Link, Pool, Site
from ..spec.sites.site import DEFAULT_CLOUD_CIDR, CloudSite


class Routes:
    """Sites that links join, directly or through other sites."""

    def __init__(self, links: Iterable[Link]) -> None:
        """Join the two sites of each link."""
        self._above: dict[str, str] = {}
        self._latency: dict[frozenset[str], float] = {}
        self.ends: set[str] = set()
        """Sites that links name, declared or not."""
        for link in links:
            self.ends.update(link.between)
            one, other = link.between[0], link.between[-1]
            self._above[self._top(one)] = self._top(other)
            if link.latency is not None:
                self._latency.setdefault(frozenset((one, other)), link.latency.value)

    def joins(self, one: str, other: str) -> bool:
        """Say whether a chain of links leads from one site to the other."""
        return self._top(one) == self._top(other)

    def latency(self, one: str, other: str) -> float | None:
        """Return the round trip of a link between two sites in seconds; None: not known."""
        return self._latency.get(frozenset((one, other)))

    def _top(self, site: str) -> str:
        """Return what represents all sites that are joined with this one."""
        above = self._above.setdefault(site, site)
        while above != site:
            self._above[site] = self._above[above]  # halves the way for the next call
            site, above = above, self._above[above]
        return site


def first_links(links: Sequence[Link], site: str) -> dict[str, int]:
    """Return each site that a chain of links leads to -> index of the chain's first link.

    The chain with the fewest links is taken. Of several, one is chosen such that both ends choose
    the same, and every site on it: WireGuard takes no packet that comes another way than the
    answer goes. So a link weighs 1, and a bit of its own that no sum of others equals.
    """
    unit = 1 << len(links)
    joins: dict[str, list[tuple[str, int]]] = {}
    for index, link in enumerate(links):
        one, other = link.between[0], link.between[-1]
        joins.setdefault(one, []).append((other, index))
        joins.setdefault(other, []).append((one, index))
    first: dict[str, int] = {}
    waiting: list[tuple[int, str, int]] = [(0, site, -1)]
    while waiting:
        weight, here, begun = heappop(waiting)
        if here in first:
            continue
        first[here] = begun
        for there, index in joins.get(here, ()):
            if there not in first:
                step = (weight + unit + (1 << index), there, index if begun < 0 else begun)
                heappush(waiting, step)
    del first[site]
    return first


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


class LinkRoute(NamedTuple):
    """What a site's packets for other sites take first."""

    link: int
    """Index in the spec."""
    sites: tuple[str, ...]
    """Where it leads to: the link's other end, and what lies behind that."""
    networks: tuple[str, ...]


def link_routes(spec: ClusterSpec, site: str) -> tuple[LinkRoute, ...]:
    """Return the links that a site's packets for other sites take first, in the spec's order."""
    by_link: dict[int, list[str]] = {}
    for there, index in first_links(spec.links, site).items():
        by_link.setdefault(index, []).append(there)
    return tuple(
        LinkRoute(index, tuple(sorted(there)), tuple(sorted(networks_of_sites(spec, there))))
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
    allowed_networks: tuple[str, ...]
    """Networks of the sites that any link leads to."""


def site_ends(spec: ClusterSpec, site: str) -> SiteEnds:
    """Return a site's routes into tunnels, and who may come in over its links."""
    ways = link_routes(spec, site)
    routes = [
        RouteTo(network, pool)
        for way in ways
        if is_tunnel(spec.links[way.link], spec.sites)
        and (pool := gateway_pool(spec.links[way.link], site, spec.pools)) is not None
        for network in way.networks
    ]
    allowed_networks = dict.fromkeys(network for way in ways for network in way.networks)
    return SiteEnds(tuple(routes), tuple(allowed_networks))


def tunnel_mtu(link: Link, sites: Mapping[str, Site]) -> int:
    """Return the MTU of a tunnel in bytes: what fits through both ends' ways out whole."""
    if link.mtu is not None:
        return link.mtu
    mtus = [_WIDEST_OUTSIDE]
    for name in link.between:
        site = sites[name]
        mtus.append(site.egress_mtu)
        if isinstance(site, CloudSite) and site.network.mtu is not None:
            mtus.append(site.network.mtu)
    return min(mtus) - _AROUND
