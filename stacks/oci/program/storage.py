"""Data: Lustre file systems with links to buckets, and buckets. All of it outlives the cluster."""

from __future__ import annotations

import pulumi
import pulumi_oci as oci

from ...pulumi.component import KEPT, Args, Component
from ...pulumi.names import Names
from ...pulumi.plan import STORAGE_TAG, BucketPlan, VolumePlan
from ..plan.types import FileStoragePlan, LinkPlan, LustrePlan
from .access import Group, lustre_statement, make_group

_LNET = 988
"""TCP port of Lustre, in both directions (File Storage with Lustre, required security rules)."""
_NFS = (111, 2048, 2049, 2050)
"""TCP ports of a mount target ("Configuring VCN Security Rules for File Storage"); UDP is for
clients that mount over it, which ours don't."""


class LustreArgs(Args, frozen=True):
    """What a file system is made from."""

    names: Names
    compartment: str
    namespace: pulumi.Output[str]
    """Of Object Storage in the tenancy."""
    plan: LustrePlan
    domain: pulumi.Output[str]
    vcn_id: pulumi.Input[str]
    subnet_id: pulumi.Input[str]
    node_groups: list[pulumi.Output[str]]
    opens_nodes: bool
    """The nodes' first group is ours: it gets a rule that lets the servers call back."""
    home: pulumi.ResourceOptions
    """Of what is made in the tenancy's home region."""


class Lustre(Component[LustreArgs]):
    """A Lustre file system, the group that lets the nodes reach it, links to buckets."""

    kind = "oci:Lustre"
    device: pulumi.Output[str]
    """What is mounted: the management server's ADDRESS@tcp:/FSNAME."""

    def build(self, args: LustreArgs) -> None:
        """Make it."""
        plan, group = args.plan, self._group(args)
        allowed = oci.identity.Policy(
            args.names(f"lustre-{plan.name}", kind="identity"),
            compartment_id=args.compartment,
            description="File Storage with Lustre is in the cluster's subnet",
            statements=[lustre_statement(args.compartment)],
            opts=self.child(pulumi.ResourceOptions.merge(KEPT, args.home)),
        )
        made = oci.lustre.FileStorageLustreFileSystem(
            args.names(plan.name),
            availability_domain=args.domain,
            compartment_id=args.compartment,
            subnet_id=args.subnet_id,
            nsg_ids=[group.id],
            file_system_name=plan.fsname,
            display_name=args.names(plan.name),
            capacity_in_gbs=plan.capacity_gb,
            performance_tier=plan.tier,
            root_squash_configuration=oci.lustre.FileStorageLustreFileSystemRootSquashConfigurationArgs(
                identity_squash="NONE"
            ),
            kms_key_id=plan.kms_key,
            # OCI refuses it where its group lacks the rules for Lustre.
            opts=self.child(
                pulumi.ResourceOptions.merge(
                    KEPT, pulumi.ResourceOptions(depends_on=[allowed, *group.rules])
                )
            ),
        )
        self.device = pulumi.Output.concat(
            made.management_service_address, "@", made.lnet, f":/{plan.fsname}"
        )
        for link in plan.links:
            self._link(args, made, link)

    def _group(self, args: LustreArgs) -> Group:
        """Make the file system's group. Servers call clients back: the nodes let them."""
        name = f"lustre-{args.plan.name}"
        group = make_group(
            args.names,
            name,
            compartment=args.compartment,
            vcn_id=args.vcn_id,
            opts=self.child(KEPT),
        )
        peers = {"self": group.id} | {
            f"nodes-{number}": nodes for number, nodes in enumerate(args.node_groups, 1)
        }
        for what, peer in peers.items():
            group.allow("in", what, port=_LNET, group=peer)
            group.allow("out", what, port=_LNET, group=peer)
        if args.opens_nodes:
            nodes = Group(args.names, "nodes", args.node_groups[0], self.child(KEPT))
            nodes.allow("in", name, port=_LNET, group=group.id)
        return group

    def _link(
        self, args: LustreArgs, made: oci.lustre.FileStorageLustreFileSystem, link: LinkPlan
    ) -> None:
        """Link a bucket. What changes later is moved by jobs: links of OCI don't watch."""
        oci.lustre.FileStorageObjectStorageLink(
            args.names(f"{args.plan.name}-{link.what}"),
            availability_domain=args.domain,
            compartment_id=args.compartment,
            display_name=args.names(f"{args.plan.name}-{link.what}"),
            lustre_file_system_id=made.id,
            file_system_path=link.path,
            object_storage_prefix=args.namespace.apply(
                lambda namespace: "/".join(
                    part for part in (f"{namespace}:", link.bucket, link.prefix) if part
                )
            ),
            is_overwrite=False,
            start_import_from_object_trigger=1 if link.imports else None,
            opts=self.child(KEPT),
        )


