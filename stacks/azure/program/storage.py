"""Data, which `down` keeps: storage accounts with their containers, and Managed Lustre."""

from __future__ import annotations

from typing import Literal

import pulumi
from pulumi_azure_native import network, privatedns, storage, storagecache

from ...pulumi.component import KEPT, Args, Component
from ...pulumi.names import Names
from ..plan.facts import facts
from ..plan.storage import FSNAME, LOGGING
from ..plan.types import AccountPlan, FileSystemPlan, SharePlan

_DAYS_UNDELETED = 14
"""Retention of deleted blobs in a container."""
FILES_HOST = "file.core.windows.net"
"""Where shares of an account are: ACCOUNT.file.core.windows.net."""
_ZONES = {
    "blob": "privatelink.blob.core.windows.net",
    "dfs": "privatelink.dfs.core.windows.net",
    "file": "privatelink.file.core.windows.net",
}
"""Part of an account -> the zone that leads to private endpoints of it.
learn.microsoft.com/azure/private-link/private-endpoint-dns, November 2026."""


class CustomerKey(Args, frozen=True, kw_only=True):
    """A customer's key for data, and the identity that may use it."""

    url: str
    key_id: str
    """Id of the key; "" where only its address is known."""
    identity_id: pulumi.Input[str]


class AccountArgs(Args, frozen=True, kw_only=True):
    """What a storage account is made from."""

    names: Names
    region: str
    resource_group: pulumi.Input[str]
    plan: AccountPlan
    key: CustomerKey | None = None


class Account(Component[AccountArgs]):
    """A storage account that is only reachable through the cluster's network."""

    kind = "azure:Account"
    account_id: pulumi.Output[str]
    container_ids: dict[str, pulumi.Output[str]]

    def build(self, args: AccountArgs) -> None:
        """Make the account, its rules for deleted and changed blobs, and the containers."""
        plan = args.plan
        account = _account(
            self,
            args,
            plan.name,
            kind="StorageV2",
            sku="Standard_LRS",
            tls_alone=True,
            hierarchical=plan.hierarchical,
        )
        self.account_id = account.id
        retention = storage.DeleteRetentionPolicyArgs(enabled=True, days=_DAYS_UNDELETED)
        storage.BlobServiceProperties(
            args.names(f"blobs-{plan.name}"),
            account_name=account.name,
            blob_services_name="default",
            resource_group_name=args.resource_group,
            # "Blob versioning": accounts with a hierarchical namespace are not supported.
            is_versioning_enabled=not plan.hierarchical,
            delete_retention_policy=retention,
            container_delete_retention_policy=retention,
            opts=self.child(KEPT),
        )
        self.container_ids = {
            name: storage.BlobContainer(
                args.names(f"{plan.name}-{name}"),
                account_name=account.name,
                container_name=name,
                resource_group_name=args.resource_group,
                public_access=storage.PublicAccess.NONE,
                opts=self.child(KEPT),
            ).id
            for name in plan.containers
        }


class ShareArgs(Args, frozen=True, kw_only=True):
    """What a share of Azure Files is made from."""

    names: Names
    region: str
    resource_group: pulumi.Input[str]
    plan: SharePlan
    key: CustomerKey | None = None


class Share(Component[ShareArgs]):
    """A share over NFS in an account that is reached through the cluster's network alone."""

    kind = "azure:Share"
    account_id: pulumi.Output[str]
    device: pulumi.Output[str]
    """What is mounted: ACCOUNT.file.core.windows.net:/ACCOUNT/SHARE."""

    def build(self, args: ShareArgs) -> None:
        """Make the account, its rule for deleted shares, and the share."""
        plan = args.plan
        # NFS has no TLS of its own, and Azure refuses it where only TLS is let in ("NFS file shares
        # in Azure Files", security and networking): with it nodes go through a tunnel.
        account = _account(
            self, args, plan.account, kind="FileStorage", sku=plan.sku, tls_alone=plan.tls
        )
        self.account_id = account.id
        storage.FileServiceProperties(
            args.names(f"files-{plan.account}"),
            account_name=account.name,
            file_services_name="default",
            resource_group_name=args.resource_group,
            share_delete_retention_policy=storage.DeleteRetentionPolicyArgs(
                enabled=True, days=_DAYS_UNDELETED
            ),
            opts=self.child(KEPT),
        )
        made = storage.FileShare(
            args.names(f"{plan.account}-{plan.share}"),
            account_name=account.name,
            share_name=plan.share,
            resource_group_name=args.resource_group,
            enabled_protocols=storage.EnabledProtocols.NFS,
            root_squash=storage.RootSquashType.NO_ROOT_SQUASH,
            share_quota=plan.gib,
            opts=self.child(KEPT),
        )
        host = f"{plan.account}.{FILES_HOST}:/{plan.account}/"
        self.device = pulumi.Output.concat(host, made.name)


