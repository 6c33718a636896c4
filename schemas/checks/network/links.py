"""Links between sites and the tunnels that carry them."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address

from ...derived.links import first_links, gateway_pool, is_tunnel, networks_of
from ...diagnostics import PathTuple, Severity
from ...spec import AzureSite, CloudSite, Link, Site
from ...structure.fix.edits import Remove
from ..context import CheckContext
from ..registry import Finding, check
from ..scheduler.services import controller_pools
from .cidrs import Network, overlap, parsed


def cut_off(context: CheckContext) -> dict[str, str]:
    """Return sites whose nodes have no route to the controllers, with the controllers' site."""
    controllers = controller_pools(context)
    if not controllers:
        return {}
    home = context.pools[controllers[0]].site
    return {site: home for site in context.pools_of_site if context.are_apart(home, site)}


@check("GC710", summary="No route leads from a site to the controllers.")
def no_route_to_controllers(context: CheckContext) -> Iterator[Finding]:
    """Nodes of every site reach the controllers, so the sites need a link.

    gcluster sets WireGuard up: `links: [{between: [campus, east]}]`. Routes that exist, by VPN,
    peering or a direct connection, are named by `via`. Sites that are no clouds may be routed
    without gcluster; nothing is said of two of them.
    """
    for site, home in cut_off(context).items():
        pool = context.pools_of_site[site][0]
        yield Finding(
            summary=f'no link joins site "{site}" and site "{home}", where the controllers are',
            path=("pools", pool, "site"),
            hint=f"add links: [{{between: [{home}, {site}]}}]",
            relies_on=(
                ("links",),
                ("pools", "*", "site"),
                ("pools", "*", "role"),
                ("sites", "*", "provider"),
            ),
        )


@check("GC711", summary="A link joins a site with itself, or two sites that are joined already.")
def link_redundant(context: CheckContext) -> Iterator[Finding]:
    """A link is between two sites, and one between the same two is enough."""
    first: dict[frozenset[str], int] = {}
    for index, link in enumerate(context.links):
        ends = frozenset(link.between)
        path: PathTuple = ("links", index, "between")
        before = first.setdefault(ends, index)
        if len(ends) == 1:
            yield Finding(
                summary=f'a link joins site "{link.between[0]}" with itself',
                path=path,
                hint="name two sites",
            )
        elif before != index:
            earlier: PathTuple = ("links", before, "between")
            yield Finding(
                summary=f"{' and '.join(link.between)} are joined twice: first in line "
                f"{context.line_of(earlier)}",
                path=path,
                hint="keep one of the two",
                relies_on=(path, earlier),
                fix=Remove(("links", index)) if link == context.links[before] else None,
            )


@check("GC712", summary="A tunnel joins two sites of one cloud.")
def tunnel_within_one_cloud(context: CheckContext) -> Iterator[Finding]:
    """Two networks of one cloud are joined by its own peering.

    WireGuard would send all traffic through one gateway machine at each end, which a peering does
    not need.
    """
    for index, link in enumerate(context.links):
        ends = [context.sites.get(name) for name in link.between]
        if link.via != "wireguard" or len(set(link.between)) == 1:
            continue
        providers = {end.provider for end in ends if end is not None and end.is_cloud}
        if len(providers) == 1 and all(end is not None and end.is_cloud for end in ends):
            path: PathTuple = ("links", index)
            yield Finding(
                summary=f"{' and '.join(link.between)} are both at {providers.pop()}: a tunnel is "
                "slower than its peering",
                path=path,
                severity=Severity.WARNING,
                hint="peer the two networks and write via: peering",
                relies_on=(path, ("sites", "*", "provider")),
            )


