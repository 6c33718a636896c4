"""Networks as the spec writes them: read once, each with the place it is written at."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_interface, ip_network
from typing import NamedTuple, TypeAlias

from ..diagnostics import PathTuple
from ..mend.fix import Replace
from ..spec import CloudSite, LocalSite
from ..spec.sites.site import DEFAULT_CLOUD_CIDR
from .context import CheckContext
from .registry import Finding, check

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
    """Return the network that a text stands for, or what is wrong with it."""
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

    Networks of local and cloud sites are IPv4; those of admins and existing hosts may be IPv6 as
    well.
    """
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
    """Say what an admin's address with a prefix length may stand for."""
    try:
        address = ip_interface(text)
    except ValueError:
        return "write a network such as 192.0.2.0/24, or one address as 192.0.2.7/32"
    one = f"{address.ip}/{address.max_prefixlen}"
    return f"write {one} for that address alone, or {address.network} for its network"
