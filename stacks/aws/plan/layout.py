"""A site of the spec as the plan of what to make on AWS: no SDK, no clock, no network."""

from __future__ import annotations

import ipaddress

from ....schemas.catalog import Catalog
from ....schemas.derived.control_planes import api_name, balanced_site, managed_by, site_domain
from ....schemas.derived.links import site_ends
from ....schemas.derived.subnets import Subnet, divide, zones_of_site
from ....schemas.spec import AwsSite, ClusterSpec
from ....schemas.spec.sites.site import DEFAULT_CLOUD_CIDR
from ...pulumi.plan import (
    bucket_plans,
    budget_plan,
    grant_plans,
    site_labels,
    site_names,
    site_of,
    volume_plans,
)
from .control_plane import control_plane_plan
from .eks_groups import group_plans
from .pools import placement_plans, pool_plan
from .storage import efs_plans, lustre_plans, openzfs_plans
from .types import DnsPlan, IdentityPlan, NetworkPlan, SitePlan, SubnetPlan


def site_plan(spec: ClusterSpec, site: str, catalog: Catalog) -> SitePlan:
    """Return the plan of one AWS site.

    Raises:
        KeyError: there is no such site.
        TypeError: it is of another provider.
    """
    here = site_of(spec, site, AwsSite)
    subnets = _subnets(spec, site, catalog)
    pools = tuple(pool_plan(spec, n, catalog) for n, p in spec.pools.items() if p.site == site)
    elastic = any(pool.elastic for pool in pools)
    controlled = any(pool.role == "controller" for pool in pools)
    groups = group_plans(spec, site, catalog)
    network = _network(spec, site, subnets, elastic=elastic, groups=bool(groups))
    return SitePlan(
        names=site_names(spec, site),
        labels=site_labels(spec, site),
        region=here.region,
        account=here.account,
        partition=partition(here.region),
        network=network,
        kms_key=here.kms_key,
        identity=IdentityPlan(
            node_profile=here.roles.node,
            burst_profile=here.roles.burst,
            bursts=elastic and controlled,
            bursts_spot=any(pool.elastic and pool.buys_spot for pool in pools),
            joins_eks=any(pool.joins_eks for pool in pools),
            session_manager=here.tunnel == "ssm",
            grants=grant_plans(spec, site, "s3"),
            policies=tuple(dict.fromkeys(here.policies)),
        ),
        dns=_dns(spec, site),
        api_name=api_name(spec, site) if balanced_site(spec) == site else None,
        control_plane=control_plane_plan(
            spec, site, catalog, reserved=_eks_network(subnets), groups=groups
        ),
        placements=placement_plans(spec, site, catalog),
        pools=pools,
        lustre=lustre_plans(spec, site),
        efs=efs_plans(spec, site, network),
        openzfs=openzfs_plans(spec, site, network),
        buckets=bucket_plans(spec, site, "s3", here.kms_key),
        volumes=volume_plans(spec, site),
        budget=budget_plan(spec, site),
    )


def partition(region: str) -> str:
    """Return the partition of a region: how its ARNs begin after "arn:"."""
    if region.startswith("cn-"):
        return "aws-cn"
    return "aws-us-gov" if region.startswith("us-gov-") else "aws"


def _subnets(spec: ClusterSpec, site: str, catalog: Catalog) -> tuple[Subnet, ...]:
    """Return the subnets to make; none in a network that exists. Raises TooSmallError (GC321)."""
    here = site_of(spec, site, AwsSite)
    if here.network.vpc is not None:
        return ()
    _, longest = catalog.providers[here.provider].subnet_prefixes
    return divide(
        here.provider,
        ipaddress.IPv4Network(here.network.cidr or DEFAULT_CLOUD_CIDR),
        longest,
        zones=zones_of_site(
            here,
            (pool for pool in spec.pools.values() if pool.site == site),
            (each for each in spec.storage.values() if getattr(each, "site", None) == site),
        ),
        managed=managed_by(spec) == "eks",
    )


def _network(
    spec: ClusterSpec, site: str, subnets: tuple[Subnet, ...], *, elastic: bool, groups: bool
) -> NetworkPlan:
    here = site_of(spec, site, AwsSite)
    written, ends = here.network, site_ends(spec, site)
    if written.vpc is not None:
        existing = written.subnets
        return NetworkPlan(
            vpc=written.vpc,
            compute_subnet=None if existing is None else existing.compute,
            public_subnet=None if existing is None else existing.public,
            security_groups=tuple(written.security_groups),
            admin_cidrs=tuple(written.admin_cidrs),
            allowed_networks=ends.allowed_networks,
            nat=False,
        )
    [public] = [subnet for subnet in subnets if subnet.what == "public"]
    return NetworkPlan(
        cidr=written.cidr or DEFAULT_CLOUD_CIDR,
        compute=tuple(
            SubnetPlan(what=_named(s.what, s.zone), cidr=str(s.network), zone=s.zone)
            for s in subnets
            if s.what == "compute"
        ),
        public=SubnetPlan(what=public.what, cidr=str(public.network), zone=here.zone_id),
        nat=here.proxy is None,
        endpoints=_endpoints(elastic=elastic, groups=groups, outside=here.proxy is None),
        connect_endpoint=here.tunnel == "instance-connect",
        admin_cidrs=tuple(written.admin_cidrs),
        allowed_networks=ends.allowed_networks,
        routes=ends.routes,
    )


def _endpoints(*, elastic: bool, groups: bool, outside: bool) -> tuple[str, ...]:
    """Return what machines are made through: by a controller, or by EKS' autoscaler.

    Its pod reaches AWS by itself where there is a NAT gateway; else it needs what it calls (EKS
    User Guide, "Deploy private clusters with limited internet access": eks-auth is Pod Identity's).
    """
    if groups:
        return () if outside else ("autoscaling", "ec2", "eks-auth")
    return ("ec2",) if elastic else ()


def _eks_network(subnets: tuple[Subnet, ...]) -> str:
    """Return the part of the network that EKS has; "" in one that exists, and without EKS."""
    return next((str(s.network) for s in subnets if s.what == "control-plane"), "")


def _named(what: str, zone: str | None) -> str:
    return what if zone is None else f"{what}-{zone}"


def _dns(spec: ClusterSpec, site: str) -> DnsPlan:
    """Return the zone of the nodes' names; one that is made is private: NAME.SITE.internal."""
    here = site_of(spec, site, AwsSite)
    domain = site_domain(spec, site) or ""
    return DnsPlan(domain=domain, zone=None if here.dns is None else here.dns.zone)
