"""A control plane that AKS runs, and its node pools."""

from __future__ import annotations

import base64
import re
from typing import Any

import pulumi
from pulumi_azure_native import (
    authorization,
    containerservice,
    kubernetesconfiguration,
    managedidentity,
)

from ...pulumi.component import Args, Component
from ...pulumi.names import POOL, Names
from ...pulumi.plan import ACCOUNTS_SERVICE_ACCOUNT
from ...pulumi.program import SiteProgram
from ...pulumi.recording.monitor import Json
from ..plan.control_plane import AksPlan, AksWindow, pool_name
from ..plan.facts import facts
from ..plan.types import LiveState, OfferPlan, PoolPlan, SitePlan
from .access import Grant, make_identity, role_id
from .machines import Machines
from .network import Network

_NODE_POOL = "gcluster.local/pool"
_AS_MUCH = -1.0
"""What Azure takes as the price of spot: as much as on demand."""
LOGIN = "azure-native:authorization:getClientConfig"
"""The question to Azure who is logged in; recordings answer it with `RECORDED_LOGIN`."""
RECORDED_LOGIN: dict[str, Json] = {"objectId": "${whoever is logged in}"}
CREDENTIALS = "azure-native:containerservice:listManagedClusterUserCredentials"
"""The question to Azure how users reach a cluster; recordings answer it with nothing."""
RECORDED_CREDENTIALS: dict[str, Json] = {"kubeconfigs": []}
_SERVER = re.compile(r"^ *server: *\"?([^\s\"]+)", re.MULTILINE)
_AUTHORITY = re.compile(r"^ *certificate-authority-data: *\"?([^\s\"]+)", re.MULTILINE)


class ControlPlaneArgs(Args, frozen=True, kw_only=True):
    """What the control plane is made from."""

    names: Names
    region: str
    subscription: str
    resource_group: pulumi.Input[str]
    plan: AksPlan
    subnet_id: pulumi.Input[str]
    identity_id: pulumi.Input[str]
    """Of the control plane: it may use the subnet."""
    disk_set_id: pulumi.Input[str] | None
    nat: bool
    """The subnet has a way out of ours."""


