"""Data: FSx for Lustre with its links to buckets, and buckets. All of it outlives the cluster."""

from __future__ import annotations

import pulumi
import pulumi_aws as aws

from ...pulumi.component import KEPT, Args, Component
from ...pulumi.names import Names
from ...pulumi.plan import STORAGE_TAG, BucketPlan, VolumePlan
from ..plan.types import LinkPlan, LustrePlan
from .access import Group, make_group
from .policies import tls_only

_LUSTRE_PORTS = ((988, 988), (1018, 1023))
"""TCP ports of Lustre, in both directions (FSx for Lustre User Guide, "File system access control
with Amazon VPC", November 2026)."""
_VERSION = "2.15"
"""Lustre of new file systems: the only one with a metadata configuration (FSx API)."""
_CHANGES = ("NEW", "CHANGED", "DELETED")


class LustreArgs(Args, frozen=True):
    """What a file system is made from."""

    names: Names
    plan: LustrePlan
    vpc_id: pulumi.Input[str]
    subnet_id: pulumi.Input[str]
    node_groups: list[pulumi.Output[str]]
    opens_nodes: bool
    """The nodes' first group is ours: it gets rules that let the servers call back."""


class Lustre(Component[LustreArgs]):
    """An FSx for Lustre file system, the group that lets the nodes reach it, links to buckets."""

    kind = "aws:Lustre"
    device: pulumi.Output[str]
    """What is mounted: DNS@tcp:/MOUNTNAME."""

    def build(self, args: LustreArgs) -> None:
        """Make it."""
        plan, group = args.plan, self._group(args)
        metadata = aws.fsx.LustreFileSystemMetadataConfigurationArgs(mode="AUTOMATIC")
        made = aws.fsx.LustreFileSystem(
            args.names(plan.name),
            subnet_ids=args.subnet_id,
            security_group_ids=[group.id],
            deployment_type=plan.deployment,
            storage_type="SSD",
            storage_capacity=plan.capacity_gib,
            per_unit_storage_throughput=plan.throughput,
            file_system_type_version=_VERSION,
            efa_enabled=True if plan.efa else None,
            # EFA is offered with a metadata configuration alone (FSx API, CreateFileSystem).
            metadata_configuration=metadata if plan.efa else None,
            kms_key_id=plan.kms_key,
            copy_tags_to_backups=True if plan.deployment == "PERSISTENT_2" else None,
            tags={"Name": args.names(plan.name)},
            # Without its rules AWS refuses the file system: InvalidNetworkSettings.
            opts=self.child(
                pulumi.ResourceOptions.merge(KEPT, pulumi.ResourceOptions(depends_on=group.rules))
            ),
        )
        self.device = pulumi.Output.concat(made.dns_name, "@tcp:/", made.mount_name)
        for link in plan.links:
            self._link(args, made, link)

    def _group(self, args: LustreArgs) -> Group:
        """Make the file system's group: its ports to itself and the nodes, over EFA everything.

        Servers call clients back, so that the nodes are opened to it in the same way.
        """
        name = f"lustre-{args.plan.name}"
        group = make_group(
            args.names,
            name,
            vpc_id=args.vpc_id,
            why="Lustre for the nodes of the cluster",
            opts=self.child(KEPT),
        )
        _open(group, "self", group.id, efa=args.plan.efa)
        for number, nodes in enumerate(args.node_groups, 1):
            _open(group, f"nodes-{number}", nodes, efa=args.plan.efa)
        if args.opens_nodes:
            nodes_group = Group(args.names, "nodes", args.node_groups[0], self.child(KEPT))
            _open(nodes_group, name, group.id, efa=args.plan.efa)
        return group

    def _link(self, args: LustreArgs, made: aws.fsx.LustreFileSystem, link: LinkPlan) -> None:
        s3 = aws.fsx.DataRepositoryAssociationS3Args(
            auto_import_policy=aws.fsx.DataRepositoryAssociationS3AutoImportPolicyArgs(
                events=list(_CHANGES)
            )
            if link.imports
            else None,
            auto_export_policy=aws.fsx.DataRepositoryAssociationS3AutoExportPolicyArgs(
                events=list(_CHANGES)
            )
            if link.exports
            else None,
        )
        aws.fsx.DataRepositoryAssociation(
            args.names(f"{args.plan.name}-{link.what}"),
            file_system_id=made.id,
            file_system_path=link.path,
            data_repository_path=link.url,
            batch_import_meta_data_on_create=link.imports,
            delete_data_in_filesystem=False,
            s3=s3,
            opts=self.child(KEPT),
        )


