"""A control plane that GKE runs, and its node pools."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pulumi
import pulumi_gcp as gcp

from ...pulumi.component import Args, Component
from ...pulumi.names import FABRIC_NETWORKS, POOL, Names, label_key, label_value
from ...pulumi.plan import ACCOUNTS_SERVICE_ACCOUNT
from ..plan.control_plane import GkeGpuPlan, GkePlan
from ..plan.facts import facts
from ..plan.layout import SitePlan
from ..plan.pools import OfferPlan, PoolPlan, reservation_name
from .fabric import FabricSubnet

_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_RESERVATION_KEY = "compute.googleapis.com/reservation-name"
_NODE_POOL = "gcluster.local/pool"
_OWN_PLUGIN = "gke-no-default-nvidia-gpu-device-plugin"
"""Label of nodes on which GKE starts no device plugin (NVIDIA, "GPU Operator with Google GKE")."""


class ControlPlaneArgs(Args, frozen=True, kw_only=True):
    """What the control plane is made from."""

    names: Names
    project: str
    region: str
    zones: tuple[str, ...]
    plan: GkePlan
    network_id: pulumi.Input[str]
    subnet_id: pulumi.Input[str]
    account: pulumi.Input[str]
    """E-mail of the nodes' identity."""
    kms_key: str | None
    fabrics: bool
    """Nodes have interfaces in fabric networks."""
    lustre: bool
    buckets: bool


class ControlPlane(Component[ControlPlaneArgs]):
    """A GKE cluster (Standard, no release channel), and nodes for its own pods.

    No release channel: a version changes with the spec. Pods' network is GKE's Dataplane V2.
    """

    kind = "gcp:ControlPlane"
    cluster_name: pulumi.Output[str]
    endpoint: pulumi.Output[str]
    authority: pulumi.Output[str]
    """Certificate of the cluster's authority, base64."""

    def build(self, args: ControlPlaneArgs) -> None:
        """Make the cluster without GKE's default pool, and the pool of its own pods."""
        plan = args.plan
        made = gcp.container.Cluster(
            args.names("gke", kind="gke"),
            project=args.project,
            location=args.region,
            node_locations=list(args.zones),
            network=args.network_id,
            subnetwork=args.subnet_id,
            networking_mode="VPC_NATIVE",
            datapath_provider="ADVANCED_DATAPATH",
            enable_multi_networking=args.fabrics,
            ip_allocation_policy=gcp.container.ClusterIpAllocationPolicyArgs(
                cluster_ipv4_cidr_block=plan.pod_cidr, services_ipv4_cidr_block=plan.service_cidr
            ),
            private_cluster_config=gcp.container.ClusterPrivateClusterConfigArgs(
                enable_private_nodes=True, enable_private_endpoint=not plan.admin_cidrs
            ),
            master_authorized_networks_config=gcp.container.ClusterMasterAuthorizedNetworksConfigArgs(
                cidr_blocks=[
                    gcp.container.ClusterMasterAuthorizedNetworksConfigCidrBlockArgs(cidr_block=c)
                    for c in plan.admin_cidrs
                ]
            ),
            workload_identity_config=gcp.container.ClusterWorkloadIdentityConfigArgs(
                workload_pool=f"{args.project}.svc.id.goog"
            ),
            database_encryption=_encryption(args.kms_key),
            addons_config=gcp.container.ClusterAddonsConfigArgs(
                gcs_fuse_csi_driver_config=gcp.container.ClusterAddonsConfigGcsFuseCsiDriverConfigArgs(
                    enabled=args.buckets
                ),
                lustre_csi_driver_config=gcp.container.ClusterAddonsConfigLustreCsiDriverConfigArgs(
                    enabled=args.lustre
                ),
            ),
            enable_shielded_nodes=True,
            release_channel=gcp.container.ClusterReleaseChannelArgs(channel="UNSPECIFIED"),
            min_master_version=plan.release,
            remove_default_node_pool=True,
            initial_node_count=1,
            node_config=gcp.container.ClusterNodeConfigArgs(
                service_account=args.account, boot_disk_kms_key=args.kms_key
            ),
            deletion_protection=False,
            # It is that of the pool that was removed, and would make the cluster again.
            opts=self.child(pulumi.ResourceOptions(ignore_changes=["nodeConfig"])),
        )
        self._system(args, made)
        self._identities(args, made)
        self.cluster_name, self.endpoint = made.name, made.endpoint
        # Other fields of the response are secret; a certificate is not.
        self.authority = pulumi.Output.unsecret(
            made.master_auth.apply(lambda known: known.cluster_ca_certificate or "")
        )

    def _identities(self, args: ControlPlaneArgs, made: gcp.container.Cluster) -> None:
        """Let accounts' pods be the service accounts that the spec names.

        The project's pool of workloads is there once a cluster has it (cloud.google.com/
        kubernetes-engine/docs/how-to/workload-identity; read 2026-11).
        """
        for account, email in args.plan.identities:
            who = f"{args.project}.svc.id.goog[{account}/{ACCOUNTS_SERVICE_ACCOUNT}]"
            gcp.serviceaccount.IAMMember(
                args.names(f"pods-{account}"),
                service_account_id=f"projects/-/serviceAccounts/{email}",
                role="roles/iam.workloadIdentityUser",
                member=f"serviceAccount:{who}",
                opts=self.child(pulumi.ResourceOptions(depends_on=[made])),
            )

    def _system(self, args: ControlPlaneArgs, made: gcp.container.Cluster) -> None:
        known = facts()
        gcp.container.NodePool(
            args.names("gke-system", kind="gke"),
            project=args.project,
            location=args.region,
            node_locations=[args.zones[0]],
            cluster=made.name,
            version=args.plan.release,
            node_count=known.gke_system_nodes,
            node_config=gcp.container.NodePoolNodeConfigArgs(
                machine_type=known.gke_system_machine,
                service_account=args.account,
                oauth_scopes=[_SCOPE],
                boot_disk_kms_key=args.kms_key,
                metadata={"disable-legacy-endpoints": "true"},
            ),
            management=_MANAGEMENT,
            opts=self.child(),
        )


