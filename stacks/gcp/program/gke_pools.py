"""Node pools of GKE: one for each option that a pool is bought on."""

from __future__ import annotations

from collections.abc import Mapping

import pulumi
import pulumi_gcp as gcp

from ...pulumi.component import Args, Component
from ...pulumi.names import POOL, Names, label_key, label_value
from ..plan.control_plane import GkeGpuPlan, GkePlan
from ..plan.pools import OfferPlan, PoolPlan, reservation_name

SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_RESERVATION_KEY = "compute.googleapis.com/reservation-name"
_NODE_POOL = "gcluster.local/pool"
_OWN_PLUGIN = "gke-no-default-nvidia-gpu-device-plugin"
"""Label of nodes on which GKE starts no device plugin (NVIDIA, "GPU Operator with Google GKE")."""
_FLEX_START = gcp.container.NodePoolManagementArgs(auto_repair=False, auto_upgrade=False)
"""Machines of flex-start can't be recreated in place, so GKE refuses them with node auto-repair
(cloud.google.com/kubernetes-engine/docs/concepts/dws, limitations; read 2026-11)."""
MANAGEMENT = gcp.container.NodePoolManagementArgs(auto_repair=True, auto_upgrade=False)


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
            upgrade_settings=_waves(args.plan.at_once[pool.name], option),
            management=_FLEX_START if option.market == "flex-start" else MANAGEMENT,
            # The autoscaler's from then on; and another first number would make the pool again.
            opts=self.child(
                pulumi.ResourceOptions(
                    ignore_changes=["nodeCount", "initialNodeCount"] if grows else []
                )
            ),
        ).name


def _waves(at_once: int, option: OfferPlan) -> gcp.container.NodePoolUpgradeSettingsArgs | None:
    """Return how many nodes GKE renews at once, in their places: no more machines are to be had.

    Machines of flex-start have a way of their own.
    """
    if option.market == "flex-start":
        return None
    return gcp.container.NodePoolUpgradeSettingsArgs(
        strategy="SURGE", max_surge=0, max_unavailable=at_once
    )


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
        oauth_scopes=[SCOPE],
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
    """Return what puts images and pods' data on local SSDs, striped; None: not requested."""
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
