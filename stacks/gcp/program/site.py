"""The Pulumi program of a Google Cloud site: components made from the plan, wired together."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pulumi

from ....schemas.catalog import Catalog
from ....schemas.spec import ClusterSpec
from ...pulumi.names import FILE_SYSTEMS, NO_KEY
from ...pulumi.plan import made_gateways
from ...pulumi.program import SiteProgram
from ...pulumi.recording.graph import Values
from ...pulumi.recording.monitor import Answers, Json
from .. import cloud_init
from ..plan.fabric import NODES
from ..plan.layout import SitePlan, site_plan
from .access import (
    BurstIdentity,
    BurstIdentityArgs,
    CostAlarm,
    CostAlarmArgs,
    NodeIdentity,
    NodeIdentityArgs,
)
from .balancer import before_controllers
from .compute import Pool, PoolArgs
from .control_plane import make_managed
from .fabric import make_fabric_networks
from .network import (
    Dns,
    DnsArgs,
    NodeNetwork,
    NodeNetworkArgs,
    SiteRoutes,
    SiteRoutesArgs,
)
from .storage import (
    Bucket,
    BucketArgs,
    Filestore,
    FilestoreArgs,
    Lustre,
    LustreArgs,
    Volume,
    VolumeArgs,
    network_name,
)
from .templates import SiteParts


def program(
    spec: ClusterSpec,
    site: str,
    catalog: Catalog,
    *,
    login_key: str = NO_KEY,
    purchased: Mapping[str, str] | None = None,
) -> Callable[[], None]:
    """Return the program of one site.

    Args:
        spec: the cluster.
        site: name of a site of Google Cloud.
        catalog: machine types, fabrics, limits.
        login_key: public key that may log in to the nodes.
        purchased: machine -> key of its purchase option; absent: the first, "": not made.
    """
    plan = site_plan(spec, site, catalog)

    metadata = cloud_init.metadata(plan.user, login_key)
    return lambda: _Site(plan, metadata, purchased or {}).build()


class _Site(SiteProgram[SitePlan]):
    """The components of a site of Google Cloud."""

    def __init__(
        self, plan: SitePlan, metadata: dict[str, str], purchased: Mapping[str, str]
    ) -> None:
        super().__init__(plan, purchased)
        self.names = plan.names
        self.metadata = metadata
        self.subnets: dict[str, pulumi.Input[str]] = {}
        self.network_name: pulumi.Input[str] = ""

    def build(self) -> None:
        network_id, peered_id = self._node_network()
        fabrics = make_fabric_networks(self.plan, self.names)
        self.subnets |= {key: made.subnet_id for key, made in fabrics.items()}
        account, made = self._node_identity()
        pools = self._pools(account)
        if self.plan.control_plane is not None:
            make_managed(
                self.plan,
                self.plan.control_plane,
                self.names,
                network_id=network_id,
                subnet_id=self.subnets[NODES],
                account=account,
                fabrics=fabrics,
                purchased=self.purchased,
            )
        self._site_routes(network_id, pools)
        self._storage(peered_id, account if made else None, pools)
        self._names(network_id, pools)
        if self.plan.budget is not None:
            self.make(
                CostAlarm,
                "cost",
                CostAlarmArgs(
                    names=self.names,
                    project=self.plan.project,
                    plan=self.plan.budget,
                ),
            )

    def _node_network(self) -> tuple[pulumi.Input[str], pulumi.Input[str]]:
        """Return the network's id, and the same known once private services access is there."""
        plan, network = self.plan, self.plan.network
        if network.vpc is not None:
            self.subnets[NODES] = network.subnet or ""
            self.network_name = network_name(network.vpc, plan.project)
            return network.vpc, network.vpc
        made = self.make(
            NodeNetwork,
            "nodes",
            NodeNetworkArgs(
                names=self.names,
                project=plan.project,
                region=plan.region,
                plan=network,
                has_gateway=any(pool.gateway for pool in plan.pools),
            ),
        )
        self.subnets[NODES] = made.subnet_id
        self.network_name = made.network_name
        pulumi.export("subnet", made.subnet_id)
        return made.network_id, made.peered_network_id

    def _node_identity(self) -> tuple[pulumi.Input[str], bool]:
        """Return the nodes' e-mail, and whether it was made here."""
        access = self.plan.access
        email: pulumi.Input[str] | None = access.node
        account_id: pulumi.Input[str] | None = None
        if access.node is None:
            made = self.make(
                NodeIdentity,
                "node",
                NodeIdentityArgs(
                    names=self.names, project=self.plan.project, roles=access.node_roles
                ),
            )
            email, account_id = made.email, made.account_id
        if access.needs_burst:
            burst = self.make(
                BurstIdentity,
                "burst",
                BurstIdentityArgs(
                    names=self.names,
                    project=self.plan.project,
                    permissions=access.burst_permissions,
                    node_account=account_id,
                ),
            )
            pulumi.export("burst", burst.email)
        return email or "", access.node is None

    def _pools(self, account: pulumi.Input[str]) -> dict[str, Pool]:
        parts = SiteParts(
            names=self.names,
            project=self.plan.project,
            region=self.plan.region,
            kms_key=self.plan.kms_key,
            subnets=self.subnets,
            account=account,
            metadata=self.metadata,
            balanced=self.plan.api_name is not None,
        )
        gke = self.plan.control_plane
        managed: frozenset[str] = frozenset() if gke is None else gke.pools
        made: dict[str, Pool] = {}
        for plan in (pool for pool in self.plan.pools if pool.name not in managed):
            args = PoolArgs(site=parts, plan=plan, on=plan.purchased(self.purchased))
            pool = made[plan.name] = self.make(Pool, f"pool-{plan.name}", args)
            exported = {
                "templates": pool.template_ids,
                "policies": pool.policy_ids,
                "ids": pool.machine_ids,
                "addresses": pool.addresses,
                "group": pool.group,
            }
            pulumi.export(f"pool-{plan.name}", exported)
        return made

    def _site_routes(self, network_id: pulumi.Input[str], pools: Mapping[str, Pool]) -> None:
        """Make the routes to other sites, through the gateways that are made."""
        plan = self.plan
        made: dict[str, pulumi.Input[str]] = {
            host: pool.gateway_link for pool in pools.values() for host in pool.machine_ids
        }
        gateways = made_gateways(plan, plan.network.routes, made)
        if gateways:
            args = SiteRoutesArgs(
                names=self.names,
                project=plan.project,
                network_id=network_id,
                gateways=gateways,
            )
            self.make(SiteRoutes, "site-routes", args)

    def _storage(
        self,
        network_id: pulumi.Input[str],
        node: pulumi.Input[str] | None,
        pools: Mapping[str, Pool],
    ) -> None:
        plan = self.plan
        systems = {}
        for lustre in plan.lustre:
            made = self.make(
                Lustre,
                f"lustre-{lustre.name}",
                LustreArgs(
                    names=self.names,
                    project=plan.project,
                    network_id=network_id,
                    plan=lustre,
                ),
            )
            systems[lustre.name] = made.mount_point
        for filestore in plan.filestore:
            share = FilestoreArgs(
                names=self.names,
                project=plan.project,
                network=self.network_name,
                plan=filestore,
            )
            systems[filestore.name] = self.make(Filestore, f"nfs-{filestore.name}", share).device
        for volume in plan.volumes:
            pool = plan.pool(volume.pool)
            kept_disk = self.make(
                Volume,
                f"volume-{volume.storage}",
                VolumeArgs(
                    names=self.names,
                    project=plan.project,
                    plan=volume,
                    zone=pool.offers[0].zone,
                    disk_type=pool.disk_type,
                    instance=pools[pool.name].machine_ids.get(volume.host),
                    kms_key=plan.kms_key,
                ),
            )
            systems[volume.storage] = kept_disk.device
        pulumi.export(FILE_SYSTEMS, systems)
        for bucket in plan.buckets:
            kept = self.make(
                Bucket,
                f"bucket-{bucket.name}",
                BucketArgs(
                    names=self.names,
                    project=plan.project,
                    region=plan.region,
                    plan=bucket,
                    kms_key=plan.kms_key,
                    node=node,
                ),
            )
            pulumi.export(f"storage-{bucket.name}", {"bucket": kept.bucket})

    def _names(self, network_id: pulumi.Input[str], pools: Mapping[str, Pool]) -> None:
        dns = self.plan.dns
        if dns is None:
            return
        served = (p.name for p in self.plan.pools if p.role != "compute")
        addresses = {
            host: address for name in served for host, address in pools[name].addresses.items()
        }
        if self.plan.api_name is not None:
            name = self.plan.api_name.removesuffix(f".{dns.domain}")
            subnet_id = self.subnets[NODES]
            made = before_controllers(self.plan, self.names, network_id, subnet_id, pools)
            addresses[name] = made.address
        self.make(
            Dns,
            "names",
            DnsArgs(
                names=self.names,
                project=self.plan.project,
                network_id=network_id,
                plan=dns,
                addresses=addresses,
            ),
        )


_SUBNETS = 16
"""More than any machine has NICs: Google reports the real ones."""


def answers(region: str) -> Answers:
    """Return the placeholders for Google's responses while a program is recorded."""

    def network(arguments: Values) -> dict[str, Json]:
        project, name = arguments.get("project"), arguments.get("name")
        subnets = f"projects/{project}/regions/{region}/subnetworks/${{{name}.subnet"
        return {
            "selfLink": f"projects/{project}/global/networks/{name}",
            "subnetworksSelfLinks": [f"{subnets}-{number:02d}}}" for number in range(_SUBNETS)],
        }

    return {
        "gcp:compute/getNetwork:getNetwork": network,
        "gcp:organizations/getProject:getProject": _project,
    }


def _project(arguments: Values) -> dict[str, Json]:
    project = arguments.get("projectId")
    return {
        "projectId": str(project),
        "billingAccount": f"${{{project}.billing-account}}",
        "number": f"${{{project}.number}}",
    }