def _open(group: Group, what: str, peer: pulumi.Output[str], *, efa: bool) -> None:
    """Let Lustre's ports through between a group and its peer, both ways; over EFA everything."""
    if efa:
        group.allow("in", what, group=peer)
        group.allow("out", what, group=peer)
        return
    for ports in _LUSTRE_PORTS:
        group.allow("in", f"{what}-{ports[0]}", "tcp", ports=ports, group=peer)
        group.allow("out", f"{what}-{ports[0]}", "tcp", ports=ports, group=peer)


class VolumeArgs(Args, frozen=True):
    """What a disk is made from."""

    names: Names
    plan: VolumePlan
    subnet_id: pulumi.Input[str]
    """Of the host: the disk is in its zone."""
    instance_id: pulumi.Input[str] | None
    """None while the host is not made: then it is attached to nothing."""
    kms_key: str | None


class Volume(Component[VolumeArgs]):
    """A disk that outlives the host it is attached to."""

    kind = "aws:Volume"
    device: pulumi.Output[str]

    def build(self, args: VolumeArgs) -> None:
        """Make and attach it."""
        plan = args.plan
        subnet = aws.ec2.get_subnet_output(
            id=args.subnet_id, opts=pulumi.InvokeOutputOptions(parent=self)
        )
        # A disk can't move: its original zone counts, also while the subnet is recreated.
        stays = pulumi.ResourceOptions(ignore_changes=["availabilityZone"])
        made = aws.ebs.Volume(
            args.names(plan.storage),
            availability_zone=subnet.availability_zone,
            size=plan.gib,
            type="gp3",
            encrypted=True,
            kms_key_id=args.kms_key,
            tags={"Name": args.names(plan.storage), STORAGE_TAG: plan.storage},
            opts=self.child(pulumi.ResourceOptions.merge(KEPT, stays)),
        )
        if args.instance_id is not None:
            aws.ec2.VolumeAttachment(
                args.names(f"{plan.storage}-attached"),
                device_name=f"/dev/sd{chr(ord('f') + plan.number)}",
                instance_id=args.instance_id,
                volume_id=made.id,
                stop_instance_before_detaching=True,
                opts=self.child(pulumi.ResourceOptions(delete_before_replace=True)),
            )
        # EC2 User Guide, "Device names for NVMe EBS volumes": the serial number is the volume's id.
        self.device = made.id.apply(
            lambda id_: f"/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_{id_.replace('-', '')}"
        )


SUBNET = "aws:ec2/getSubnet:getSubnet"
"""The question which zone a subnet is in; recordings answer it with `RECORDED_SUBNET`."""
RECORDED_SUBNET = {"availabilityZone": "${the zone of the subnet}"}


class BucketArgs(Args, frozen=True):
    """What a bucket is made from."""

    names: Names
    partition: str
    plan: BucketPlan


class Bucket(Component[BucketArgs]):
    """A private, encrypted, versioned bucket that only TLS reaches."""

    kind = "aws:Bucket"
    name: pulumi.Output[str]

    def build(self, args: BucketArgs) -> None:
        """Make it."""
        plan = args.plan
        what = args.names(plan.name)
        made = aws.s3.Bucket(what, bucket=plan.bucket, force_destroy=False, opts=self.child(KEPT))
        kept = self.child(KEPT)
        aws.s3.BucketPublicAccessBlock(
            what,
            bucket=made.id,
            block_public_acls=True,
            block_public_policy=True,
            ignore_public_acls=True,
            restrict_public_buckets=True,
            opts=kept,
        )
        aws.s3.BucketOwnershipControls(
            what,
            bucket=made.id,
            rule=aws.s3.BucketOwnershipControlsRuleArgs(object_ownership="BucketOwnerEnforced"),
            opts=kept,
        )
        aws.s3.BucketVersioning(
            what,
            bucket=made.id,
            versioning_configuration=aws.s3.BucketVersioningVersioningConfigurationArgs(
                status="Enabled"
            ),
            opts=kept,
        )
        aws.s3.BucketServerSideEncryptionConfiguration(
            what, bucket=made.id, rules=[_encryption(plan.kms_key)], opts=kept
        )
        aws.s3.BucketPolicy(
            what, bucket=made.id, policy=tls_only(args.partition, plan.bucket), opts=kept
        )
        self.name = made.id


def _encryption(
    kms_key: str | None,
) -> aws.s3.BucketServerSideEncryptionConfigurationRuleArgs:
    by_default = (
        aws.s3.BucketServerSideEncryptionConfigurationRuleApplyServerSideEncryptionByDefaultArgs
    )  # the SDK's name
    return aws.s3.BucketServerSideEncryptionConfigurationRuleArgs(
        apply_server_side_encryption_by_default=by_default(
            sse_algorithm="aws:kms" if kms_key else "AES256", kms_master_key_id=kms_key
        ),
        bucket_key_enabled=True if kms_key else None,
    )
