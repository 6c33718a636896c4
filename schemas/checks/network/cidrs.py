"""Address ranges: their form and size, and that no two of them overlap."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_interface, ip_network
from itertools import chain
from typing import NamedTuple, TypeAlias

from ...diagnostics import PathTuple
from ...spec import CloudSite, LocalSite
from ...spec.sites.site import DEFAULT_CLOUD_CIDR
from ...structure.fix.edits import Replace
from ..context import CheckContext
from ..registry import Finding, check

Network: TypeAlias = IPv4Network | IPv6Network


class Written(NamedTuple):
    """A network of the spec."""

    who: str
    """Whose it is: site "east", the pods."""
    text: str
    path: PathTuple
    site: str | None = None
    """The site it belongs to, if any."""
    is_default: bool = False
    """Nothing is written: this is what is taken then."""


class Placed(NamedTuple):
    """A network that could be read."""

    network: Network
    written: Written


@lru_cache(maxsize=4096)
def parsed(text: str) -> Network | str:
    """Return the network that a text denotes, or what is wrong with it."""
    if "/" not in text:
        return 'it has no prefix length, such as "/24"'
    try:
        network = ip_network(text, strict=False)
    except ValueError:
        return "there is no such address or prefix length"
    if str(network.network_address) != text.split("/", 1)[0].lower():
        return f"it names a host: the network is {network}"
    return network


def site_networks(context: CheckContext) -> Iterator[Written]:
    """Yield the networks of sites, with what clouds take where nothing is written."""
    for name, site in context.sites.items():
        who = f'site "{name}"'
        for below, text in site.networks.items():
            yield Written(who, text, ("sites", name, *below), name)
        if isinstance(site, CloudSite) and not site.networks and site.existing_network is None:
            yield Written(who, DEFAULT_CLOUD_CIDR, ("sites", name), name, is_default=True)


def kubernetes_networks(context: CheckContext) -> Iterator[Written]:
    """Yield the networks of pods and services, where the scheduler is Kubernetes.

    Those of pods and of services come first, then the rails' that pods have addresses on.
    """
    scheduler = context.kubernetes
    if scheduler is None:
        return
    yield Written("the pods", scheduler.pod_cidr, ("scheduler", "pod_cidr"))
    yield Written("the services", scheduler.service_cidr, ("scheduler", "service_cidr"))
    for name, pool in context.pools.items():
        if pool.rdma.pods is not None:
            path = ("pools", name, "rdma", "pods", "network")
            yield Written(f'the rails of pool "{name}"', pool.rdma.pods.network, path)


def rail_networks(context: CheckContext) -> Iterator[Written]:
    """Yield the networks in which nodes have addresses on their rails."""
    for name, pool in context.pools.items():
        path: PathTuple = ("pools", name, "rdma")
        for index, text in enumerate(pool.rdma.networks):
            yield Written(f'the rails of pool "{name}"', text, (*path, "networks", index))
        if pool.rdma.ipoib is not None:
            text = pool.rdma.ipoib.network
            yield Written(f'IPoIB of pool "{name}"', text, (*path, "ipoib", "network"))


def readable(written: Iterator[Written]) -> Iterator[Placed]:
    """Yield those that are networks."""
    for one in written:
        network = parsed(one.text)
        if not isinstance(network, str):
            yield Placed(network, one)


def admin_networks(context: CheckContext) -> Iterator[Written]:
    """Yield the networks that may reach SSH."""
    for name, site in context.sites.items():
        if isinstance(site, CloudSite):
            for index, text in enumerate(site.network.admin_cidrs):
                path = ("sites", name, "network", "admin_cidrs", index)
                yield Written(f'admin_cidrs of site "{name}"', text, path, name)


@check("GC301", summary="A CIDR is not a network.")
def invalid_cidr(context: CheckContext) -> Iterator[Finding]:
    """A network is written as its first address and its prefix length: 10.42.0.0/24.

    Networks of local and cloud sites and of rails are IPv4; those of admins and existing hosts may
    be IPv6 as well.
    """
    for one in rail_networks(context):
        if problem := _problem(one, only_v4=True):
            yield Finding(
                summary=f'{one.who}: "{one.text[:60]}" is not a network: {problem}',
                path=one.path,
                hint="write a network such as 10.200.0.0/16",
                fix=_around_host(one),
            )
    for one in (*site_networks(context), *kubernetes_networks(context)):
        site = context.sites.get(one.site or "")
        problem = _problem(one, only_v4=site is not None and site.makes_machines)
        if problem:
            auto = ', or "auto"' if isinstance(site, LocalSite) else ""
            yield Finding(
                summary=f'{one.who}: "{one.text[:60]}" is not a network: {problem}',
                path=one.path,
                hint=f"write a network such as 10.42.0.0/24{auto}",
                fix=_around_host(one),
            )
    for one in admin_networks(context):
        problem = _problem(one, only_v4=False)
        if problem:
            yield Finding(
                summary=f'{one.who}: "{one.text[:60]}" is not a network: {problem}',
                path=one.path,
                hint=_for_admins(one.text),
            )


def _problem(one: Written, *, only_v4: bool) -> str:
    """Return what is wrong with a network, or ""."""
    network = parsed(one.text)
    if isinstance(network, str):
        return network
    return "it is no IPv4 network" if only_v4 and network.version != 4 else ""  # noqa: PLR2004  # IPv4


def _around_host(one: Written) -> Replace | None:
    """Write the network that an address with a prefix length is in."""
    try:
        network = ip_network(one.text, strict=False) if "/" in one.text else None
    except ValueError:
        return None
    is_other = network is not None and isinstance(parsed(one.text), str)
    return Replace(one.path, str(network)) if is_other and not one.is_default else None


def _for_admins(text: str) -> str:
    """Say what an admin's address with a prefix length may denote."""
    try:
        address = ip_interface(text)
    except ValueError:
        return "write a network such as 192.0.2.0/24, or one address as 192.0.2.7/32"
    one = f"{address.ip}/{address.max_prefixlen}"
    return f"write {one} for that address alone, or {address.network} for its network"


