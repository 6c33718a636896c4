"""The nodes' network: which subnet, which address for which node; and how it is made."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

from ..provider import ProviderError, Resource, SiteContext, provider_error
from . import labels, records
from .engine import Engine, Network

AUTO_RANGE = IPv4Network("10.210.0.0/16")
"""Range in which `cidr: auto` searches for a free /24."""

FIRST_NODE = 10
"""Offset of the first node's address; .1 is the gateway, which also answers DNS."""

_TRIES = 8
"""Subnets to try when other clusters take the free ones at the same time."""


def host_routes(table: Path = Path("/proc/net/route")) -> tuple[IPv4Network, ...]:
    """Return the IPv4 networks that this machine has routes to, without the default route."""
    routes = []
    for line in table.read_text().splitlines()[1:]:
        fields = line.split()
        # The kernel writes addresses as little-endian hexadecimal 32-bit words (proc_net_route).
        target, mask = (struct.pack("<L", int(fields[i], 16)) for i in (1, 7))
        if any(mask):
            routes.append(IPv4Network((target, str(IPv4Address(mask)))))
    return tuple(routes)


def used_networks(
    container_networks: Iterable[str], routes: Iterable[IPv4Network]
) -> list[IPv4Network]:
    """Return the IPv4 networks that a new one must not overlap."""
    subnets = [IPv4Network(subnet) for subnet in container_networks if ":" not in subnet]
    return [*subnets, *routes]


def free_subnets(key: str, used: Sequence[IPv4Network]) -> Iterator[IPv4Network]:
    """Yield the free /24s of AUTO_RANGE, starting at a place that depends on `key`.

    Two clusters that start at once then rarely try the same one; the engine refuses the second.
    """
    candidates = list(AUTO_RANGE.subnets(new_prefix=24))
    start = int.from_bytes(hashlib.sha256(key.encode()).digest()[:2], "big") % len(candidates)
    for subnet in candidates[start:] + candidates[:start]:
        if not any(subnet.overlaps(other) for other in used):
            yield subnet


def requested_subnet(cidr: str) -> IPv4Network | None:
    """Return the network of the spec; None for "auto".

    Raises:
        ProviderError: it isn't an IPv4 network.
    """
    if cidr == "auto":
        return None
    try:
        return IPv4Network(cidr)
    except ValueError as error:
        raise provider_error(
            "GC915",
            f'network.cidr "{cidr}" is not an IPv4 network: {error}',
            hint="write it as 10.210.7.0/24, or leave it out",
        ) from None


def candidates(cidr: str, key: str, used: Sequence[IPv4Network]) -> Iterator[IPv4Network]:
    """Yield the subnets to try: the one of the spec, or the free ones.

    Raises:
        ProviderError: the requested one overlaps an existing one.
    """
    requested = requested_subnet(cidr)
    if requested is None:
        yield from free_subnets(key, used)
        return
    clash = next((other for other in used if requested.overlaps(other)), None)
    if clash is not None:
        raise provider_error(
            "GC915",
            f"{requested} overlaps {clash}, which this machine uses already",
            hint="choose another network.cidr, or leave it out",
        )
    yield requested


def gateway(subnet: IPv4Network) -> str:
    """Return the first address, the engine's end of the network."""
    return str(subnet[1])


def capacity(subnet: IPv4Network) -> int:
    """Return how many nodes have an address in the subnet."""
    return max(0, subnet.num_addresses - FIRST_NODE - 1)


def hardware_address(address: str) -> str:
    """Return the MAC address of the node with an IPv4 address: 02:00 and its four bytes.

    A recreated node has its predecessor's: peers reach it at once, and not only when their
    neighbour entry has expired (up to a minute). Locally administered, unicast (IEEE 802, bit 2 of
    the first byte).
    """
    return ":".join(f"{byte:02x}" for byte in (2, 0, *IPv4Address(address).packed))


def assign(
    subnet: IPv4Network, names: Sequence[str], known: Mapping[str, str], held: Iterable[str] = ()
) -> dict[str, str]:
    """Give each name an address: the one it had, else the lowest free one, in order.

    Args:
        subnet: the nodes' network.
        names: nodes that need an address.
        known: node -> address as given before; nodes that come and go don't move the others.
        held: addresses in use by what isn't in `known`.

    Raises:
        ProviderError: the subnet is full.
    """
    kept = {n: a for n, a in known.items() if IPv4Address(a) in subnet}
    used = {*kept.values(), *held}
    free = (a for i in range(capacity(subnet)) if (a := str(subnet[FIRST_NODE + i])) not in used)
    addresses = {}
    for name in names:
        address = kept.get(name) or next(free, None)
        if address is None:
            raise provider_error(
                "GC915",
                f"{subnet} has room for {capacity(subnet)} nodes, and no address for {name}",
                hint="set network.cidr of the site to a larger network, such as 10.211.0.0/20",
            )
        addresses[name] = address
    return addresses


def is_clash(words: str) -> bool:
    """Return whether the engine refused a subnet because it was taken meanwhile."""
    return any(sign in words.lower() for sign in ("already used", "overlap", "already in use"))


def ensure_network(
    context: SiteContext, engine: Engine, existing: Network | None, net: Resource
) -> IPv4Network:
    """Return the subnet of the site's network, which is made where there is none.

    Raises:
        ProviderError: no free subnet (GC915), or the engine failed.
    """
    if existing is not None:
        return IPv4Network(existing.subnets[0])
    intent = context.ledger.intend(context.site, net)
    try:
        made, subnet = _create(context, engine, net, intent)
    except ProviderError as error:
        context.ledger.failed(intent, str(error))
        raise
    context.ledger.created(intent, made)
    with records.updated(context) as remembered:
        remembered.ids[net.key] = made
        remembered.addresses.clear()
    return subnet


def _create(
    context: SiteContext, engine: Engine, net: Resource, intent: str
) -> tuple[str, IPv4Network]:
    """Make the network in the first subnet that the engine accepts."""
    used = used_networks((s for n in engine.networks() for s in n.subnets), host_routes())
    cidr = str(net.properties["cidr"])
    object_labels = {**labels.owner(context), labels.KIND: "network", labels.TOKEN: intent}
    refused: ProviderError | None = None
    kind = ("--internal",) if net.properties.get("internal") else ()
    for tried, subnet in enumerate(candidates(cidr, net.name, used)):
        if tried == _TRIES:
            break
        where = (f"--subnet={subnet}", f"--gateway={gateway(subnet)}", *kind)
        try:
            engine.call("network", "create", *where, *labels.flags(object_labels), net.name)
        except ProviderError as error:
            if not is_clash(str(error)):
                raise
            refused = error
            continue
        made = engine.networks({**labels.owner(context), labels.KIND: "network"})
        return next(n.id for n in made if n.name == net.name), subnet
    raise refused or provider_error(
        "GC915",
        f"no /24 of {AUTO_RANGE} is free on this machine",
        hint="set network.cidr of the site to a free network",
    )