@check("GC713", summary="A link's gateway is at neither of its sites.")
def gateway_site_mismatch(context: CheckContext) -> Iterator[Finding]:
    """`gateway` is a pool at one of the two sites; its first host is that end of the tunnel.

    Two pools are one at each site.
    """
    for index, link in enumerate(context.links):
        here: dict[str, str] = {}
        for number, name in enumerate(link.gateways):
            pool = context.pools.get(name)
            if pool is None or pool.site not in context.sites:
                continue
            path = gateway_path(index, link, number)
            needs = (path, ("links", index, "between"), ("pools", name, "site"))
            before = here.setdefault(pool.site, name)
            if pool.site not in link.between:
                yield Finding(
                    summary=f'the gateway, pool "{name}", is at site "{pool.site}"',
                    path=path,
                    hint=f"name a pool at {' or '.join(link.between)}",
                    relies_on=needs,
                )
            elif before != name:
                yield Finding(
                    summary=f'pools "{before}" and "{name}" are both at site "{pool.site}": an end '
                    "of a tunnel is one host",
                    path=path,
                    hint="name one pool at each of the two sites",
                    relies_on=(*needs, ("pools", before, "site")),
                )


def gateway_path(index: int, link: Link, number: int) -> PathTuple:
    """Return where a link's gateway is written: one word, or an item of a list."""
    where: PathTuple = ("links", index, "gateway")
    return where if isinstance(link.gateway, str) else (*where, number)


_INSTEAD = "or name a route that exists: via: vpn, direct-connect, peering or routed"


def _tunnels(context: CheckContext) -> Iterator[tuple[int, Link]]:
    """Yield the links that gcluster sets up, with their index; one site with itself is reported."""
    for index, link in enumerate(context.links):
        if is_tunnel(link, context.sites) and len(set(link.between)) > 1:
            yield index, link


def _ends(context: CheckContext) -> Iterator[tuple[int, Link, str, Site]]:
    """Yield every end of every tunnel."""
    for index, link in _tunnels(context):
        for name in link.between:
            yield index, link, name, context.sites[name]


def _once(context: CheckContext) -> Iterator[tuple[int, str, Site]]:
    """Yield every site that a tunnel ends at, with its first link."""
    seen: set[str] = set()
    for index, _, name, site in _ends(context):
        if name not in seen:
            seen.add(name)
            yield index, name, site


@check("GC720", summary="A tunnel ends at a site that has no host for it.")
def gateway_missing(context: CheckContext) -> Iterator[Finding]:
    """WireGuard joins two sites through a gateway at each of them, a host that is always there.

    It is the first host of the pool that the link's `gateway` names, else of the site's
    controllers, else of its logins. A site that only has nodes which come and go needs one small
    machine more; it is also how gcluster logs in to those nodes.
    """
    names: set[str] = set()
    for index, link, name, site in _ends(context):
        if name in names or gateway_pool(link, name, context.pools) is not None:
            continue
        if _is_unclear(context, link):
            continue
        if site.makes_machines and not getattr(site, "makes_gateways", False):
            continue  # GC723
        names.add(name)
        add = f"add a pool such as gate: {{site: {name}, role: login"
        if not site.makes_machines:
            add = f"{add}, hosts: gate01"
        yield Finding(
            summary=f'site "{name}" has no controller and no login, so nothing can be its gateway',
            path=("links", index, "between"),
            hint=f"{add}}}, name a pool with gateway:, {_INSTEAD}",
            relies_on=(("links", index), ("pools", "*", "site"), ("pools", "*", "role")),
        )


def _is_unclear(context: CheckContext, link: Link) -> bool:
    """Say whether some pool that might have been the gateway is broken or misspelt."""
    declared = context.declared_pools
    known = context.pools.keys()
    return declared is None or not (declared <= known and known >= set(link.gateways))


@check("GC721", summary="The network that a tunnel leads to is not known, or not gcluster's.")
def tunnel_network_unknown(context: CheckContext) -> Iterator[Finding]:
    """A tunnel takes the packets for a site's network: the spec must say which that is.

    Bare-metal sites say it by `network: {cidr: 10.21.0.0/16}`. In a cloud's network that exists
    gcluster changes no route, so that nothing would be sent to the gateway.
    """
    for index, name, site in _once(context):
        networks = networks_of(site)
        path: PathTuple = ("sites", name, "network")
        needs = (("links", index), path)
        if isinstance(site, CloudSite) and site.existing_network is not None:
            yield Finding(
                summary=f'the network of site "{name}" exists: no route to a gateway is made in it',
                path=(*path, site.existing_key),
                hint=f"let gcluster make the network (cidr:), {_INSTEAD}",
                relies_on=needs,
            )
        elif not networks:
            yield Finding(
                summary=f'site "{name}" does not say its network, which the tunnel leads to',
                path=("sites", name),
                at_key=True,
                hint="add network: {cidr: 10.21.0.0/16} with the network that its hosts are in",
                relies_on=needs,
            )
        elif any(":" in network for network in networks):
            yield Finding(
                summary=f'the network of site "{name}" is IPv6; tunnels carry IPv4',
                path=(*path, "cidr"),
                hint=f"give the IPv4 network of its hosts, {_INSTEAD}",
                relies_on=needs,
            )


