"""Azure Managed Lustre: one file system, and the blob container behind it."""

from __future__ import annotations

import pulumi
from pulumi_azure_native import storage, storagecache

from ..pulumi.component import Args, Component
from ..pulumi.names import Names
from .facts import facts
from .network import KEPT
from .storage import CustomerKey
from .stores import LOGGING

_VAULT = 9
"""Parts of a key's id that are its vault's: /subscriptions/S/resourceGroups/G/providers/P/T/V."""


class FileSystemArgs(Args, frozen=True, kw_only=True):
    """What a file system is made from."""

    names: Names
    name: str
    region: str
    resource_group: pulumi.Input[str]
    capacity_tib: float
    """In the SKU's steps."""
    sku: str
    zone: str
    """Exactly one."""
    subnet_id: pulumi.Input[str]
    container_id: pulumi.Input[str] | None = None
    """Container whose blobs appear as files."""
    logging_id: pulumi.Input[str] | None = None
    """Another container of the same account."""
    logs_account: str = ""
    """Account that exists, in which that container is to be made; "": it is made elsewhere."""
    import_prefix: str = "/"
    export_prefixes: tuple[str, ...] = ()
    key: CustomerKey | None = None


class FileSystem(Component[FileSystemArgs]):
    """A Managed Lustre file system; it outlives `down`."""

    kind = "azure:FileSystem"
    file_system_id: pulumi.Output[str]
    mgs_address: pulumi.Output[str]

    def build(self, args: FileSystemArgs) -> None:
        """Make it, and the job that writes changed files back where that is asked for."""
        window = facts().maintenance
        system = storagecache.AmlFilesystem(
            args.names(args.name),
            resource_group_name=args.resource_group,
            location=args.region,
            sku=storagecache.SkuNameArgs(name=args.sku),
            storage_capacity_ti_b=args.capacity_tib,
            zones=[args.zone],
            filesystem_subnet=args.subnet_id,
            maintenance_window=storagecache.AmlFilesystemMaintenanceWindowArgs(
                day_of_week=storagecache.MaintenanceDayOfWeekType(window.day),
                time_of_day_utc=window.time,
            ),
            hsm=_hsm(args, self._logs(args)),
            encryption_settings=_encryption(args.key),
            identity=_identity(args.key),
            opts=self.child(KEPT),
        )
        self.file_system_id = system.id
        self.mgs_address = system.client_info.apply(lambda info: info.mgs_address)
        if args.export_prefixes:
            storagecache.AutoExportJob(
                args.names(f"{args.name}-export"),
                aml_filesystem_name=system.name,
                resource_group_name=args.resource_group,
                location=args.region,
                auto_export_prefixes=list(args.export_prefixes),
                opts=self.child(KEPT),
            )

    def _logs(self, args: FileSystemArgs) -> pulumi.Input[str] | None:
        """Return the container for what could not be imported; made where the account exists."""
        if not args.logs_account:
            return args.logging_id
        container = storage.BlobContainer(
            args.names(f"{args.name}-logs"),
            account_name=args.logs_account,
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
            import_prefix=args.import_prefix,
        )
    )


def _encryption(key: CustomerKey | None) -> storagecache.AmlFilesystemEncryptionSettingsArgs | None:
    if key is None:
        return None
    vault = "/".join(key.key_id.split("/")[:_VAULT])
    return storagecache.AmlFilesystemEncryptionSettingsArgs(
        key_encryption_key=storagecache.KeyVaultKeyReferenceArgs(
            key_url=key.url,
            source_vault=storagecache.KeyVaultKeyReferenceSourceVaultArgs(id=vault),
        )
    )


def _identity(key: CustomerKey | None) -> storagecache.AmlFilesystemIdentityArgs | None:
    if key is None:
        return None
    return storagecache.AmlFilesystemIdentityArgs(
        type=storagecache.AmlFilesystemIdentityType.USER_ASSIGNED,
        user_assigned_identities=[key.identity_id],
    )