class ControlPlane(Component[ControlPlaneArgs]):
    """An AKS cluster with nodes for its own pods; pods' network is Azure's, by Cilium, an overlay.

    No upgrade channel: a version changes with the spec. The cluster issues no certificates or
    tokens of its own: Entra authenticates users and Azure's roles authorize them. Its creator is
    its administrator.
    """

    kind = "azure:ControlPlane"
    cluster_name: pulumi.Output[str]
    endpoint: pulumi.Output[str]
    """Address of the API server: https://NAME:443."""
    authority: pulumi.Output[str]
    """Certificate of the cluster's authority, base64."""

    def build(self, args: ControlPlaneArgs) -> None:
        """Make the cluster with the pool of its own pods."""
        plan, known = args.plan, facts()
        name = args.names("aks", kind="kubernetes")
        made = containerservice.ManagedCluster(
            name,
            resource_group_name=args.resource_group,
            location=args.region,
            dns_prefix=name,
            kubernetes_version=plan.release,
            sku=containerservice.ManagedClusterSKUArgs(name="Base", tier="Standard"),
            enable_rbac=True,
            disable_local_accounts=True,
            aad_profile=containerservice.ManagedClusterAADProfileArgs(
                managed=True, enable_azure_rbac=True
            ),
            identity=containerservice.ManagedClusterIdentityArgs(
                type=containerservice.ResourceIdentityType.USER_ASSIGNED,
                user_assigned_identities=[args.identity_id],
            ),
            api_server_access_profile=_access(plan),
            auto_upgrade_profile=containerservice.ManagedClusterAutoUpgradeProfileArgs(
                upgrade_channel="none",
                node_os_upgrade_channel="None" if plan.window is None else "NodeImage",
            ),
            network_profile=containerservice.ContainerServiceNetworkProfileArgs(
                network_plugin="azure",
                network_plugin_mode="overlay",
                network_dataplane="cilium",
                network_policy="cilium",
                pod_cidr=plan.pod_cidr,
                service_cidr=plan.service_cidr,
                dns_service_ip=plan.dns_address,
                load_balancer_sku="standard",
                outbound_type="userAssignedNATGateway" if args.nat else "loadBalancer",
            ),
            disk_encryption_set_id=args.disk_set_id,
            **_workload_identity(plan),
            agent_pool_profiles=[
                containerservice.ManagedClusterAgentPoolProfileArgs(
                    name="system",
                    mode="System",
                    type="VirtualMachineScaleSets",
                    count=known.aks_system_nodes,
                    vm_size=known.machine,
                    os_type="Linux",
                    vnet_subnet_id=args.subnet_id,
                    enable_encryption_at_host=args.disk_set_id is not None,
                )
            ],
            opts=self.child(),
        )
        self.cluster_name = made.name
        self._identities(args, made)
        if plan.window is not None:
            self._maintenance(args, made, plan.window)
        if plan.striped:
            self._container_storage(args, made)
        authorization.RoleAssignment(
            args.names("aks-admin"),
            principal_id=authorization.get_client_config_output(
                opts=pulumi.InvokeOutputOptions(parent=self)
            ).object_id,
            role_definition_id=role_id(args.subscription, "aks-admin"),
            scope=made.id,
            # A run by another user, with other access, replaces no existing assignment.
            opts=self.child(pulumi.ResourceOptions(ignore_changes=["principalId"])),
        )
        # With local accounts off there is no secret in it.
        answer = pulumi.Output.unsecret(
            containerservice.list_managed_cluster_user_credentials_output(
                resource_group_name=args.resource_group,
                resource_name=made.name,
                opts=pulumi.InvokeOutputOptions(parent=self),
            ).kubeconfigs.apply(lambda found: found[0].value if found else "")
        )
        self.endpoint = answer.apply(lambda text: read_kubeconfig(text)[0])
        self.authority = answer.apply(lambda text: read_kubeconfig(text)[1])

    def _maintenance(
        self, args: ControlPlaneArgs, made: containerservice.ManagedCluster, window: AksWindow
    ) -> None:
        """Have AKS' weekly releases and nodes' images come in a window.

        Names as learn.microsoft.com/azure/aks/planned-maintenance has them (read 2026-11).
        """
        kinds = {"control": "default", "nodes": "aksManagedNodeOSUpgradeSchedule"}
        for what, config in kinds.items():
            containerservice.MaintenanceConfiguration(
                args.names(f"aks-window-{what}"),
                resource_group_name=args.resource_group,
                resource_name_=made.name,
                config_name=config,
                maintenance_window=containerservice.MaintenanceWindowArgs(
                    schedule=containerservice.ScheduleArgs(
                        weekly=containerservice.WeeklyScheduleArgs(
                            day_of_week=window.day, interval_weeks=1
                        )
                    ),
                    start_date=window.date,
                    start_time=window.start,
                    duration_hours=window.hours,
                    utc_offset="+00:00",
                ),
                opts=self.child(),
            )

    def _container_storage(
        self, args: ControlPlaneArgs, made: containerservice.ManagedCluster
    ) -> None:
        """Add Azure Container Storage 2, whose driver stripes volumes over a node's own disks.

        AKS' own nodes leave those disks alone (learn.microsoft.com/azure/aks/
        best-practices-storage-nvme). Name and type are those of `az aks update
        --enable-azure-container-storage` (Azure/azure-cli, acs/azurecontainerstorage/_consts.py;
        both read 2026-11).
        """
        kubernetesconfiguration.Extension(
            args.names("aks-storage"),
            resource_group_name=args.resource_group,
            cluster_rp="Microsoft.ContainerService",
            cluster_resource_name="managedClusters",
            cluster_name=made.name,
            extension_name="acstor",
            extension_type="microsoft.azurecontainerstoragev2",
            auto_upgrade_minor_version=True,
            release_train="stable",
            scope=kubernetesconfiguration.ScopeArgs(
                cluster=kubernetesconfiguration.ScopeClusterArgs(release_namespace="kube-system")
            ),
            opts=self.child(),
        )

    def _identities(self, args: ControlPlaneArgs, made: containerservice.ManagedCluster) -> None:
        """Federate accounts' pods with the managed identities that the spec names.

        Entra accepts tokens of the cluster's issuer for that service account alone
        (learn.microsoft.com/azure/aks/workload-identity-overview; read 2026-11).
        """
        issuer = made.oidc_issuer_profile.apply(lambda known: known.issuer_url if known else "")
        for account, identity in args.plan.identities:
            group, name = identity_parts(identity)
            managedidentity.FederatedIdentityCredential(
                args.names(f"pods-{account}"),
                resource_group_name=group,
                resource_name_=name,
                issuer=issuer,
                subject=f"system:serviceaccount:{account}:{ACCOUNTS_SERVICE_ACCOUNT}",
                audiences=["api://AzureADTokenExchange"],
                opts=self.child(),
            )


