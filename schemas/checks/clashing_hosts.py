"""Addresses of existing hosts that a network of the cluster claims too."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from ipaddress import ip_address
from itertools import chain

from ..hostlist import fold
from .cidrs import Placed, kubernetes_networks, parsed, readable, site_networks
from .context import CheckContext, HostGroup
from .overlaps import ends, overlap
from .registry import Finding, check


@check("GC306", summary="Hosts have addresses that belong to another network of the cluster.")
def host_in_other_network(context: CheckContext) -> Iterator[Finding]:
    """A host's address lies in no network of another site, nor in that of pods or services.

    The other nodes would look for it there. Change the network that is made: hosts that exist keep
    their addresses.
    """
    if all(group.addresses is None for group in context.host_groups):
        return
    made = _apart(
        placed
        for placed in readable(chain(site_networks(context), kubernetes_networks(context)))
        if not context.exists(placed.written.site)
    )
    if not made:
        return
    starts = [ends(placed.network)[:2] for placed in made]
    for group in context.host_groups:
        site = context.sites.get(context.pools[group.pool].site)
        own = parsed(site.networks.get(("network", "cidr"), "") if site is not None else "")
        for placed, addresses in _inside(group, made, starts).items():
            written = placed.written
            if not isinstance(own, str) and overlap(own, placed.network):
                continue  # said of the two networks
            yield Finding(
                summary=f'pool "{group.pool}": {fold(addresses)} '
                f"{'is' if len(addresses) == 1 else 'are'} in {placed.network} of {written.who}",
                path=(*group.path, "address"),
                hint=f"choose another network for {written.who}",
                relies_on=((*group.path, "address"), written.path),
            )


def _apart(placed: Iterator[Placed]) -> list[Placed]:
    """Return networks in order, without those that lie in another one."""
    found: list[Placed] = []
    for one in sorted(placed, key=lambda p: (*ends(p.network)[:2], -ends(p.network)[2])):
        before = ends(found[-1].network) if found else (0, 0, -1)
        if before[0] != ends(one.network)[0] or ends(one.network)[2] > before[2]:
            found.append(one)
    return found


def _inside(
    group: HostGroup, made: list[Placed], starts: list[tuple[int, int]]
) -> dict[Placed, list[str]]:
    """Return the addresses of a group that lie in a network, by that network."""
    inside: dict[Placed, list[str]] = {}
    for text in group.addresses or ():
        try:
            address = ip_address(text)
        except ValueError:
            continue  # a DNS name
        index = bisect_right(starts, (address.version, int(address))) - 1
        if index >= 0 and address in made[index].network:
            inside.setdefault(made[index], []).append(text)
    return inside
