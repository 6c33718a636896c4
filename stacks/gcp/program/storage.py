"""Data of a Google Cloud site, as components. It is protected, and `down` leaves it there."""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
import pulumi_gcp as gcp

from ...pulumi.component import KEPT, Args, Component
from ...pulumi.names import Names
from ...pulumi.plan import STORAGE_TAG, VolumePlan
from ..plan.storage import BucketPlan, FilestorePlan, LustrePlan


class LustreArgs(Args, frozen=True, kw_only=True):
    """A Managed Lustre instance."""

    names: Names
    project: str
    network_id: pulumi.Input[str]
    """Known when private services access is there, which must stay as long as the data."""
    plan: LustrePlan


class Lustre(Component[LustreArgs]):
    """A file system, in the zone of its clients."""

    kind = "gcp:Lustre"
    mount_point: pulumi.Output[str]
    """What is mounted: ADDRESS@tcp:/FSNAME."""

    def build(self, args: LustreArgs) -> None:
        """Make it."""
        plan, throughput = args.plan, args.plan.mb_per_s_per_tib
        made = gcp.lustre.Instance(
            args.names(plan.name),
            instance_id=args.names(plan.name),
            project=args.project,
            location=plan.zone,
            network=args.network_id,
            filesystem=plan.filesystem,
            capacity_gib=str(plan.capacity_gib),
            per_unit_storage_throughput=None if throughput is None else str(throughput),
            kms_key=plan.kms_key,
            opts=self.child(KEPT),
        )
        self.mount_point = made.mount_point


_SHARE = "share"
"""Name of the one share of an instance; basic tiers take 16 characters (Filestore REST v1,
FileShareConfig)."""


def network_name(vpc: str, project: str) -> str:
    """Return an existing network in Filestore's form: its name, in another project its full path.

    An instance created with one form and read in the other would be shown as changed.
    """
    owner, _, name = vpc.rpartition("/global/networks/")
    owner = owner.rpartition("projects/")[2]
    return name if owner in {"", project} else f"projects/{owner}/global/networks/{name}"


class FilestoreArgs(Args, frozen=True, kw_only=True):
    """A Filestore instance."""

    names: Names
    project: str
    network: pulumi.Input[str]
    """Name of the nodes' network; with its project where that is another one (Shared VPC)."""
    plan: FilestorePlan


class Filestore(Component[FilestoreArgs]):
    """A file share that the nodes' network reaches, and of it the nodes' addresses alone."""

    kind = "gcp:Filestore"
    device: pulumi.Output[str]
    """What is mounted: ADDRESS:/SHARE."""

    def build(self, args: FilestoreArgs) -> None:
        """Make it."""
        plan = args.plan
        export = gcp.filestore.InstanceFileSharesNfsExportOptionArgs(
            ip_ranges=list(plan.clients),
            access_mode="READ_WRITE",
            squash_mode="NO_ROOT_SQUASH",
        )
        made = gcp.filestore.Instance(
            args.names(plan.name),
            name=args.names(plan.name),
            project=args.project,
            location=plan.location,
            tier=plan.tier,
            protocol=plan.protocol,
            description=args.names.description,
            file_shares=gcp.filestore.InstanceFileSharesArgs(
                name=_SHARE,
                capacity_gb=plan.capacity_gib,
                nfs_export_options=[export] if plan.clients else None,
            ),
            networks=[
                gcp.filestore.InstanceNetworkArgs(
                    network=args.network, modes=["MODE_IPV4"], connect_mode="DIRECT_PEERING"
                )
            ],
            kms_key_name=plan.kms_key,
            opts=self.child(KEPT),
        )
        self.device = made.networks.apply(_share_of)


def _share_of(networks: Sequence[gcp.filestore.outputs.InstanceNetwork]) -> str:
    """Return ADDRESS:/SHARE; "" while Google has given no address."""
    addresses = networks[0].ip_addresses or ()
    return f"{addresses[0]}:/{_SHARE}" if addresses else ""


class VolumeArgs(Args, frozen=True, kw_only=True):
    """A disk that outlives the host it is attached to."""

    names: Names
    project: str
    plan: VolumePlan
    zone: str
    disk_type: str
    instance: pulumi.Input[str] | None
    """Id of the host; None while it is not made: then it is attached to nothing."""
    kms_key: str | None


class Volume(Component[VolumeArgs]):
    """A disk with its own life, and where its host finds it."""

    kind = "gcp:Volume"
    device: pulumi.Output[str]

    def build(self, args: VolumeArgs) -> None:
        """Make and attach it."""
        plan, key = args.plan, args.kms_key
        made = gcp.compute.Disk(
            args.names(plan.storage),
            name=args.names(plan.storage),
            project=args.project,
            zone=args.zone,
            type=args.disk_type,
            size=plan.gib,
            labels={STORAGE_TAG: plan.storage},
            disk_encryption_key=(
                None
                if key is None
                else gcp.compute.DiskDiskEncryptionKeyArgs(kms_key_self_link=key)
            ),
            opts=self.child(KEPT),
        )
        if args.instance is not None:
            gcp.compute.AttachedDisk(
                args.names(f"{plan.storage}-attached"),
                project=args.project,
                zone=args.zone,
                disk=made.id,
                instance=args.instance,
                device_name=plan.storage,
                opts=self.child(),
            )
        # Compute Engine, "Symlinks to disks": google- and the device name.
        self.device = made.name.apply(lambda _: f"/dev/disk/by-id/google-{plan.storage}")


class BucketArgs(Args, frozen=True, kw_only=True):
    """A bucket, made or only opened to the nodes."""

    names: Names
    project: str
    region: str
    plan: BucketPlan
    kms_key: str | None
    node: pulumi.Input[str] | None
    """E-mail of the identity that is let in; None: one that exists, which has its rights."""


class Bucket(Component[BucketArgs]):
    """A bucket without public access, and the nodes' access to it."""

    kind = "gcp:Bucket"
    bucket: pulumi.Output[str]

    def build(self, args: BucketArgs) -> None:
        """Make it unless it exists, and let the nodes in."""
        plan = args.plan
        self.bucket = pulumi.Output.from_input(plan.bucket)
        if plan.create:
            key = args.kms_key
            made = gcp.storage.Bucket(
                args.names(plan.name),
                name=plan.bucket,
                project=args.project,
                location=args.region.upper(),
                uniform_bucket_level_access=True,
                public_access_prevention="enforced",
                # No Object Versioning with it (GoogleCloudPlatform/cluster-toolkit,
                # modules/file-system/cloud-storage-bucket, preconditions); soft delete stays.
                versioning=(
                    None if plan.hierarchical else gcp.storage.BucketVersioningArgs(enabled=True)
                ),
                hierarchical_namespace=(
                    gcp.storage.BucketHierarchicalNamespaceArgs(enabled=True)
                    if plan.hierarchical
                    else None
                ),
                encryption=(
                    None
                    if key is None
                    else gcp.storage.BucketEncryptionArgs(default_kms_key_name=key)
                ),
                force_destroy=False,
                opts=self.child(KEPT),
            )
            self.bucket = made.name
        if args.node is not None:
            role = "roles/storage.objectViewer" if plan.read_only else "roles/storage.objectUser"
            gcp.storage.BucketIAMMember(
                args.names(f"{plan.name}-nodes"),
                bucket=self.bucket,
                role=role,
                member=pulumi.Output.concat("serviceAccount:", args.node),
                opts=self.child(),
            )
