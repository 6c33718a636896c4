"""A site of the spec as the plan of what to make on AWS: no SDK, no clock, no network."""

from __future__ import annotations

import ipaddress
import re
from typing import cast

from ....schemas.catalog import Catalog
from ....schemas.derived.control_planes import api_name, balanced_site, managed_by, site_domain
from ....schemas.derived.links import site_ends
from ....schemas.spec import AwsSite, ClusterSpec
from ....schemas.spec.sites.site import DEFAULT_CLOUD_CIDR
from ...pulumi.names import Labels, Names, spec_hash
from .control_plane import control_plane_plan
from .pools import placement_plans, pool_plan, zones_of_site
from .storage import bucket_plans, grant_plans, lustre_plans
from .types import BudgetPlan, DnsPlan, IdentityPlan, NetworkPlan, SitePlan, SubnetPlan

_SLOTS = 16
"""Parts of the upper half of a network: one for each further zone, the last is public."""
_EKS = _SLOTS - 2
"""The slot of a control plane's interfaces, where EKS runs one."""
_LOCAL_ZONE = 8
"""Slots from here on are for Local Zones, which are numbered from 1 too."""


def site_plan(spec: ClusterSpec, site: str, catalog: Catalog) -> SitePlan:
    """Return the plan of one AWS site.

    Raises:
        KeyError: there is no such site.
        TypeError: it is of another provider.
    """
    here = spec.sites[site]
    if not isinstance(here, AwsSite):
        raise TypeError(site)
    pools = tuple(pool_plan(spec, n, catalog) for n, p in spec.pools.items() if p.site == site)
    elastic = any(pool.elastic for pool in pools)
    controlled = any(pool.role == "controller" for pool in pools)
    tags = {**spec.tags, **here.tags}
    return SitePlan(
        names=Names(cluster=spec.name, site=site, cloud="aws"),
        labels=Labels(
            cluster=spec.name,
            site=site,
            spec_hash=spec_hash(spec),
            owner=spec.owner or "",
            extra=tags,
        ),
        region=here.region,
        account=here.account,
        partition=partition(here.region),
        network=_network(spec, site, elastic=elastic),
        kms_key=here.kms_key,
        identity=IdentityPlan(
            node_profile=here.roles.node,
            burst_profile=here.roles.burst,
            bursts=elastic and controlled,
            bursts_spot=any(pool.elastic and pool.buys_spot for pool in pools),
            joins_eks=any(pool.joins_eks for pool in pools),
            grants=grant_plans(spec, site),
        ),
        dns=_dns(spec, site),
        api_name=api_name(spec, site) if balanced_site(spec) == site else None,
        control_plane=control_plane_plan(spec, site, catalog, reserved=_eks_network(here)),
        placements=placement_plans(spec, site, catalog),
        pools=pools,
        lustre=lustre_plans(spec, site),
        buckets=bucket_plans(spec, site),
        budget=_budget(spec, site),
    )


def partition(region: str) -> str:
    """Return the partition of a region: how its ARNs begin after "arn:"."""
    if region.startswith("cn-"):
        return "aws-cn"
    return "aws-us-gov" if region.startswith("us-gov-") else "aws"


def _network(spec: ClusterSpec, site: str, *, elastic: bool) -> NetworkPlan:
    here = cast("AwsSite", spec.sites[site])
    written, ends = here.network, site_ends(spec, site)
    if written.vpc is not None:
        subnets = written.subnets
        return NetworkPlan(
            vpc=written.vpc,
            compute_subnet=None if subnets is None else subnets.compute,
            public_subnet=None if subnets is None else subnets.public,
            security_groups=tuple(written.security_groups),
            admin_cidrs=tuple(written.admin_cidrs),
            let_in=ends.let_in,
            nat=False,
        )
    cidr = written.cidr or DEFAULT_CLOUD_CIDR
    return NetworkPlan(
        cidr=cidr,
        compute=_compute_subnets(cidr, zones_of_site(spec, site), managed_by(spec)),
        public=SubnetPlan(what="public", cidr=_slot(cidr, _SLOTS - 1), zone=here.zone_id),
        nat=here.proxy is None,
        endpoints=("ec2",) if elastic else (),
        admin_cidrs=tuple(written.admin_cidrs),
        let_in=ends.let_in,
        routes=ends.routes,
    )


def _compute_subnets(
    cidr: str, zones: list[str | None], managed: str | None
) -> tuple[SubnetPlan, ...]:
    """Return a subnet for each zone: the site's own has half of the network, the others a slot.

    The slot is the zone's own number, so that naming another zone moves no subnet. EKS has one.
    """
    half = next(ipaddress.ip_network(cidr).subnets(prefixlen_diff=1))
    found = [SubnetPlan(what=_named("compute", zones[0]), cidr=str(half), zone=zones[0])]
    purchased: set[int] = set() if managed is None else {_EKS}
    for zone in zones[1:]:
        wanted = range(_first_slot(zone or ""), _first_slot(zone or "") + _SLOTS)
        slot = next(n % (_SLOTS - 1) for n in wanted if n % (_SLOTS - 1) not in purchased)
        purchased.add(slot)
        found.append(SubnetPlan(what=_named("compute", zone), cidr=_slot(cidr, slot), zone=zone))
    return tuple(found)


def _eks_network(here: AwsSite) -> str:
    """Return the part of the network that EKS may have; "" in one that exists."""
    made = here.network.vpc is None
    return _slot(here.network.cidr or DEFAULT_CLOUD_CIDR, _EKS) if made else ""


def _first_slot(zone: str) -> int:
    """Return the slot that a zone asks for: 4 for use1-az4, those of Local Zones above."""
    number = re.search(r"-az([0-9]+)$", zone)
    is_local = zone.count("-") > 1
    return (int(number[1]) if number else 0) + (_LOCAL_ZONE if is_local else 0)


def _named(what: str, zone: str | None) -> str:
    return what if zone is None else f"{what}-{zone}"


def _slot(cidr: str, number: int) -> str:
    """Return a part of the upper half of a network."""
    *_, upper = ipaddress.ip_network(cidr).subnets(prefixlen_diff=1)
    parts = list(upper.subnets(prefixlen_diff=_SLOTS.bit_length() - 1))
    return str(parts[number])


def _dns(spec: ClusterSpec, site: str) -> DnsPlan:
    """Return the zone of the nodes' names; one that is made is private: NAME.SITE.internal."""
    here = cast("AwsSite", spec.sites[site])
    domain = site_domain(spec, site) or ""
    return DnsPlan(domain=domain, zone=None if here.dns is None else here.dns.zone)


def _budget(spec: ClusterSpec, site: str) -> BudgetPlan | None:
    """Return the alarm, on the first AWS site: it watches the whole cluster."""
    most = None if spec.budget is None else spec.budget.max_usd_per_month
    first = next(name for name, here in spec.sites.items() if isinstance(here, AwsSite))
    if most is None or site != first:
        return None
    email = spec.owner if spec.owner and re.fullmatch(r"[^@\s]+@[^@\s]+", spec.owner) else None
    return BudgetPlan(usd_per_month=most, email=email)