_FLEX_START = gcp.container.NodePoolManagementArgs(auto_repair=False, auto_upgrade=False)
"""Machines of flex-start can't be recreated in place, so GKE refuses them with node auto-repair
(cloud.google.com/kubernetes-engine/docs/concepts/dws, limitations; read 2026-11)."""
_MANAGEMENT = gcp.container.NodePoolManagementArgs(auto_repair=True, auto_upgrade=False)


def _encryption(key: str | None) -> gcp.container.ClusterDatabaseEncryptionArgs | None:
    if key is None:
        return None
    return gcp.container.ClusterDatabaseEncryptionArgs(state="ENCRYPTED", key_name=key)


class GkeNicArgs(Args, frozen=True, kw_only=True):
    """An additional interface of a node."""

    network: pulumi.Input[str]
    """Name."""
    subnet: pulumi.Input[str]
    """Name."""


class GkePoolArgs(Args, frozen=True, kw_only=True):
    """What a pool's nodes are made from."""

    names: Names
    project: str
    region: str
    plan: GkePlan
    pool: PoolPlan
    counts: Mapping[str, int]
    """Key of an option -> nodes that are bought on it."""
    cluster: pulumi.Input[str]
    account: pulumi.Input[str]
    kms_key: str | None
    nics: tuple[GkeNicArgs, ...]


class GkePool(Component[GkePoolArgs]):
    """A pool: a node pool of GKE's for each option in use, of a fixed size, close together."""

    kind = "gcp:GkePool"
    node_pools: dict[str, pulumi.Output[str]]
    """Option -> name of the node pool."""

    def build(self, args: GkePoolArgs) -> None:
        """Make the node pools; an elastic pool's first one is there when it has no node yet."""
        first = args.pool.offers[0].key
        grows = {first} if args.pool.elastic else set()
        self.node_pools = {
            option.key: self._pool(args, option, args.counts.get(option.key, 0))
            for option in args.pool.offers
            if option.key in args.counts or option.key in grows
        }

    def _pool(self, args: GkePoolArgs, option: OfferPlan, count: int) -> pulumi.Output[str]:
        pool = args.pool
        placement = pool.placement
        close = placement.collocated or placement.existing is not None
        grows = pool.elastic and option.key == pool.offers[0].key
        more = pool.most - len(pool.nodes)
        return gcp.container.NodePool(
            args.names(f"{pool.name}-{option.key}", kind="gke"),
            project=args.project,
            location=args.region,
            node_locations=[option.zone],
            cluster=args.cluster,
            version=args.plan.release,
            node_count=None if grows else count,
            initial_node_count=count if grows else None,
            autoscaling=_autoscaling(count, count + more) if grows else None,
            node_config=_node_config(args, option),
            queued_provisioning=gcp.container.NodePoolQueuedProvisioningArgs(enabled=True)
            if pool.name in args.plan.queued
            else None,
            network_config=_networks(args.nics),
            placement_policy=gcp.container.NodePoolPlacementPolicyArgs(
                type="COMPACT", policy_name=placement.existing
            )
            if close
            else None,
            management=_FLEX_START if option.market == "flex-start" else _MANAGEMENT,
            # The autoscaler's from then on; and another first number would make the pool again.
            opts=self.child(
                pulumi.ResourceOptions(
                    ignore_changes=["nodeCount", "initialNodeCount"] if grows else []
                )
            ),
        ).name