def _account(
    owner: Account | Share,
    args: AccountArgs | ShareArgs,
    name: str,
    *,
    kind: str,
    sku: str,
    tls_alone: bool,
    hierarchical: bool = False,
) -> storage.StorageAccount:
    """Make a storage account that is reached through private endpoints alone, and never by a key.

    Args:
        owner: the component that it is part of.
        args: where it is made, and with which key.
        name: of the account.
        kind: of the account, as Azure calls it.
        sku: how often and on what it keeps data.
        tls_alone: refuse what comes without TLS.
        hierarchical: its folders are real ones; said when it is made.
    """
    return storage.StorageAccount(
        args.names(f"account-{name}"),
        account_name=name,
        resource_group_name=args.resource_group,
        location=args.region,
        kind=kind,
        sku=storage.SkuArgs(name=sku),
        minimum_tls_version="TLS1_2",
        enable_https_traffic_only=tls_alone,
        is_hns_enabled=True if hierarchical else None,
        allow_blob_public_access=False,
        allow_shared_key_access=False,
        allow_cross_tenant_replication=False,
        public_network_access="Disabled",
        network_rule_set=storage.NetworkRuleSetArgs(
            default_action=storage.DefaultAction.DENY, bypass="AzureServices"
        ),
        encryption=_encryption(args.key),
        identity=_identity(args.key),
        opts=owner.child(KEPT),
    )


def _encryption(key: CustomerKey | None) -> storage.EncryptionArgs | None:
    if key is None:
        return None
    vault, _, rest = key.url.partition("/keys/")
    name, _, version = rest.strip("/").partition("/")
    return storage.EncryptionArgs(
        key_source="Microsoft.Keyvault",
        key_vault_properties=storage.KeyVaultPropertiesArgs(
            key_name=name, key_vault_uri=vault, key_version=version or None
        ),
        encryption_identity=storage.EncryptionIdentityArgs(
            encryption_user_assigned_identity=key.identity_id
        ),
    )


def _identity(key: CustomerKey | None) -> storage.IdentityArgs | None:
    if key is None:
        return None
    return storage.IdentityArgs(type="UserAssigned", user_assigned_identities=[key.identity_id])


class PrivateEndpointsArgs(Args, frozen=True, kw_only=True):
    """What a private way to storage accounts is made from."""

    names: Names
    region: str
    resource_group: pulumi.Input[str]
    accounts: dict[str, pulumi.Input[str]]
    """Account -> id."""
    part: Literal["blob", "file", "dfs"] = "blob"
    """What of the accounts is reached."""
    subnet_id: pulumi.Input[str]
    vnet_id: pulumi.Input[str]
    makes_zone: bool
    """Names of accounts lead inside; in a network that exists that is its owner's to do."""


class PrivateEndpoints(Component[PrivateEndpointsArgs]):
    """Private endpoints of storage accounts in the cluster's network; gone after `down`."""

    kind = "azure:Door"
    endpoint_ids: dict[str, pulumi.Output[str]]

    def build(self, args: PrivateEndpointsArgs) -> None:
        """Make an endpoint for each account, and the zone that leads to it."""
        zone = self._zone(args) if args.makes_zone else None
        self.endpoint_ids = {}
        for account, account_id in args.accounts.items():
            # An account with a hierarchical namespace is reached by two: blobs, and its folders.
            name = args.names(f"dfs-{account}" if args.part == "dfs" else f"door-{account}")
            endpoint = network.PrivateEndpoint(
                name,
                resource_group_name=args.resource_group,
                location=args.region,
                subnet=network.SubnetArgs(id=args.subnet_id),
                private_link_service_connections=[
                    network.PrivateLinkServiceConnectionArgs(
                        name=args.part, private_link_service_id=account_id, group_ids=[args.part]
                    )
                ],
                opts=self.child(),
            )
            self.endpoint_ids[account] = endpoint.id
            if zone is None:
                continue
            network.PrivateDnsZoneGroup(
                name,
                resource_group_name=args.resource_group,
                private_endpoint_name=endpoint.name,
                private_dns_zone_configs=[
                    network.PrivateDnsZoneConfigArgs(name=args.part, private_dns_zone_id=zone.id)
                ],
                opts=self.child(),
            )

    def _zone(self, args: PrivateEndpointsArgs) -> privatedns.PrivateZone:
        zone = privatedns.PrivateZone(
            args.names(f"{args.part}-zone"),
            resource_group_name=args.resource_group,
            private_zone_name=_ZONES[args.part],
            location="global",
            opts=self.child(),
        )
        privatedns.VirtualNetworkLink(
            args.names(f"{args.part}-zone-link"),
            resource_group_name=args.resource_group,
            private_zone_name=zone.name,
            location="global",
            registration_enabled=False,
            virtual_network=privatedns.SubResourceArgs(id=args.vnet_id),
            opts=self.child(),
        )
        return zone