def ends(network: Network) -> tuple[int, int, int]:
    """Return a network's IP version, first and last address, to sort and compare by."""
    return network.version, int(network.network_address), int(network.broadcast_address)


def overlap(one: Network, other: Network) -> bool:
    """Say whether two networks have an address in common."""
    (kind, first, last), (other_kind, other_first, other_last) = ends(one), ends(other)
    return kind == other_kind and first <= other_last and other_first <= last


def _relies_on(placed: Placed) -> PathTuple:
    written = placed.written
    return (*written.path, "network") if written.is_default else written.path


def _finding(context: CheckContext, later: Placed, earlier: Placed, hint: str) -> Finding:
    """Return that one network overlaps another, reported at `later`."""
    mine, theirs = later.written, earlier.written
    what = ", the default of" if theirs.is_default else " of"
    default = "the default " if mine.is_default else ""
    return Finding(
        summary=f"{mine.who}: {default}{later.network} overlaps {earlier.network}{what} "
        f"{theirs.who}, line {context.line_of(theirs.path)}",
        path=mine.path,
        at_key=mine.is_default,
        hint=hint,
        relies_on=(_relies_on(later), _relies_on(earlier)),
    )


@check("GC304", summary="The networks of two sites overlap.")
def overlapping_cidrs(context: CheckContext) -> Iterator[Finding]:
    """Sites of one cluster need networks of their own.

    Two container networks with the same addresses can't exist side by side on one machine, and
    nodes of two sites with the same addresses can't reach each other. A cloud site that names no
    network gets 10.40.0.0/16. Bare-metal sites may share one: they may be one room.
    """
    ordered = sorted(readable(site_networks(context)), key=lambda placed: ends(placed.network))
    position = {name: index for index, name in enumerate(context.sites)}
    widest: dict[bool, Placed] = {}
    free = ""
    for placed in ordered:
        exists = context.exists(placed.written.site)
        for of_hosts, before in widest.items():
            if (exists and of_hosts) or not overlap(before.network, placed.network):
                continue
            free = free or _free(ordered)
            both = sorted((before, placed), key=lambda p: position[p.written.site or ""])
            yield _finding(context, both[1], both[0], _hint(context, both[1], free))
            break
        if exists not in widest or ends(placed.network)[::2] > ends(widest[exists].network)[::2]:
            widest[exists] = placed