def _autoscaling(least: int, most: int) -> gcp.container.NodePoolAutoscalingArgs:
    """Return the bounds of a node pool, all its zones together.

    Machines of one zone are as good as another's: what has capacity is taken (GKE, "Autoscaling a
    cluster": location policy ANY, for spot and reserved machines; read 2026-11).
    """
    return gcp.container.NodePoolAutoscalingArgs(
        total_min_node_count=least, total_max_node_count=most, location_policy="ANY"
    )


def _networks(nics: tuple[GkeNicArgs, ...]) -> gcp.container.NodePoolNetworkConfigArgs | None:
    if not nics:
        return None
    return gcp.container.NodePoolNetworkConfigArgs(
        additional_node_network_configs=[
            gcp.container.NodePoolNetworkConfigAdditionalNodeNetworkConfigArgs(
                network=nic.network, subnetwork=nic.subnet
            )
            for nic in nics
        ]
    )


def _node_config(args: GkePoolArgs, option: OfferPlan) -> gcp.container.NodePoolNodeConfigArgs:
    pool, gpus = args.pool, args.plan.gpus.get(args.pool.name)
    own = gpus is not None and args.plan.driver == "container"
    labels = {_NODE_POOL: pool.name} | args.plan.labels.get(pool.name, {})
    labels |= {_OWN_PLUGIN: "true"} if own else {}
    ours = {label_key(key): label_value(value) for key, value in pool.tags.items()}
    return gcp.container.NodePoolNodeConfigArgs(
        machine_type=pool.machine,
        image_type="UBUNTU_CONTAINERD" if own else None,
        disk_type=pool.disk_type,
        disk_size_gb=pool.disk_gib,
        boot_disk_kms_key=args.kms_key,
        service_account=args.account,
        oauth_scopes=[_SCOPE],
        spot=option.market == "spot" or None,
        flex_start=option.market == "flex-start" or None,
        max_run_duration=None if option.run_seconds is None else f"{option.run_seconds}s",
        reservation_affinity=_affinity(option, args.project),
        ephemeral_storage_local_ssd_config=_local_ssds(args.plan.local_ssds.get(pool.name, 0)),
        gvnic=gcp.container.NodePoolNodeConfigGvnicArgs(enabled=True),
        guest_accelerators=None if gpus is None else [_accelerator(gpus, args.plan)],
        labels=labels,
        taints=[
            gcp.container.NodePoolNodeConfigTaintArgs(
                key=one.key, value=one.value, effect=_EFFECTS[one.effect]
            )
            for one in args.plan.taints.get(pool.name, ())
        ]
        or None,
        resource_labels=ours | {POOL: label_value(pool.name)},
        metadata={"disable-legacy-endpoints": "true"},
        workload_metadata_config=gcp.container.NodePoolNodeConfigWorkloadMetadataConfigArgs(
            mode="GKE_METADATA"
        ),
    )


def _local_ssds(
    count: int,
) -> gcp.container.NodePoolNodeConfigEphemeralStorageLocalSsdConfigArgs | None:
    """Return what puts images and pods' data on a node's local SSDs, striped; None: not asked."""
    if not count:
        return None
    return gcp.container.NodePoolNodeConfigEphemeralStorageLocalSsdConfigArgs(local_ssd_count=count)


_EFFECTS = {
    "NoSchedule": "NO_SCHEDULE",
    "PreferNoSchedule": "PREFER_NO_SCHEDULE",
    "NoExecute": "NO_EXECUTE",
}
"""Kubernetes' names -> those of GKE's API."""


def _affinity(
    option: OfferPlan, project: str
) -> gcp.container.NodePoolNodeConfigReservationAffinityArgs:
    if option.reservation is None:
        return gcp.container.NodePoolNodeConfigReservationAffinityArgs(
            consume_reservation_type=option.affinity
        )
    return gcp.container.NodePoolNodeConfigReservationAffinityArgs(
        consume_reservation_type=option.affinity,
        key=_RESERVATION_KEY,
        values=[reservation_name(option.reservation).value(project)],
    )


