"""Addresses of clouds' networks: whether the subnets fit that are made of one, and the nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ipaddress import IPv4Network
from typing import NamedTuple

from ...catalog import ProviderFacts
from ...derived.subnets import Subnet, TooSmallError, divide, stands_in, zones_of_site
from ...diagnostics import PathTuple, listing
from ...spec import CloudSite, LustreStorage
from ..context import CheckContext
from ..registry import Finding, check
from .cidrs import Written, readable, site_networks

_BITS = 32
_TIB = 2**40


class _Made(NamedTuple):
    """A cloud's network that is made, and what is known of who wants addresses in it."""

    name: str
    site: CloudSite
    facts: ProviderFacts
    network: IPv4Network
    written: Written
    zones: Sequence[str | None]
    managed: bool
    """The provider runs the control plane in it."""
    pools: Sequence[str]

    @property
    def relies_on(self) -> tuple[PathTuple, ...]:
        """Where it comes from."""
        keys = ("count", "zones", "role", "public_address")
        return (self.written.path, *(("pools", pool, key) for pool in self.pools for key in keys))


class _Shortage(NamedTuple):
    """A subnet without enough addresses."""

    subnet: Subnet
    what: str
    """What it has, and what is wanted of it, in words."""


def _made(context: CheckContext) -> Iterator[_Made]:
    """Yield the networks that are made of clouds whose limits are known."""
    kubernetes = context.kubernetes
    for placed in readable(site_networks(context)):
        name = placed.written.site or ""
        site, facts = context.sites.get(name), context.site_facts(name)
        if not isinstance(site, CloudSite) or facts is None or site.existing_network is not None:
            continue
        if facts.subnet_prefixes and isinstance(placed.network, IPv4Network):
            pools = context.pools_of_site.get(name, ())
            yield _Made(
                name=name,
                site=site,
                facts=facts,
                network=placed.network,
                written=placed.written,
                zones=zones_of_site(
                    site,
                    (context.pools[pool] for pool in pools),
                    (s for s in context.storage.values() if getattr(s, "site", None) == name),
                ),
                managed=kubernetes is not None and kubernetes.control_plane == "eks",
                pools=pools,
            )


def _divided(made: _Made, network: IPv4Network) -> tuple[Subnet, ...] | None:
    """Return the subnets of a network; None where they don't fit."""
    longest = made.facts.subnet_prefixes[1]
    provider = made.site.provider
    try:
        return divide(provider, network, longest, zones=made.zones, managed=made.managed)
    except TooSmallError:
        return None


def _shortages(
    context: CheckContext, made: _Made, subnets: Sequence[Subnet]
) -> Iterator[_Shortage]:
    """Yield the subnets without an address for every node that may be there at once."""
    kept = made.facts.subnet_reserved_addresses or 0
    for subnet in subnets:
        if subnet.what == "storage":
            yield from _of_lustre(context, made, subnet)
            continue
        pools = [
            pool
            for pool in made.pools
            if stands_in(subnet, made.site.provider, made.site.zone, context.pools[pool])
        ]
        nodes = sum(context.size(pool) or 0 for pool in pools)
        room = subnet.network.num_addresses - kept
        if nodes > room:
            yield _Shortage(
                subnet,
                f"has {room:,} addresses for nodes, {listing(pools)} "
                f"{'need' if len(pools) > 1 else 'needs'} {nodes:,}",
            )


def _of_lustre(context: CheckContext, made: _Made, subnet: Subnet) -> Iterator[_Shortage]:
    """Yield a subnet that is too small for the managed file systems that are made in it."""
    wanted, names = 0, []
    for name, storage in context.storage.items():
        if not isinstance(storage, LustreStorage) or storage.capacity is None:
            continue
        if storage.site != made.name or storage.mgs or storage.existing or storage.servers:
            continue
        tib = storage.capacity.value / _TIB
        sizes = [row.prefix for row in made.facts.lustre_subnets if row.up_to_tib >= tib]
        # Of larger ones than the provider's table has it is known that they need no less.
        known = sizes[0] if sizes else min(row.prefix for row in made.facts.lustre_subnets)
        wanted += 2 ** (_BITS - known)
        names.append(name)
    if wanted > subnet.network.num_addresses:
        yield _Shortage(
            subnet,
            f"has {subnet.network.num_addresses:,} addresses, Managed Lustre of "
            f"{listing(names)} wants {wanted:,}",
        )


def _fitting(context: CheckContext, made: _Made) -> str:
    """Say which network would be large enough."""
    shortest = made.facts.subnet_prefixes[0]
    for prefix in range(made.network.prefixlen - 1, shortest - 1, -1):
        larger = IPv4Network((int(made.network.network_address), prefix), strict=False)
        subnets = _divided(made, larger)
        if subnets is not None and not any(_shortages(context, made, subnets)):
            return f"take at least a /{prefix}"
    return f"no network of {made.site.provider} is large enough: lower the counts"


@check("GC321", summary="A cloud makes no network of this size, or not its subnets.")
def network_size_not_made(context: CheckContext) -> Iterator[Finding]:
    """A site's network is divided into subnets, and each cloud makes them of certain sizes.

    AWS makes networks and subnets of /16 to /28, OCI of /16 to /30, Azure's and Google's smallest
    subnet is a /29. Half of the network is for the nodes; on AWS each further zone, EKS and public
    addresses have parts of the other half, on Azure storage and the other nodes.
    """
    for made in _made(context):
        shortest, longest = made.facts.subnet_prefixes
        default = "the default " if made.written.is_default else ""
        lead = f'site "{made.name}": {default}{made.network}'
        provider = made.site.provider
        if made.network.prefixlen < shortest:
            first = IPv4Network((int(made.network.network_address), shortest))
            summary = f"{lead} is larger than any network of {provider}"
            hint = f"take a part of it, at most a /{shortest}: {first}"
        elif _divided(made, made.network) is None:
            summary = (
                f"{lead} is too small for its subnets, of which {provider} makes none smaller "
                f"than a /{longest}"
            )
            hint = _fitting(context, made)
        else:
            continue
        yield Finding(
            summary=summary,
            path=made.written.path,
            at_key=made.written.is_default,
            hint=hint,
            relies_on=made.relies_on,
        )


@check("GC309", summary="A cloud network is too small for the largest size of its pools.")
def subnet_too_small(context: CheckContext) -> Iterator[Finding]:
    """Each subnet of a site's network has an address for every node that may be there at once.

    Pools count with their `max`, in every zone that they name. The provider keeps some addresses of
    every subnet (AWS and Azure 5, Google 4, OCI 3). Interfaces that only carry the fabric (all
    32 EFA-only ones of a p5, RDMA) take none here. File systems, load balancers and EKS' pods
    take some of the nodes' too, so leave them room; Azure's Managed Lustre has a subnet of its own.
    """
    for made in _made(context):
        subnets = _divided(made, made.network)
        if subnets is None or made.network.prefixlen < made.facts.subnet_prefixes[0]:
            continue
        for short in _shortages(context, made, subnets):
            of = "" if short.subnet.network == made.network else f" of {made.network}"
            zone = f" in {short.subnet.zone}" if short.subnet.zone else ""
            default = "the default " if made.written.is_default and not of else ""
            yield Finding(
                summary=f'site "{made.name}": {default}{short.subnet.network}{of}, the '
                f"{short.subnet.what} subnet{zone}, {short.what}",
                path=made.written.path,
                at_key=made.written.is_default,
                hint=_fitting(context, made),
                relies_on=made.relies_on,
            )