def _hint(context: CheckContext, placed: Placed, free: str) -> str:
    """Say what to write instead of a network that is taken."""
    site = context.sites.get(placed.written.site or "")
    if isinstance(site, LocalSite):
        return 'choose another network, or "auto"'
    return f"choose another network{f', such as cidr: {free}' if free else ''}"


def _free(placed: Iterable[Placed]) -> str:
    """Return a /16 of 10.0.0.0/8 that no network of the spec overlaps; "" when there is none."""
    taken = [one.network for one in placed]
    for second in range(40, 256):
        network = parsed(f"10.{second}.0.0/16")
        if not isinstance(network, str) and not any(overlap(network, other) for other in taken):
            return str(network)
    return ""


@check("GC305", summary="A network overlaps addresses that the provider keeps for itself.")
def cidr_overlaps_reserved(context: CheckContext) -> Iterator[Finding]:
    """Providers use some addresses inside their machines.

    Azure's InfiniBand machines use 172.16.0.0/16 between themselves: a virtual network, or pods,
    with these addresses cut it off. Every provider keeps 169.254.0.0/16.
    """
    used = {site.provider for site in context.sites.values() if isinstance(site, CloudSite)}
    for placed in readable(chain(site_networks(context), kubernetes_networks(context))):
        site = context.sites.get(placed.written.site or "")
        names = used if site is None else {site.provider} & used
        facts = [context.providers[name] for name in sorted(names) if name in context.providers]
        clash = next(
            (
                (provider.name, kept)
                for provider in facts
                for kept in provider.reserved_networks
                if _overlaps_text(placed.network, kept.cidr)
            ),
            None,
        )
        if clash is not None:
            name, kept = clash
            yield Finding(
                summary=f"{placed.written.who}: {placed.network} overlaps {kept.cidr}, which "
                f"{name} keeps: {kept.reason}",
                path=placed.written.path,
                hint="choose another network, such as one of 10.0.0.0/8",
                relies_on=(_relies_on(placed), ("sites", "*", "provider")),
            )


def _overlaps_text(network: Network, text: str) -> bool:
    other = parsed(text)
    return not isinstance(other, str) and overlap(network, other)


@check("GC307", summary="The networks of pods and services overlap.")
def pod_and_service_cidrs_overlap(context: CheckContext) -> Iterator[Finding]:
    """Kubernetes needs one network for pods and another for services.

    An address that is both would be sent to a pod or to a service, as it happens.
    """
    placed = list(readable(kubernetes_networks(context)))
    for index, later in enumerate(placed):
        for earlier in placed[:index]:
            if overlap(earlier.network, later.network):
                yield _finding(
                    context,
                    later,
                    earlier,
                    "choose two that are apart; the defaults are 10.244.0.0/16 and 10.96.0.0/12",
                )


@check("GC308", summary="The network of a site overlaps that of pods or services.")
def site_and_pod_cidrs_overlap(context: CheckContext) -> Iterator[Finding]:
    """Pods and services have networks of their own, apart from the nodes'.

    A node takes an address of these networks for a pod or a service: machines of the site with the
    same address can't be reached from it.
    """
    sites = list(readable(site_networks(context)))
    for placed in readable(kubernetes_networks(context)):
        for other in sites:
            if overlap(placed.network, other.network):
                yield _finding(
                    context, placed, other, f"choose a network apart from {other.network}"
                )
