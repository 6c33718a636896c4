"""A site of the spec as the plan of what to make on OCI: no SDK, no clock, no network."""

from __future__ import annotations

import ipaddress

import msgspec

from ....schemas.catalog import Catalog
from ....schemas.derived.links import site_ends
from ....schemas.derived.subnets import divide
from ....schemas.spec import ClusterSpec
from ....schemas.spec.sites import OciSite
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
from .pools import cluster_plans, pool_plan
from .storage import file_storage_plans, lustre_plans
from .types import DnsPlan, IdentityPlan, NetworkPlan, SitePlan, SubnetPlan


def site_plan(spec: ClusterSpec, site: str, catalog: Catalog) -> SitePlan:
    """Return the plan of one OCI site.

    Raises:
        KeyError: there is no such site.
        TypeError: it is of another provider.
    """
    here = site_of(spec, site, OciSite)
    pools = tuple(pool_plan(spec, n, catalog) for n, p in spec.pools.items() if p.site == site)
    bursts = any(p.elastic for p in pools) and any(p.role == "controller" for p in pools)
    network = msgspec.structs.replace(
        _network(here, catalog), allowed_networks=site_ends(spec, site).allowed_networks
    )
    return SitePlan(
        names=site_names(spec, site),
        labels=site_labels(spec, site),
        region=here.region,
        tenancy=here.tenancy,
        compartment=here.compartment,
        network=network,
        kms_key=here.kms_key,
        identity=IdentityPlan(
            node_group=here.roles.node,
            burst_group=here.roles.burst,
            bursts=bursts,
            grants=grant_plans(spec, site, "oci"),
        ),
        dns=None if here.dns is None else DnsPlan(domain=here.dns.domain or "", zone=here.dns.zone),
        clusters=cluster_plans(spec, site, catalog),
        pools=pools,
        lustre=lustre_plans(spec, site),
        file_storage=file_storage_plans(spec, site, network.cidr),
        buckets=bucket_plans(spec, site, "oci", here.kms_key),
        volumes=volume_plans(spec, site),
        budget=budget_plan(spec, site),
    )


def _network(here: OciSite, catalog: Catalog) -> NetworkPlan:
    written = here.network
    if written.vcn is not None:
        subnets = written.subnets
        return NetworkPlan(
            vcn=written.vcn,
            compute_subnet=None if subnets is None else subnets.compute,
            public_subnet=None if subnets is None else subnets.public,
            security_groups=tuple(written.security_groups),
            admin_cidrs=tuple(written.admin_cidrs),
            nat=False,
        )
    cidr = written.cidr or DEFAULT_CLOUD_CIDR
    _, longest = catalog.providers[here.provider].subnet_prefixes
    compute, public = divide(here.provider, ipaddress.IPv4Network(cidr), longest)
    return NetworkPlan(
        cidr=cidr,
        compute=SubnetPlan(what=compute.what, cidr=str(compute.network)),
        public=SubnetPlan(what=public.what, cidr=str(public.network), is_public=True),
        nat=here.proxy is None,
        security_groups=tuple(written.security_groups),
        admin_cidrs=tuple(written.admin_cidrs),
    )