def identity_parts(identity: str) -> tuple[str, str]:
    """Return resource group and name of a managed identity's resource id."""
    parts = identity.strip("/").split("/")
    return parts[3], parts[7]


def _workload_identity(plan: AksPlan) -> dict[str, Any]:
    """Return what lets the cluster vouch for its pods; {} where no account needs it."""
    if not plan.identities:
        return {}
    return {
        "oidc_issuer_profile": containerservice.ManagedClusterOIDCIssuerProfileArgs(enabled=True),
        "security_profile": containerservice.ManagedClusterSecurityProfileArgs(
            workload_identity=containerservice.ManagedClusterSecurityProfileWorkloadIdentityArgs(
                enabled=True
            )
        ),
    }


def read_kubeconfig(encoded: str) -> tuple[str, str]:
    """Return address and authority from a kubeconfig in base64; "" for what is missing."""
    text = base64.b64decode(encoded).decode()
    server, authority = _SERVER.search(text), _AUTHORITY.search(text)
    return server[1] if server else "", authority[1] if authority else ""


def _access(plan: AksPlan) -> containerservice.ManagedClusterAPIServerAccessProfileArgs:
    if not plan.admin_cidrs:
        return containerservice.ManagedClusterAPIServerAccessProfileArgs(
            enable_private_cluster=True, enable_private_cluster_public_fqdn=False
        )
    return containerservice.ManagedClusterAPIServerAccessProfileArgs(
        authorized_ip_ranges=list(plan.admin_cidrs)
    )


class AksPoolArgs(Args, frozen=True, kw_only=True):
    """What a pool's nodes are made from."""

    names: Names
    resource_group: pulumi.Input[str]
    cluster: pulumi.Input[str]
    plan: AksPlan
    pool: PoolPlan
    part: str
    """The pool's name, with a number from the second set on."""
    option: OfferPlan
    count: int
    subnet_id: pulumi.Input[str]
    encrypted: bool