def _accelerator(
    gpus: GkeGpuPlan, plan: GkePlan
) -> gcp.container.NodePoolNodeConfigGuestAcceleratorArgs:
    """Return a node's GPUs. With GKE's driver its device plugin cuts and shares them."""
    if plan.driver == "container":
        driver = "INSTALLATION_DISABLED"
        return gcp.container.NodePoolNodeConfigGuestAcceleratorArgs(
            type=gpus.accelerator, count=gpus.count, gpu_driver_installation_config=_driver(driver)
        )
    shared = gcp.container.NodePoolNodeConfigGuestAcceleratorGpuSharingConfigArgs(
        gpu_sharing_strategy="TIME_SHARING", max_shared_clients_per_gpu=gpus.clients
    )
    return gcp.container.NodePoolNodeConfigGuestAcceleratorArgs(
        type=gpus.accelerator,
        count=gpus.count,
        gpu_partition_size=gpus.partition,
        gpu_sharing_config=shared if gpus.clients > 1 else None,
        gpu_driver_installation_config=_driver("LATEST"),
    )


def _driver(
    version: str,
) -> gcp.container.NodePoolNodeConfigGuestAcceleratorGpuDriverInstallationConfigArgs:
    return gcp.container.NodePoolNodeConfigGuestAcceleratorGpuDriverInstallationConfigArgs(
        gpu_driver_version=version
    )


def make_managed(
    plan: SitePlan,
    gke: GkePlan,
    names: Names,
    *,
    network_id: pulumi.Input[str],
    subnet_id: pulumi.Input[str],
    account: pulumi.Input[str],
    fabrics: Mapping[str, FabricSubnet],
    purchased: Mapping[str, str],
) -> None:
    """Make the cluster, and a component for each pool of nodes; export how it is reached.

    Args:
        plan: the site.
        gke: what GKE runs of it.
        names: makes names.
        network_id: of the nodes' network.
        subnet_id: of the nodes' subnet.
        account: e-mail of the nodes' identity.
        fabrics: subnets of the fabrics, by their keys.
        purchased: machine -> option that it is bought on.
    """
    pools = [pool for pool in plan.pools if pool.name in gke.pools]
    zones = tuple(dict.fromkeys(option.zone for pool in pools for option in pool.offers))
    made = ControlPlane(
        names("control-plane"),
        ControlPlaneArgs(
            names=names,
            project=plan.project,
            region=plan.region,
            zones=zones,
            plan=gke,
            network_id=network_id,
            subnet_id=subnet_id,
            account=account,
            kms_key=plan.kms_key,
            fabrics=bool(fabrics),
            lustre=bool(plan.lustre),
            buckets=bool(plan.buckets),
        ),
    )
    networks: dict[str, list[pulumi.Output[str]]] = {}
    for pool in pools:
        nics = _nics(pool, fabrics)
        if nics:
            networks[pool.name] = [pulumi.Output.concat(n.network, "/", n.subnet) for n in nics]
        nodes = GkePool(
            names(f"pool-{pool.name}"),
            GkePoolArgs(
                names=names,
                project=plan.project,
                region=plan.region,
                plan=gke,
                pool=pool,
                counts=Counter(option.key for option in pool.purchased(purchased).values()),
                cluster=made.cluster_name,
                account=account,
                kms_key=plan.kms_key,
                nics=nics,
            ),
        )
        pulumi.export(f"pool-{pool.name}", {"node_pools": nodes.node_pools})
    if networks:
        pulumi.export(FABRIC_NETWORKS, networks)
    pulumi.export(
        "control-plane",
        {"name": made.cluster_name, "endpoint": made.endpoint, "authority": made.authority},
    )


def _nics(pool: PoolPlan, fabrics: Mapping[str, FabricSubnet]) -> tuple[GkeNicArgs, ...]:
    """Return the interfaces in the fabrics, in the order of the machine's."""
    there = [fabrics[nic.subnet] for nic in pool.offers[0].interfaces if nic.subnet in fabrics]
    return tuple(
        GkeNicArgs(network=_last(one.network_id), subnet=_last(one.subnet_id)) for one in there
    )


def _last(identifier: pulumi.Input[str]) -> pulumi.Output[str]:
    """Return the name at the end of an id."""
    return pulumi.Output.from_input(identifier).apply(lambda known: known.rpartition("/")[2])