@check("GC722", summary="An endpoint is given for a site that the link doesn't join.")
def endpoint_site_mismatch(context: CheckContext) -> Iterator[Finding]:
    """`endpoints` says for the two sites of `between` where their gateways are reached.

    Other links than those of WireGuard have no endpoints.
    """
    for index, link in enumerate(context.links):
        for name in link.endpoints:
            path: PathTuple = ("links", index, "endpoints", name)
            needs = (path, ("links", index, "between"), ("links", index, "via"))
            if link.via != "wireguard":
                yield Finding(
                    summary=f"a link by {link.via} has no endpoints: it exists already",
                    path=path,
                    at_key=True,
                    hint="remove endpoints",
                    relies_on=needs,
                )
                break
            if name not in link.between:
                yield Finding(
                    summary=f'the link does not join site "{name}"',
                    path=path,
                    at_key=True,
                    hint=f"name {' or '.join(link.between)}",
                    relies_on=needs,
                )


@check("GC723", summary="A tunnel ends in a cloud that gcluster makes no gateways in.")
def gateway_unsupported_by_cloud(context: CheckContext) -> Iterator[Finding]:
    """A gateway needs a public address, packets that aren't its own, and routes that lead to it.

    gcluster makes these at AWS, Google Cloud and Azure. Elsewhere the cloud's own VPN does it.
    """
    for index, name, site in _once(context):
        if site.is_cloud and not site.makes_gateways:
            path: PathTuple = ("links", index, "between")
            yield Finding(
                summary=f'gcluster makes no gateway at {site.provider}, where site "{name}" is',
                path=path,
                hint="join it by the cloud's VPN and write via: vpn",
                relies_on=(("links", index), ("sites", name, "provider")),
            )


@check("GC724", summary="A cloud's gateway is a compute pool.")
def gateway_is_compute_pool(context: CheckContext) -> Iterator[Finding]:
    """Gateways in a cloud have public addresses, which compute nodes never have (GC312).

    A small login machine does it.
    """
    for index, link in _tunnels(context):
        for number, name in enumerate(link.gateways):
            pool = context.pools.get(name)
            if pool is None or pool.role != "compute" or context.cloud(pool) is None:
                continue
            if pool.least == 0:
                continue  # GC720
            where: PathTuple = ("links", index, "gateway")
            yield Finding(
                summary=f'the gateway, pool "{name}", is a compute pool of a cloud',
                path=where if isinstance(link.gateway, str) else (*where, number),
                hint=f"name a login pool at {pool.site}",
                relies_on=(where, ("pools", name, "role"), ("pools", name, "site")),
            )


@check("GC725", summary="A tunnel joins two sites whose networks overlap.")
def tunnel_networks_overlap(context: CheckContext) -> Iterator[Finding]:
    """Packets for an address that both sites have stay where they are.

    Bare-metal sites may share a network where they are one room; then they need no tunnel.
    """
    for index, link in _tunnels(context):
        one, other = link.between
        if not (context.exists(one) and context.exists(other)):
            continue  # GC304
        pairs = [(a, b) for a in _readable(context, one) for b in _readable(context, other)]
        for mine, theirs in pairs:
            if overlap(mine, theirs):
                yield Finding(
                    summary=f'{mine} of site "{one}" and {theirs} of site "{other}" overlap',
                    path=("links", index, "between"),
                    hint="two sites in one network need no tunnel: write via: routed; else give "
                    "each its own part of the network",
                    relies_on=(
                        ("links", index),
                        ("sites", one, "network"),
                        ("sites", other, "network"),
                    ),
                )


