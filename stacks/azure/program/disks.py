"""What machines boot from, and how their disks are encrypted.

Azure encrypts every managed disk with a key of its own. With a customer's key the disk's key is
that one, and the host encrypts what it keeps itself: caches and temporary disks.
"""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
from pulumi_azure_native import compute

from ...pulumi.component import KEPT, Args, Component
from ...pulumi.names import Names
from ...pulumi.plan import STORAGE_TAG, VolumePlan
from ..plan.types import ImagePlan

_DISK = "Premium_LRS"


class DiskKeyArgs(Args, frozen=True, kw_only=True):
    """What a disk encryption set is made from."""

    names: Names
    region: str
    resource_group: pulumi.Input[str]
    key_url: str
    identity_id: pulumi.Input[str]
    """May use the key."""


class DiskKey(Component[DiskKeyArgs]):
    """A disk encryption set: a customer's key for the disks of all machines."""

    kind = "azure:DiskKey"
    disk_set_id: pulumi.Output[str]

    def build(self, args: DiskKeyArgs) -> None:
        """Make it."""
        # An address without a version means the newest; one with a version stays with it.
        newest = args.key_url.rstrip("/").rpartition("/keys/")[2].count("/") == 0
        made = compute.DiskEncryptionSet(
            args.names("disks"),
            resource_group_name=args.resource_group,
            location=args.region,
            encryption_type="EncryptionAtRestWithCustomerKey",
            active_key=compute.KeyForDiskEncryptionSetArgs(key_url=args.key_url),
            rotation_to_latest_key_version_enabled=newest,
            identity=compute.EncryptionSetIdentityArgs(
                type="UserAssigned", user_assigned_identities=[args.identity_id]
            ),
            opts=self.child(),
        )
        self.disk_set_id = made.id


class VolumeArgs(Args, frozen=True, kw_only=True):
    """What a disk that outlives its machine is made from."""

    names: Names
    region: str
    resource_group: pulumi.Input[str]
    plan: VolumePlan
    zone: str | None
    """Of its machine; None: of no zone, as the machine."""
    disk_set_id: pulumi.Input[str] | None


class Volume(Component[VolumeArgs]):
    """A data disk, and where its machine finds it; the machine attaches it."""

    kind = "azure:Volume"
    disk_id: pulumi.Output[str]
    device: pulumi.Output[str]

    def build(self, args: VolumeArgs) -> None:
        """Make it."""
        plan, key = args.plan, args.disk_set_id
        made = compute.Disk(
            args.names(plan.storage),
            resource_group_name=args.resource_group,
            location=args.region,
            zones=[args.zone] if args.zone else None,
            sku=compute.DiskSkuArgs(name=_DISK),
            creation_data=compute.CreationDataArgs(create_option="Empty"),
            disk_size_gb=plan.gib,
            network_access_policy="DenyAll",
            public_network_access="Disabled",
            encryption=None
            if key is None
            else compute.EncryptionArgs(
                disk_encryption_set_id=key, type="EncryptionAtRestWithCustomerKey"
            ),
            tags={STORAGE_TAG: plan.storage},
            opts=self.child(KEPT),
        )
        self.disk_id = made.id
        # Azure, "Troubleshoot device names": by LUN, of SCSI and of NVMe machines.
        scsi = f"/dev/disk/azure/scsi1/lun{plan.number}"
        nvme = f"/dev/disk/azure/data/by-lun/{plan.number}"
        self.device = made.id.apply(lambda _: f"{scsi},{nvme}")


def data_disks(disks: Sequence[pulumi.Input[str]]) -> list[compute.DataDiskArgs] | None:
    """Return the disks that a machine attaches; None: none, whatever hangs on it."""
    return [
        compute.DataDiskArgs(
            lun=number,
            create_option="Attach",
            delete_option="Detach",
            caching=compute.CachingTypes.NONE,
            managed_disk=compute.ManagedDiskParametersArgs(id=disk),
        )
        for number, disk in enumerate(disks)
    ] or None


def image_reference(image: ImagePlan) -> compute.ImageReferenceArgs:
    """Return the image as Azure takes it."""
    if image.shared:
        return compute.ImageReferenceArgs(shared_gallery_image_id=image.id)
    if image.community:
        return compute.ImageReferenceArgs(community_gallery_image_id=image.id)
    if image.id:
        return compute.ImageReferenceArgs(id=image.id)
    return compute.ImageReferenceArgs(
        publisher=image.publisher, offer=image.offer, sku=image.sku, version=image.version
    )


def security(disk_set_id: pulumi.Input[str] | None) -> compute.SecurityProfileArgs | None:
    """Return encryption at the host where a customer's key is used, else Azure's default."""
    return None if disk_set_id is None else compute.SecurityProfileArgs(encryption_at_host=True)


def set_disk(
    gib: int | None, disk_set_id: pulumi.Input[str] | None
) -> compute.VirtualMachineScaleSetOSDiskArgs:
    """Return the boot disk of a scale set's machines."""
    return compute.VirtualMachineScaleSetOSDiskArgs(
        create_option="FromImage",
        caching=compute.CachingTypes.READ_ONLY,
        delete_option="Delete",
        disk_size_gb=gib,
        managed_disk=compute.VirtualMachineScaleSetManagedDiskParametersArgs(
            storage_account_type=_DISK, disk_encryption_set=_encryption(disk_set_id)
        ),
    )


def boot_disk(gib: int | None, disk_set_id: pulumi.Input[str] | None) -> compute.OSDiskArgs:
    """Return the boot disk of a named machine."""
    return compute.OSDiskArgs(
        create_option="FromImage",
        caching=compute.CachingTypes.READ_WRITE,
        delete_option="Delete",
        disk_size_gb=gib,
        managed_disk=compute.ManagedDiskParametersArgs(
            storage_account_type=_DISK, disk_encryption_set=_encryption(disk_set_id)
        ),
    )


def _encryption(
    disk_set_id: pulumi.Input[str] | None,
) -> compute.DiskEncryptionSetParametersArgs | None:
    return None if disk_set_id is None else compute.DiskEncryptionSetParametersArgs(id=disk_set_id)
