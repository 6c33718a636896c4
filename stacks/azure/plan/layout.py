"""From the spec to the plan of one site: all decisions that need no SDK."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from ipaddress import IPv4Network, ip_network
from typing import cast

import msgspec

from ....schemas.catalog import Catalog
from ....schemas.derived.control_planes import api_name, balanced_site, site_domain
from ....schemas.derived.links import SiteEnds, site_ends
from ....schemas.derived.subnets import divide
from ....schemas.diagnostics import Diagnostic, PathTuple
from ....schemas.spec import AzureSite, ClusterSpec
from ....schemas.spec.sites.site import DEFAULT_CLOUD_CIDR
from ...provider import ProviderError, provider_error
from ...pulumi.plan import budget_plan, site_labels, site_names, site_of, volume_plans
from . import pools, storage
from .control_plane import control_plane_plan
from .facts import facts
from .identifiers import existing
from .types import (
    AccessPlan,
    DnsPlan,
    NetworkPlan,
    PoolPlan,
    SitePlan,
    StoragePlan,
    SubnetName,
    SubnetPlan,
)

_VNET = "Microsoft.Network/virtualNetworks"
_IDENTITY = "Microsoft.ManagedIdentity/userAssignedIdentities"
_ZONE = "Microsoft.Network/privateDnsZones"


def site_plan(spec: ClusterSpec, site: str, catalog: Catalog) -> SitePlan:
    """Return the plan of a site.

    Raises:
        ProviderError: GC990, the spec needs what Azure does not offer or what is not named.
    """
    found = described(spec, site)
    data = storage.storage(spec, site, found)
    planned = pools.pools(spec, site, found, catalog)
    return SitePlan(
        names=site_names(spec, site),
        labels=site_labels(spec, site),
        subscription=found.subscription,
        region=found.region,
        resource_group=found.resource_group or "",
        user=found.ssh.user or facts().user,
        network=_network(found, data, catalog, site_ends(spec, site)),
        pools=planned,
        storage=data,
        access=_access(found, planned),
        dns=_dns(spec, site, found),
        api_name=(api_name(spec, site) or "") if balanced_site(spec) == site else "",
        control_plane=control_plane_plan(spec, found, planned, catalog),
        key=None if found.kms_key is None else storage.key(found, found.kms_key, field="kms_key"),
        budget=budget_plan(spec, site),
        volumes=volume_plans(spec, site),
    )


def refusals(spec: ClusterSpec, site: str, catalog: Catalog) -> tuple[Diagnostic, ...]:
    """Return what Azure doesn't offer of a site's part of a spec, checking each part separately."""
    found = described(spec, site)
    here = [name for name, pool in spec.pools.items() if pool.site == site]
    parts: list[tuple[PathTuple, Callable[[], object]]] = [
        (("sites", site), partial(storage.storage, spec, site, found)),
        *((("pools", name), partial(pools.plan_pool, spec, name, found, catalog)) for name in here),
        (("sites", site), partial(site_plan, spec, site, catalog)),
    ]
    said: dict[tuple[str, str], Diagnostic] = {}
    for path, part in parts:
        try:
            part()
        except ProviderError as error:
            for each in error.diagnostics:
                placed = each if each.path else msgspec.structs.replace(each, path=path)
                said.setdefault((each.code, each.summary), placed)
    return tuple(said.values())


def described(spec: ClusterSpec, site: str) -> AzureSite:
    """Return the site as the spec describes it; TypeError where it is not on Azure."""
    return site_of(spec, site, AzureSite)


def _network(
    site: AzureSite, storage: StoragePlan, catalog: Catalog, ends: SiteEnds
) -> NetworkPlan:
    admin = _private(site.network.admin_cidrs)
    if site.network.vnet is not None:
        whole_net = _existing_network(site, site.network.vnet, admin, storage)
        return msgspec.structs.replace(whole_net, allowed_networks=ends.allowed_networks)
    cidr = site.network.cidr or DEFAULT_CLOUD_CIDR
    _refuse_reserved(cidr, catalog)
    _, longest = catalog.providers[site.provider].subnet_prefixes
    return NetworkPlan(
        cidr=cidr,
        subnets=tuple(
            SubnetPlan(name=cast("SubnetName", subnet.what), cidr=str(subnet.network))
            for subnet in divide(site.provider, IPv4Network(cidr), longest)
        ),
        admin_cidrs=admin,
        nat=site.proxy is None,
        kept=bool(storage.file_systems),
        allowed_networks=ends.allowed_networks,
        routes=ends.routes,
    )


def _existing_network(
    site: AzureSite, vnet: str, admin: tuple[str, ...], storage: StoragePlan
) -> NetworkPlan:
    whole = existing(site, vnet, _VNET, field="network.vnet")
    subnets = site.network.subnets
    if subnets is None:
        raise provider_error(
            "GC990",
            f'network.vnet: "{vnet}" exists, and the site does not say which subnet to use',
            hint="add subnets: {compute: NAME}",
        )
    if subnets.storage is None and storage.file_systems:
        raise provider_error(
            "GC990",
            "network.subnets names no subnet for Managed Lustre, which needs one of its own",
            hint="add storage: NAME to subnets; /24 is recommended",
        )
    named: list[tuple[SubnetName, str | None]] = [
        ("compute", subnets.compute), ("storage", subnets.storage), ("egress", subnets.compute),
    ]  # fmt: skip
    return NetworkPlan(
        existing=whole,
        subnets=tuple(
            SubnetPlan(name=name, existing=_subnet(whole, written))
            for name, written in named
            if written
        ),
        admin_cidrs=admin,
        nat=False,
    )


def _subnet(vnet: str, written: str) -> str:
    return written if written.startswith("/") else f"{vnet}/subnets/{written}"


def _private(cidrs: Iterable[str]) -> tuple[str, ...]:
    """Return the networks; the whole world is refused (GC310 reports it before)."""
    for cidr in cidrs:
        if ip_network(cidr, strict=False).prefixlen == 0:
            raise provider_error(
                "GC990",
                f"network.admin_cidrs: {cidr} would open SSH to the world",
                hint="name your own network, such as 192.0.2.0/24",
            )
    return tuple(cidrs)


def _refuse_reserved(cidr: str, catalog: Catalog) -> None:
    """Refuse addresses that Azure reserves: 172.16.0.0/16 is InfiniBand's (reported by GC305)."""
    whole = ip_network(cidr)
    for reserved in catalog.providers["azure"].reserved_networks:
        other = ip_network(reserved.cidr)
        if whole.version == other.version and whole.overlaps(other):
            raise provider_error(
                "GC990",
                f"network.cidr: {cidr} overlaps {reserved.cidr}: {reserved.reason}",
                hint=f"take another network, such as {DEFAULT_CLOUD_CIDR}",
            )


def _access(site: AzureSite, planned: tuple[PoolPlan, ...]) -> AccessPlan:
    node, burst = site.roles.node, site.roles.burst
    return AccessPlan(
        node_identity="" if node is None else existing(site, node, _IDENTITY, field="roles.node"),
        burst_identity=""
        if burst is None
        else existing(site, burst, _IDENTITY, field="roles.burst"),
        makes_burst=burst is None and any(pool.elastic for pool in planned),
    )


def _dns(spec: ClusterSpec, name: str, site: AzureSite) -> DnsPlan:
    domain = site_domain(spec, name) or ""
    if site.dns is None:
        return DnsPlan(domain=domain)
    return DnsPlan(domain=domain, existing=existing(site, site.dns.zone, _ZONE, field="dns.zone"))