_VAULT = 9
"""Parts of a key's id that are its vault's: /subscriptions/S/resourceGroups/G/providers/P/T/V."""


class FileSystemArgs(Args, frozen=True, kw_only=True):
    """What a file system is made from."""

    names: Names
    region: str
    resource_group: pulumi.Input[str]
    plan: FileSystemPlan
    subnet_id: pulumi.Input[str]
    container_id: pulumi.Input[str] | None = None
    """Container whose blobs appear as files."""
    logging_id: pulumi.Input[str] | None = None
    """Another container of the same account."""
    key: CustomerKey | None = None


class FileSystem(Component[FileSystemArgs]):
    """A Managed Lustre file system; it outlives `down`."""

    kind = "azure:FileSystem"
    device: pulumi.Output[str]
    """What is mounted: the management server's ADDRESS@tcp:/lustrefs."""

    def build(self, args: FileSystemArgs) -> None:
        """Create it, and the job that writes changed files back where that is enabled."""
        window, plan = facts().maintenance, args.plan
        system = storagecache.AmlFilesystem(
            args.names(plan.name),
            resource_group_name=args.resource_group,
            location=args.region,
            sku=storagecache.SkuNameArgs(name=plan.sku),
            storage_capacity_ti_b=plan.capacity_tib,
            zones=[plan.zone],
            filesystem_subnet=args.subnet_id,
            maintenance_window=storagecache.AmlFilesystemMaintenanceWindowArgs(
                day_of_week=storagecache.MaintenanceDayOfWeekType(window.day),
                time_of_day_utc=window.time,
            ),
            hsm=_hsm(args, self._logs(args)),
            encryption_settings=_lustre_encryption(args.key),
            identity=_lustre_identity(args.key),
            opts=self.child(KEPT),
        )
        self.device = system.client_info.apply(lambda info: f"{info.mgs_address}@tcp:/{FSNAME}")
        if plan.export_prefixes:
            storagecache.AutoExportJob(
                args.names(f"{plan.name}-export"),
                aml_filesystem_name=system.name,
                resource_group_name=args.resource_group,
                location=args.region,
                auto_export_prefixes=list(plan.export_prefixes),
                opts=self.child(KEPT),
            )

    def _logs(self, args: FileSystemArgs) -> pulumi.Input[str] | None:
        """Return the container for what could not be imported; made where the account exists."""
        logging = args.plan.logging
        if logging is None or logging.made:
            return args.logging_id
        container = storage.BlobContainer(
            args.names(f"{args.plan.name}-logs"),
            account_name=logging.account,
            container_name=LOGGING,
            resource_group_name=args.resource_group,
            public_access=storage.PublicAccess.NONE,
            opts=self.child(KEPT),
        )
        return container.id


def _hsm(
    args: FileSystemArgs, logs: pulumi.Input[str] | None
) -> storagecache.AmlFilesystemHsmArgs | None:
    """Return the container behind the file system; what it imports is imported as it is made."""
    if args.container_id is None or logs is None:
        return None
    return storagecache.AmlFilesystemHsmArgs(
        settings=storagecache.AmlFilesystemHsmSettingsArgs(
            container=args.container_id,
            logging_container=logs,
            import_prefix=args.plan.import_prefix,
        )
    )


def _lustre_encryption(
    key: CustomerKey | None,
) -> storagecache.AmlFilesystemEncryptionSettingsArgs | None:
    if key is None:
        return None
    vault = "/".join(key.key_id.split("/")[:_VAULT])
    return storagecache.AmlFilesystemEncryptionSettingsArgs(
        key_encryption_key=storagecache.KeyVaultKeyReferenceArgs(
            key_url=key.url,
            source_vault=storagecache.KeyVaultKeyReferenceSourceVaultArgs(id=vault),
        )
    )


def _lustre_identity(key: CustomerKey | None) -> storagecache.AmlFilesystemIdentityArgs | None:
    if key is None:
        return None
    return storagecache.AmlFilesystemIdentityArgs(
        type=storagecache.AmlFilesystemIdentityType.USER_ASSIGNED,
        user_assigned_identities=[key.identity_id],
    )