class FileStorageArgs(Args, frozen=True):
    """What a file system of File Storage is made from."""

    names: Names
    compartment: str
    plan: FileStoragePlan
    domain: pulumi.Output[str]
    vcn_id: pulumi.Input[str]
    subnet_id: pulumi.Input[str]
    node_groups: list[pulumi.Output[str]]


class FileStorage(Component[FileStorageArgs]):
    """A file system, its mount target in the nodes' subnet, and its export to them alone."""

    kind = "oci:FileStorage"
    device: pulumi.Output[str]
    """What is mounted: ADDRESS:/PATH."""

    def build(self, args: FileStorageArgs) -> None:
        """Make it."""
        plan, name = args.plan, args.names(args.plan.name)
        made = oci.filestorage.FileSystem(
            name,
            availability_domain=args.domain,
            compartment_id=args.compartment,
            display_name=name,
            kms_key_id=plan.kms_key,
            opts=self.child(KEPT),
        )
        group = self._group(args)
        target = oci.filestorage.MountTarget(
            name,
            availability_domain=args.domain,
            compartment_id=args.compartment,
            display_name=name,
            subnet_id=args.subnet_id,
            nsg_ids=[group.id],
            opts=self.child(
                pulumi.ResourceOptions.merge(KEPT, pulumi.ResourceOptions(depends_on=group.rules))
            ),
        )
        # Root makes the homes of people, and comes from a privileged port.
        options = [
            oci.filestorage.ExportExportOptionArgs(
                source=network,
                access="READ_WRITE",
                identity_squash="NONE",
                require_privileged_source_port=True,
            )
            for network in plan.clients or ("0.0.0.0/0",)
        ]
        oci.filestorage.Export(
            name,
            export_set_id=target.export_set_id,
            file_system_id=made.id,
            path=plan.path,
            export_options=options,
            opts=self.child(KEPT),
        )
        self.device = pulumi.Output.concat(target.ip_address, f":{plan.path}")

    def _group(self, args: FileStorageArgs) -> Group:
        """Make the mount target's group: NFS 3 from the nodes, and nothing else."""
        group = make_group(
            args.names,
            f"nfs-{args.plan.name}",
            compartment=args.compartment,
            vcn_id=args.vcn_id,
            opts=self.child(KEPT),
        )
        for number, nodes in enumerate(args.node_groups, 1):
            for port in _NFS:
                group.allow("in", f"nodes-{number}-{port}", port=port, group=nodes)
        return group


class VolumeArgs(Args, frozen=True):
    """What a disk is made from."""

    names: Names
    compartment: str
    plan: VolumePlan
    domain: pulumi.Output[str]
    """Availability domain of its host."""
    instance_id: pulumi.Input[str] | None
    """None while the host is not made: then it is attached to nothing."""
    bare_metal: bool
    """The host has no hypervisor that could show it a disk: it logs in to it by itself (iSCSI)."""
    kms_key: str | None


class Volume(Component[VolumeArgs]):
    """A disk that outlives the host it is attached to."""

    kind = "oci:Volume"
    device: pulumi.Output[str]

    def build(self, args: VolumeArgs) -> None:
        """Make and attach it, under a device path that stays (Block Volume, "Device paths")."""
        plan = args.plan
        device = f"/dev/oracleoci/oraclevd{chr(ord('b') + plan.number)}"
        made = oci.core.Volume(
            args.names(plan.storage),
            compartment_id=args.compartment,
            availability_domain=args.domain,
            display_name=args.names(plan.storage),
            size_in_gbs=str(plan.gib),
            vpus_per_gb="10",
            kms_key_id=args.kms_key,
            freeform_tags={STORAGE_TAG: plan.storage},
            opts=self.child(KEPT),
        )
        if args.instance_id is not None:
            oci.core.VolumeAttachment(
                args.names(f"{plan.storage}-attached"),
                attachment_type="iscsi" if args.bare_metal else "paravirtualized",
                is_agent_auto_iscsi_login_enabled=True if args.bare_metal else None,
                instance_id=args.instance_id,
                volume_id=made.id,
                device=device,
                opts=self.child(pulumi.ResourceOptions(delete_before_replace=True)),
            )
        self.device = made.id.apply(lambda _: device)


class BucketArgs(Args, frozen=True):
    """What a bucket is made from."""

    names: Names
    compartment: str
    namespace: pulumi.Output[str]
    plan: BucketPlan


class Bucket(Component[BucketArgs]):
    """A private, encrypted, versioned bucket; Object Storage answers to TLS alone."""

    kind = "oci:Bucket"
    name: pulumi.Output[str]

    def build(self, args: BucketArgs) -> None:
        """Make it."""
        self.name = oci.objectstorage.Bucket(
            args.names(args.plan.name),
            compartment_id=args.compartment,
            namespace=args.namespace,
            name=args.plan.bucket,
            access_type="NoPublicAccess",
            versioning="Enabled",
            storage_tier="Standard",
            kms_key_id=args.plan.kms_key,
            opts=self.child(KEPT),
        ).name
