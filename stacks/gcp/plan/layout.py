"""What a Google Cloud site is made of: spec and catalog turned into plain values (pure).

No Pulumi here: components get their arguments from this plan, and it is tested by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

from ....schemas.catalog import Catalog, Fabric
from ....schemas.derived.control_planes import api_name, balanced_site, site_domain
from ....schemas.derived.links import RouteTo, gateway_links, site_ends
from ....schemas.spec import ClusterSpec, GcpSite
from ....schemas.spec.sites.site import DEFAULT_CLOUD_CIDR
from ....schemas.stack import resolved_pools
from ...pulumi.names import label_value
from ...pulumi.plan import (
    CloudPlan,
    Plan,
    budget_plan,
    site_labels,
    site_names,
    site_of,
    volume_plans,
)
from .control_plane import GkePlan, control_plane_plan
from .fabric import FabricNetworkPlan, fabric_networks, fabric_range
from .facts import facts
from .pools import PoolPlan, machine_of, pool_plan
from .storage import BucketPlan, FilestorePlan, LustrePlan, buckets, filestore, lustre


class NodeNetworkPlan(Plan, frozen=True, kw_only=True):
    """The nodes' own network."""

    cidr: str
    mtu: int | None
    """Bytes; None: Google's own."""
    vpc: str | None
    """Network that exists; then nothing of it is made: no subnet, firewall or NAT."""
    subnet: str | None
    ssh_from: tuple[str, ...]
    """Networks that may reach SSH of logins and controllers; never the world unless written so."""
    nat: bool
    peering: bool
    """Whether something is reached over private services access: Managed Lustre."""
    allowed_networks: tuple[str, ...]
    """Networks of other sites, which links lead to."""
    routes: tuple[RouteTo, ...]
    """Networks of other sites, and the pools whose first host is the gateway to them."""


class DnsPlan(Plan, frozen=True, kw_only=True):
    """Names of controllers and logins."""

    zone: str | None
    """Managed zone that exists; None: a private one is made."""
    domain: str
    """Names are made below it; without a dot at the end."""


class SitePlan(CloudPlan[PoolPlan], frozen=True, kw_only=True):
    """All of a site."""

    project: str
    kms_key: str | None
    user: str
    """Login user that the nodes make."""
    network: NodeNetworkPlan
    fabric_networks: tuple[FabricNetworkPlan, ...]
    access: AccessPlan
    lustre: tuple[LustrePlan, ...]
    filestore: tuple[FilestorePlan, ...] = ()
    buckets: tuple[BucketPlan, ...]
    dns: DnsPlan | None
    api_name: str | None
    """Name of the load balancer before several API servers; None: there is none."""
    control_plane: GkePlan | None

    @cached_property
    def pools_by_label(self) -> dict[str, PoolPlan]:
        """The pools by the label of their machines, which spells their names its own way."""
        return {label_value(pool.name): pool for pool in self.pools}

    @cached_property
    def hosts_by_name(self) -> dict[str, str]:
        """The name of each node in the cluster, elastic ones too, by that of its machine."""
        return {self.names(host): host for pool in self.pools for host in pool.all_nodes()}


LOGIN_USER = "gcluster"
"""Google's images have no login user of their own: the guest agent makes the one of the key."""


def login_user(spec: ClusterSpec, site_name: str) -> str:
    """Return the login user of a site's nodes."""
    site = spec.sites[site_name]
    return (site.ssh.user if isinstance(site, GcpSite) else None) or LOGIN_USER


def site_plan(spec: ClusterSpec, site_name: str, catalog: Catalog) -> SitePlan:
    """Return what a site is made of. Same input, same value.

    Raises:
        TypeError: the site isn't one of Google Cloud.
    """
    site = site_of(spec, site_name, GcpSite)
    pools = _pools(spec, site_name, site, catalog)
    file_systems = tuple(lustre(spec, site_name, site, pools))
    return SitePlan(
        names=site_names(spec, site_name),
        labels=site_labels(spec, site_name),
        project=site.project,
        region=site.region,
        kms_key=site.kms_key,
        user=login_user(spec, site_name),
        network=_network(spec, site_name, site, catalog, peering=bool(file_systems)),
        fabric_networks=_fabric_networks(spec, site, pools, catalog),
        pools=pools,
        access=access(site, pools),
        lustre=file_systems,
        filestore=tuple(filestore(spec, site_name, site, pools, _known_cidr(site))),
        volumes=volume_plans(spec, site_name),
        buckets=tuple(buckets(spec, site_name)),
        dns=_dns(spec, site_name, site),
        api_name=api_name(spec, site_name) if balanced_site(spec) == site_name else None,
        control_plane=control_plane_plan(spec, site, pools, catalog),
        budget=budget_plan(spec, site_name),
    )


