"""A control plane that AKS runs, and its node pools."""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING

import pulumi
from pulumi_azure_native import authorization, containerservice

from ..pulumi.component import Args, Component
from ..pulumi.labels import POOL
from ..pulumi.names import Names
from .access import role_id
from .control_plane_plan import AksPlan, pool_name
from .facts import facts
from .plan import PoolPlan, RungPlan

if TYPE_CHECKING:
    from ..pulumi.monitor import Json

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

    No upgrade channel: a version moves when the spec says so. Nobody has a certificate or a token
    of the cluster's own: Entra says who somebody is and Azure's roles what they may. Whoever makes
    it is its administrator.
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
        made = containerservice.ManagedCluster(
            args.names("aks"),
            resource_group_name=args.resource_group,
            location=args.region,
            dns_prefix=args.names("aks"),
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
                upgrade_channel="none", node_os_upgrade_channel="None"
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
        authorization.RoleAssignment(
            args.names("aks-admin"),
            principal_id=authorization.get_client_config_output(
                opts=pulumi.InvokeOutputOptions(parent=self)
            ).object_id,
            role_definition_id=role_id(args.subscription, "aks-admin"),
            scope=made.id,
            # A run of somebody else's, who is let in otherwise, takes nobody's place.
            opts=self.child(pulumi.ResourceOptions(ignore_changes=["principalId"])),
        )
        # With local accounts off there is no secret in it.
        told = pulumi.Output.unsecret(
            containerservice.list_managed_cluster_user_credentials_output(
                resource_group_name=args.resource_group,
                resource_name=made.name,
                opts=pulumi.InvokeOutputOptions(parent=self),
            ).kubeconfigs.apply(lambda found: found[0].value if found else "")
        )
        self.endpoint = told.apply(lambda text: read_kubeconfig(text)[0])
        self.authority = told.apply(lambda text: read_kubeconfig(text)[1])


def read_kubeconfig(encoded: str) -> tuple[str, str]:
    """Return address and authority out of a kubeconfig in base64; "" for what it doesn't say."""
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
    rung: RungPlan
    count: int
    subnet_id: pulumi.Input[str]
    encrypted: bool


class AksPool(Component[AksPoolArgs]):
    """A node pool of a fixed size, on one rung."""

    kind = "azure:AksPool"
    pool_id: pulumi.Output[str]

    def build(self, args: AksPoolArgs) -> None:
        """Make it."""
        pool, rung = args.pool, args.rung
        spot = rung.market == "spot"
        self.pool_id = containerservice.AgentPool(
            args.names(f"nodes-{args.part}"),
            agent_pool_name=pool_name(args.part),
            resource_group_name=args.resource_group,
            resource_name_=args.cluster,
            mode="User",
            type="VirtualMachineScaleSets",
            count=args.count,
            vm_size=pool.size,
            orchestrator_version=args.plan.release,
            os_type="Linux",
            os_sku="Ubuntu",
            os_disk_size_gb=pool.disk_gib,
            vnet_subnet_id=args.subnet_id,
            availability_zones=[rung.zone] if rung.zone else None,
            gpu_profile=containerservice.GPUProfileArgs(driver=args.plan.driver)
            if pool.name in args.plan.gpus
            else None,
            scale_set_priority="Spot" if spot else "Regular",
            scale_set_eviction_policy="Delete" if spot else None,
            spot_max_price=(rung.max_usd_per_hour or _AS_MUCH) if spot else None,
            capacity_reservation_group_id=rung.reservation or None,
            proximity_placement_group_id=pool.proximity_group or None,
            enable_encryption_at_host=args.encrypted,
            node_labels={_NODE_POOL: pool.name},
            tags={**pool.tags, POOL: pool.name},
            opts=self.child(),
        ).id
