"""A site on AWS as a Pulumi program: the components, put together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import msgspec
import pulumi
import pulumi_aws as aws

from ....schemas.catalog import Catalog
from ....schemas.spec import ClusterSpec
from ...pulumi.names import FILE_SYSTEMS, NO_KEY
from ...pulumi.plan import made_gateways
from ...pulumi.program import SiteProgram
from ...pulumi.recording.monitor import Answers
from .. import cloud_init
from ..plan.layout import site_plan
from ..plan.types import EksGroupPlan, MadeNode, OfferPlan, PoolPlan, SitePlan
from .access import PROFILE, RECORDED_PROFILE, Firewall, FirewallArgs, Identities, IdentitiesArgs
from .budget import Spending, SpendingArgs
from .compute import NodePool, NodePoolArgs, Placements, PlacementsArgs
from .control_plane import (
    RECORDED_ZONES,
    ZONES,
    ApiBalancer,
    ApiBalancerArgs,
    ControlPlane,
    ControlPlaneArgs,
    node_config,
)
from .eks_addons import EksAddons, EksAddonsArgs, PodIdentities, PodIdentitiesArgs
from .eks_elastic import Autoscaler, AutoscalerArgs, ElasticGroup, ElasticGroupArgs
from .file_services import Efs, EfsArgs, OpenZfs, OpenZfsArgs
from .network import Dns, DnsArgs, Network, NetworkArgs, SiteRoutes, SiteRoutesArgs
from .storage import (
    RECORDED_SUBNET,
    SUBNET,
    Bucket,
    BucketArgs,
    Lustre,
    LustreArgs,
    Volume,
    VolumeArgs,
)


def program(
    spec: ClusterSpec,
    site: str,
    catalog: Catalog,
    *,
    authorized_key: str = NO_KEY,
    purchased: Mapping[str, str] | None = None,
    blocks: Mapping[str, str] | None = None,
    buys: Collection[str] | None = None,
    offerings: Mapping[str, str] | None = None,
    made: Mapping[str, MadeNode] | None = None,
) -> Callable[[], None]:
    """Return the program of one site.

    Args:
        spec: a spec that passed its checks.
        site: name of an AWS site of it.
        catalog: has its machine types.
        authorized_key: the cluster's public key, which may log in to the nodes.
        purchased: node -> key of the offer that it is bought by; absent: the first, "": not made.
        blocks: pool -> id of the capacity block that was bought for it before.
        buys: pools whose capacity block is bought now if they have none; None: all, as a recording
            shows it. Nodes on the option of a block that is neither there nor bought are not made.
        offerings: "POOL/OPTION" -> id of the block on offer that is bought.
        made: resource -> what the stack made it from, of the machines that exist.
    """
    plan = site_plan(spec, site, catalog)
    bought = _Blocks(
        owned=dict(blocks or {}),
        buys=None if buys is None else frozenset(buys),
        offerings=dict(offerings or {}),
    )
    return lambda: _Site(plan, authorized_key, purchased or {}, bought, made or {}).build()


class _Blocks(msgspec.Struct, frozen=True):
    """What may be done about capacity blocks."""

    owned: dict[str, str]
    buys: frozenset[str] | None
    offerings: dict[str, str]

    def serves(self, pool: str) -> bool:
        """Return whether a pool has a block or gets one now."""
        return pool in self.owned or self.buys is None or pool in self.buys


class _Site(SiteProgram[SitePlan]):
    """The components of a site on AWS."""

    def __init__(
        self,
        plan: SitePlan,
        authorized_key: str,
        purchased: Mapping[str, str],
        blocks: _Blocks,
        made: Mapping[str, MadeNode],
    ) -> None:
        super().__init__(plan, purchased)
        self._key = authorized_key
        self._blocks = blocks
        self._made = made

    def build(self) -> None:
        plan, names = self.plan, self.plan.names
        accounts = None if plan.account is None else [plan.account]
        region = aws.Provider(names("aws"), region=plan.region, allowed_account_ids=accounts)
        self.options = pulumi.ResourceOptions(provider=region)
        self._network = self.make(
            Network,
            "network",
            NetworkArgs(names=names, region=plan.region, plan=plan.network),
        )
        self._firewall = self._make_firewall()
        self._identities = self.make(
            Identities,
            "identities",
            IdentitiesArgs(
                names=names,
                partition=plan.partition,
                cluster=plan.cluster,
                site=plan.site,
                kms_key=plan.kms_key,
                plan=plan.identity,
            ),
        )
        groups = PlacementsArgs(names=names, plans=plan.placements)
        self._placements = self.make(Placements, "placements", groups)
        self._plane = self._make_control_plane()
        pools = {pool.name: self._make_pool(pool) for pool in plan.pools}
        self._make_eks_addons(pools)
        self._make_eks_groups()
        self._make_routes(pools)
        self._make_names(pools)
        self._make_storage(pools)
        if plan.budget is not None:
            args = SpendingArgs(names=names, cluster=plan.cluster, plan=plan.budget)
            self.make(Spending, "spending", args)
        pulumi.export("vpc", self._network.vpc_id)
        pulumi.export("subnets", self._network.subnets)
        pulumi.export("pools", {name: _exported(pool) for name, pool in pools.items()})

    def _make_firewall(self) -> Firewall:
        plan = self.plan
        args = FirewallArgs(
            names=plan.names,
            region=plan.region,
            vpc_id=self._network.vpc_id,
            plan=plan.network,
            has_gateway=any(pool.gateway for pool in plan.pools),
            endpoint_subnet=self._network.subnet(None),
        )
        return self.make(Firewall, "firewall", args)

    def _make_pool(self, pool: PoolPlan) -> NodePool:
        plan = self.plan
        network = self._network
        public = network.public_subnet_id
        profiles = self._identities
        args = NodePoolArgs(
            names=plan.names,
            plan=pool,
            offers=self._bought(pool),
            block=self._blocks.owned.get(pool.name),
            offerings={
                offer.key: self._blocks.offerings.get(f"{pool.name}/{offer.key}", "")
                for offer in pool.offers
            },
            subnets={
                offer.key: public if pool.public else network.subnet(offer.zone)
                for offer in pool.offers
            },
            internet=network.internet,
            security_groups=self._groups(pool),
            placements=self._placements.groups,
            profile=profiles.controller_profile
            if pool.role == "controller"
            else profiles.node_profile,
            kms_key=plan.kms_key,
            user_data=self._user_data(pool),
            # The hash of the spec would make a new version of every template with each change.
            tags={**pool.tags, **_without_hash(plan)},
            made=self._made,
        )
        return self.make(NodePool, f"pool-{pool.name}", args)

    def _make_control_plane(self) -> ControlPlane | None:
        plan = self.plan
        if plan.control_plane is None:
            return None
        args = ControlPlaneArgs(
            names=plan.names,
            plan=plan.control_plane,
            partition=plan.partition,
            vpc_id=self._network.vpc_id,
            kms_key=plan.kms_key,
            node_role=self._identities.node_role,
        )
        made = self.make(ControlPlane, "control-plane", args)
        if plan.control_plane.identities:
            identities = PodIdentitiesArgs(
                names=plan.names,
                cluster=made.cluster_name,
                identities=plan.control_plane.identities,
            )
            self.make(PodIdentities, "pod-identities", identities)
        pulumi.export(
            "control-plane",
            {"name": made.cluster_name, "endpoint": made.endpoint, "authority": made.authority},
        )
        return made

    def _make_eks_addons(self, pools: Mapping[str, NodePool]) -> None:
        """Make EKS' add-ons when there are nodes: some are only well where they run."""
        if self._plane is None:
            return
        args = EksAddonsArgs(
            names=self.plan.names,
            partition=self.plan.partition,
            cluster=self._plane.cluster_name,
        )
        nodes = [pools[pool.name] for pool in self.plan.pools if pool.joins_eks]
        after = pulumi.ResourceOptions(depends_on=nodes)
        EksAddons(
            self.plan.names("eks-addons"), args, pulumi.ResourceOptions.merge(self.options, after)
        )

    def _make_eks_groups(self) -> None:
        """Make the groups of elastic pools, and the rights of who sizes them."""
        plane, plan, site = self._plane, self.plan.control_plane, self.plan
        if plane is None or plan is None or not plan.groups:
            return
        for name, group in plan.groups.items():
            pool = site.pool(name)
            [offer, *_] = pool.offers
            args = ElasticGroupArgs(
                names=site.names,
                cluster=plan.name,
                pool=pool,
                group=group,
                offer=offer,
                subnet_id=self._network.subnet(offer.zone),
                security_groups=self._groups(pool),
                placement=self._placements.groups[offer.placement] if offer.placement else None,
                profile=self._identities.node_profile,
                kms_key=site.kms_key,
                user_data=self._user_data(pool, group),
                labels=site.labels,
            )
            self.make(ElasticGroup, f"group-{name}", args)
        rights = AutoscalerArgs(
            names=site.names, cluster=plane.cluster_name, gcluster=site.cluster, site=site.site
        )
        self.make(Autoscaler, "autoscaler", rights)

    def _user_data(self, pool: PoolPlan, group: EksGroupPlan | None = None) -> pulumi.Input[str]:
        text = cloud_init.user_data(user=pool.image.user, authorized_key=self._key)
        plane, plan = self._plane, self.plan.control_plane
        if plane is None or plan is None or not pool.joins_eks:
            return cloud_init.encoded(text)
        labels = {"gcluster.local/pool": pool.name} if group is None else group.labels
        taints = () if group is None else group.taints
        answer = node_config(plane, plan, labels, taints, striped=pool.name in plan.striped)
        return answer.apply(
            lambda user_data: cloud_init.encoded(cloud_init.with_node_config(user_data, text))
        )

    def _groups(self, pool: PoolPlan) -> list[pulumi.Output[str]]:
        groups = self._firewall.groups(pool.role, gateway=pool.gateway)
        if self._plane is not None and pool.joins_eks:
            return [*groups, self._plane.node_group]
        return groups

    def _bought(self, pool: PoolPlan) -> dict[str, OfferPlan]:
        """Return node -> offer, of the nodes that are made."""
        serves = self._blocks.serves(pool.name)
        found = pool.purchased(self.purchased)
        return {node: o for node, o in found.items() if serves or o.option.buy_hours is None}

    def _make_routes(self, pools: Mapping[str, NodePool]) -> None:
        """Make the routes to other sites, through the gateways that are made."""
        plan = self.plan
        made: dict[str, pulumi.Input[str]] = {
            host: interface
            for pool in pools.values()
            for host, interface in pool.interfaces.items()
        }
        gateways = made_gateways(plan, plan.network.routes, made)
        if gateways:
            args = SiteRoutesArgs(names=plan.names, tables=self._network.tables, gateways=gateways)
            self.make(SiteRoutes, "site-routes", args)

    def _make_names(self, pools: Mapping[str, NodePool]) -> None:
        """Make the nodes' names, and the load balancer before several API servers."""
        plan = self.plan
        args = DnsArgs(
            names=plan.names,
            plan=plan.dns,
            vpc_id=self._network.vpc_id,
            addresses={
                node: address for pool in pools.values() for node, address in pool.addresses.items()
            },
        )
        zone = self.make(Dns, "dns", args)
        pulumi.export("zone", zone.zone_id)
        if plan.api_name is None:
            return
        planes = [pool for pool in plan.pools if pool.role == "controller"]
        balancer = ApiBalancerArgs(
            names=plan.names,
            name=plan.api_name,
            zone_id=zone.zone_id,
            vpc_id=self._network.vpc_id,
            subnets=self._offered_subnets(planes),
            groups=self._firewall.node_groups,
            instances={
                host: instance
                for pool in planes
                for host, instance in pools[pool.name].instance_ids.items()
            },
        )
        self.make(ApiBalancer, "api", balancer)

    def _offered_subnets(self, pools: list[PoolPlan]) -> list[pulumi.Output[str]]:
        """Return the private subnets in the possible zones of these pools, each once."""
        zones = dict.fromkeys(offer.zone for pool in pools for offer in pool.offers)
        return [self._network.subnet(zone) for zone in zones]

    def _make_storage(self, pools: Mapping[str, NodePool]) -> None:
        plan = self.plan
        buckets = {
            bucket.name: self.make(
                Bucket,
                f"bucket-{bucket.name}",
                BucketArgs(names=plan.names, partition=plan.partition, plan=bucket),
            )
            for bucket in plan.buckets
        }
        systems = {}
        for lustre in plan.lustre:
            args = LustreArgs(
                names=plan.names,
                plan=lustre,
                vpc_id=self._network.vpc_id,
                subnet_id=self._network.subnet(lustre.zone),
                node_groups=self._firewall.node_groups,
                opens_nodes=not plan.network.security_groups,
            )
            linked = [buckets[b.name] for b in plan.buckets if lustre.is_linked_to(b.bucket)]
            after = pulumi.ResourceOptions(depends_on=linked)
            opts = pulumi.ResourceOptions.merge(self.options, after)
            made = Lustre(plan.names(f"lustre-{lustre.name}"), args, opts)
            systems[lustre.name] = made.device
        systems |= self._make_services()
        for volume in plan.volumes:
            pool = plan.pool(volume.pool)
            of_volume = VolumeArgs(
                names=plan.names,
                plan=volume,
                subnet_id=self._network.public_subnet_id
                if pool.public
                else self._network.subnet(pool.offers[0].zone),
                instance_id=pools[pool.name].instance_ids.get(volume.host),
                kms_key=plan.kms_key,
            )
            made_disk = self.make(Volume, f"volume-{volume.storage}", of_volume)
            systems[volume.storage] = made_disk.device
        pulumi.export(FILE_SYSTEMS, systems)
        pulumi.export("buckets", {name: bucket.name for name, bucket in buckets.items()})

    def _make_services(self) -> dict[str, pulumi.Output[str]]:
        """Make the file systems of NFS services; return what is mounted of each."""
        plan, systems = self.plan, {}
        groups, vpc = self._firewall.node_groups, self._network.vpc_id
        for efs in plan.efs:
            args = EfsArgs(
                names=plan.names,
                plan=efs,
                vpc_id=vpc,
                subnets={zone: self._network.subnet(zone) for zone in efs.zones or ("",)},
                node_groups=groups,
            )
            systems[efs.name] = self.make(Efs, f"nfs-{efs.name}", args).device
        for openzfs in plan.openzfs:
            of_openzfs = OpenZfsArgs(
                names=plan.names,
                plan=openzfs,
                vpc_id=vpc,
                subnet_id=self._network.subnet(openzfs.zone),
                node_groups=groups,
            )
            systems[openzfs.name] = self.make(OpenZfs, f"nfs-{openzfs.name}", of_openzfs).device
        return systems


def answers(region: str) -> Answers:
    """Return the placeholders for AWS' responses while a program is recorded."""
    del region
    return {ZONES: RECORDED_ZONES, PROFILE: RECORDED_PROFILE, SUBNET: RECORDED_SUBNET}


def _exported(pool: NodePool) -> dict[str, dict[str, pulumi.Output[str]]]:
    return {
        "templates": pool.templates,
        "instances": pool.instance_ids,
        "addresses": pool.addresses,
        "public": pool.public_addresses,
    }


def _without_hash(plan: SitePlan) -> dict[str, str]:
    return msgspec.structs.replace(plan.labels, spec_hash="").tags()