class AksPool(Component[AksPoolArgs]):
    """A node pool on one option, of a fixed size or within bounds."""

    kind = "azure:AksPool"
    pool_id: pulumi.Output[str]

    def build(self, args: AksPoolArgs) -> None:
        """Make it."""
        pool, option = args.pool, args.option
        spot = option.market == "spot"
        grows = pool.elastic and args.part == pool.sets[-1].name
        more = pool.most - len(pool.nodes)
        self.pool_id = containerservice.AgentPool(
            args.names(f"nodes-{args.part}"),
            agent_pool_name=pool_name(args.part),
            resource_group_name=args.resource_group,
            resource_name_=args.cluster,
            mode="System" if pool.name in args.plan.system else "User",
            type="VirtualMachineScaleSets",
            count=args.count,
            enable_auto_scaling=grows or None,
            min_count=args.count if grows else None,
            max_count=args.count + more if grows else None,
            vm_size=pool.machine,
            orchestrator_version=args.plan.release,
            os_type="Linux",
            os_sku="Ubuntu",
            os_disk_size_gb=pool.disk_gib,
            # An ephemeral one would take one of the node's own disks.
            os_disk_type="Managed" if pool.name in args.plan.striped else None,
            vnet_subnet_id=args.subnet_id,
            availability_zones=[option.zone] if option.zone else None,
            gpu_profile=containerservice.GPUProfileArgs(driver=args.plan.driver)
            if pool.name in args.plan.gpus
            else None,
            scale_set_priority="Spot" if spot else "Regular",
            scale_set_eviction_policy="Delete" if spot else None,
            spot_max_price=(option.max_usd_per_hour or _AS_MUCH) if spot else None,
            capacity_reservation_group_id=option.reservation or None,
            proximity_placement_group_id=pool.proximity_group or None,
            enable_encryption_at_host=args.encrypted,
            upgrade_settings=None if spot else _waves(args.plan, pool.name),
            node_labels={_NODE_POOL: pool.name, **args.plan.labels.get(pool.name, {})},
            node_taints=[
                f"{one.key}={one.value}:{one.effect}" for one in args.plan.taints.get(pool.name, ())
            ]
            or None,
            tags={**pool.tags, POOL: pool.name},
            # The autoscaler sets their number.
            opts=self.child(pulumi.ResourceOptions(ignore_changes=["count"] if grows else [])),
        ).id


def _waves(plan: AksPlan, pool: str) -> containerservice.AgentPoolUpgradeSettingsArgs:
    """Return how many nodes are renewed at once, in their places: no more machines are to be had.

    Of pools for the cluster's own pods by others next to them, the only way that AKS has. It has
    neither for spot (learn.microsoft.com/azure/aks/upgrade-aks-node-pools-rolling,
    /spot-node-pool; read 2026-11).
    """
    count, more = str(plan.at_once[pool]), pool in plan.system
    return containerservice.AgentPoolUpgradeSettingsArgs(
        max_surge=count if more else "0",
        max_unavailable=None if more else count,
        drain_timeout_in_minutes=plan.drain_min[pool],
    )


def make_managed(
    here: SiteProgram[SitePlan],
    aks: AksPlan,
    *,
    group: pulumi.Output[str],
    network: Network,
    machines: Machines,
    live_state: LiveState,
) -> None:
    """Make the cluster, and a component for each set of nodes; export how it is found."""
    plan, subnet_id = here.plan, network.subnet_ids["compute"]
    subnet = (Grant(what="subnet", role="network-contributor", scope=subnet_id),)
    identity_id = make_identity(here, "aks", group, grants=subnet)
    made = here.make(
        ControlPlane,
        "control-plane",
        ControlPlaneArgs(
            names=here.plan.names,
            region=plan.region,
            subscription=plan.subscription,
            resource_group=group,
            plan=aks,
            subnet_id=subnet_id,
            identity_id=identity_id,
            disk_set_id=machines.disk_set_id,
            nat=plan.network.nat,
        ),
    )
    for pool in (p for p in plan.pools if p.name in aks.pools):
        purchased = pool.purchased(live_state.purchased)
        for part in pool.sets:
            on = [purchased[host] for host in pool.part_names(part.name) if host in purchased]
            here.make(
                AksPool,
                f"pool-{part.name}",
                AksPoolArgs(
                    names=here.plan.names,
                    resource_group=group,
                    cluster=made.cluster_name,
                    plan=aks,
                    pool=pool,
                    part=part.name,
                    option=next(iter(on), pool.offers[0]),
                    count=len(on),
                    subnet_id=subnet_id,
                    encrypted=machines.disk_set_id is not None,
                ),
            )
    pulumi.export(
        "control-plane",
        {"name": made.cluster_name, "endpoint": made.endpoint, "authority": made.authority},
    )