def _pools(
    spec: ClusterSpec, site_name: str, site: GcpSite, catalog: Catalog
) -> tuple[PoolPlan, ...]:

    software = resolved_pools(spec, catalog)
    return tuple(
        pool_plan(
            name,
            pool,
            site,
            catalog=catalog,
            software=software[name],
            gateway=bool(gateway_links(spec, name)),
        )
        for name, pool in spec.pools.items()
        if pool.site == site_name
    )


def _network(
    spec: ClusterSpec, site_name: str, site: GcpSite, catalog: Catalog, *, peering: bool
) -> NodeNetworkPlan:
    network = site.network
    ends = site_ends(spec, site_name)
    mtus = [fabric.mtu for fabric in _fabrics(spec, site_name, catalog) if fabric.mtu is not None]
    return NodeNetworkPlan(
        cidr=network.cidr or DEFAULT_CLOUD_CIDR,
        # Where two fabrics have different values, both work with the smaller.
        mtu=network.mtu or min(mtus, default=None),
        vpc=network.vpc,
        subnet=network.subnet,
        ssh_from=(*network.admin_cidrs, *(facts().iap_ranges if site.tunnel else ())),
        nat=site.proxy is None,
        peering=peering,
        allowed_networks=ends.allowed_networks,
        routes=ends.routes,
    )


def _known_cidr(site: GcpSite) -> str:
    """Return the network of the nodes; "" in an existing one with unknown addresses."""
    return site.network.cidr or ("" if site.network.vpc else DEFAULT_CLOUD_CIDR)


def _fabrics(spec: ClusterSpec, site_name: str, catalog: Catalog) -> Iterator[Fabric]:
    for pool in spec.pools.values():
        if pool.site == site_name:
            machine = catalog.machines.get(machine_of(pool))
            name = pool.fabric or (machine.fabric if machine else None)
            if name is not None and name in catalog.fabrics:
                yield catalog.fabrics[name]


def _fabric_networks(
    spec: ClusterSpec, site: GcpSite, pools: tuple[PoolPlan, ...], catalog: Catalog
) -> tuple[FabricNetworkPlan, ...]:
    base = fabric_range(facts().fabric_ranges, _written_networks(spec))
    found: dict[str, FabricNetworkPlan] = {}
    for pool in pools:
        machine, fabric = catalog.machines.get(pool.machine), catalog.fabrics.get(pool.fabric or "")
        if machine is None or fabric is None:
            continue
        zones = list(dict.fromkeys(option.zone for option in pool.offers))
        existing = site.network.fabric_networks
        for plan in fabric_networks(machine, fabric, zones, base=base, existing=existing):
            before = found.get(plan.key)
            if before is None or len(before.subnets) < len(plan.subnets):
                found[plan.key] = plan
    return tuple(found.values())


def _written_networks(spec: ClusterSpec) -> Iterator[str]:
    """Yield every network of the spec: a fabric's must not overlap with those of nodes."""
    for site in spec.sites.values():
        yield from site.networks.values()


def _dns(spec: ClusterSpec, site_name: str, site: GcpSite) -> DnsPlan | None:
    """Return the names to create; none in an existing zone whose domain the spec can't give."""
    domain = site_domain(spec, site_name)
    if domain is None:
        return None
    return DnsPlan(zone=None if site.dns is None else site.dns.zone, domain=domain)


class AccessPlan(Plan, frozen=True, kw_only=True):
    """Identities of a site: service accounts."""

    node: str | None
    """E-mail of one that exists; then nothing is granted to it."""
    node_roles: tuple[str, ...]
    burst: str | None
    needs_burst: bool
    """Whether a burst agent's identity is to be made: a pool is elastic, and none is named."""
    burst_permissions: tuple[str, ...]


def access(site: GcpSite, pools: Sequence[PoolPlan]) -> AccessPlan:
    """Return the identities of a site."""
    elastic = any(pool.elastic for pool in pools)
    return AccessPlan(
        node=site.roles.node,
        node_roles=tuple(facts().node_roles),
        burst=site.roles.burst,
        needs_burst=elastic and site.roles.burst is None,
        burst_permissions=tuple(facts().burst_permissions),
    )
