"""A control plane that GKE runs, and its node pools."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pulumi
import pulumi_gcp as gcp

from ...pulumi.component import Args, Component
from ...pulumi.names import FABRIC_NETWORKS, Names
from ...pulumi.plan import ACCOUNTS_SERVICE_ACCOUNT
from ..plan.control_plane import GkePlan
from ..plan.facts import facts
from ..plan.layout import SitePlan
from ..plan.pools import PoolPlan
from .fabric import FabricSubnet
from .gke_pools import MANAGEMENT, SCOPE, GkeNicArgs, GkePool, GkePoolArgs


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
            maintenance_policy=_maintenance(plan),
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
                oauth_scopes=[SCOPE],
                boot_disk_kms_key=args.kms_key,
                metadata={"disable-legacy-endpoints": "true"},
            ),
            management=MANAGEMENT,
            opts=self.child(),
        )


def _maintenance(plan: GkePlan) -> gcp.container.ClusterMaintenancePolicyArgs | None:
    """Return the window in which GKE renews what it runs; None: whenever it likes."""
    if plan.window is None:
        return None
    start, end, recurrence = plan.window
    return gcp.container.ClusterMaintenancePolicyArgs(
        recurring_window=gcp.container.ClusterMaintenancePolicyRecurringWindowArgs(
            start_time=start, end_time=end, recurrence=recurrence
        )
    )


def _encryption(key: str | None) -> gcp.container.ClusterDatabaseEncryptionArgs | None:
    if key is None:
        return None
    return gcp.container.ClusterDatabaseEncryptionArgs(state="ENCRYPTED", key_name=key)


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