def _readable(context: CheckContext, site: str) -> list[Network]:
    found = [parsed(text) for text in networks_of(context.sites[site])]
    return [network for network in found if not isinstance(network, str)]


@check("GC726", summary="A host of a site that a tunnel leads to is outside of its network.")
def host_outside_tunnel_network(context: CheckContext) -> Iterator[Finding]:
    """The other site sends into the tunnel what is for the site's network, and nothing else.

    A controller that isn't in it can't be reached by the other site's nodes: an error. Other hosts
    are reported as a warning. Names instead of addresses aren't looked up.
    """
    linked = {name for _, name, _ in _once(context)}
    for group in context.host_groups:
        pool = context.pools[group.pool]
        networks = _readable(context, pool.site) if pool.site in linked else []
        written = group.addresses or group.names or ()
        for text in written if networks else ():
            try:
                address = ip_address(text)
            except ValueError:
                continue
            if any(address in network for network in networks):
                continue
            is_needed = pool.role == "controller"
            yield Finding(
                summary=f'{text} of pool "{group.pool}" is not in {networks[0]}, the network of '
                f'site "{pool.site}"',
                path=group.path,
                severity=Severity.ERROR if is_needed else Severity.WARNING,
                hint="give the address that it has in that network",
                relies_on=(group.path, ("sites", pool.site, "network"), ("links",)),
            )
            break


@check("GC727", summary="A tunnel joins a cloud with containers of this machine.")
def tunnel_to_made_here(context: CheckContext) -> Iterator[Finding]:
    """Nothing of a local or simulated site is reached from a cloud.

    This machine routes between its own containers, so a link between two such sites needs no
    tunnel; from a cloud no route leads to them. Use hosts of your own (bare-metal), or put both
    sites on one side.
    """
    for index, link in enumerate(context.links):
        if link.via != "wireguard":
            continue
        ends = {name: context.sites[name] for name in link.between if name in context.sites}
        made = [name for name, site in ends.items() if site.is_made_here]
        rented = [name for name, site in ends.items() if site.is_cloud]
        if made and rented:
            path: PathTuple = ("links", index, "between")
            yield Finding(
                summary=f'no tunnel leads from site "{rented[0]}" to site "{made[0]}", whose nodes '
                f"are {ends[made[0]].provider}",
                path=path,
                hint="name a site with hosts of your own (bare-metal), or, where you route it "
                "yourself, write via: routed",
                relies_on=(("links", index), *(("sites", name, "provider") for name in ends)),
            )


@check("GC728", summary="A firewall that is made doesn't know the network that a link leads to.")
def link_network_unknown(context: CheckContext) -> Iterator[Finding]:
    """A cloud's firewall lets in other sites by their networks: the spec must say which these are.

    Hosts that exist say it by `network: {cidr: 10.21.0.0/16}`. Of a cloud's network that exists
    gcluster knows no addresses: there the nodes take security groups that you made. Nodes of this
    machine come from its own address.
    """
    for name, site in context.sites.items():
        if not isinstance(site, CloudSite) or not _makes_firewall(site):
            continue
        for there, index in sorted(first_links(context.links, name).items()):
            other = context.sites.get(there)
            tunnel = is_tunnel(context.links[index], context.sites)
            if other is None or other.is_made_here or tunnel or networks_of(other):
                continue
            exists = isinstance(other, CloudSite)
            groups = "security_groups of yours that let it in"
            yield Finding(
                summary=f'the firewall of site "{name}" lets in nothing of site "{there}", '
                "whose network isn't known",
                path=("sites", there),
                at_key=True,
                hint=f"name in the network of site {name} {groups}"
                if exists
                else "add network: {cidr: 10.21.0.0/16} with the network that its hosts are in",
                relies_on=(("links", index), ("sites", name), ("sites", there)),
            )


def _makes_firewall(site: CloudSite) -> bool:
    """Say whether the nodes' firewall is gcluster's, and has to know the other network.

    Groups of yours replace it. Azure's own rules let in what a peering or a gateway connects (the
    service tag VirtualNetwork).
    """
    if isinstance(site, AzureSite):
        return False
    groups = getattr(site.network, "security_groups", None)
    return site.existing_network is None if groups is None else not groups
