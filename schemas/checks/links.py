"""Links between sites, and sites that none leads to."""

from __future__ import annotations

from collections.abc import Iterator

from ..diagnostics import PathTuple, Severity
from ..mend.fix import Remove
from ..spec import Link
from .context import CheckContext
from .controllers import controller_pools
from .registry import Finding, check


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
def link_for_nothing(context: CheckContext) -> Iterator[Finding]:
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
def tunnel_within_a_cloud(context: CheckContext) -> Iterator[Finding]:
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
def gateway_elsewhere(context: CheckContext) -> Iterator[Finding]:
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
