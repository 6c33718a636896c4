"""NFS services: EFS with its mount targets, and FSx for OpenZFS. Both outlive the cluster."""

from __future__ import annotations

import pulumi
import pulumi_aws as aws

from ...pulumi.component import KEPT, Args, Component
from ...pulumi.names import Names
from ..plan.types import EfsPlan, OpenZfsPlan
from .access import Group, make_group

_NFS = (2049, 2049)
"""TCP port of NFS, all that EFS has (EFS user guide, "Using VPC security groups")."""
_MOUNTD = ((111, 111), (20001, 20003))
"""Ports of FSx for OpenZFS next to NFS' own: portmapper, and mountd, statd and lockd (FSx for
OpenZFS user guide, "File system access control with Amazon VPC"), over TCP and UDP."""


class EfsArgs(Args, frozen=True):
    """What a file system of EFS is made from."""

    names: Names
    plan: EfsPlan
    vpc_id: pulumi.Input[str]
    subnets: dict[str, pulumi.Output[str]]
    """Part of a mount target's name -> its private subnet."""
    node_groups: list[pulumi.Output[str]]


class Efs(Component[EfsArgs]):
    """A file system of EFS, encrypted, and the nodes' ways to it: only their groups get in."""

    kind = "aws:Efs"
    device: pulumi.Output[str]
    """What is mounted: HOST:/."""

    def build(self, args: EfsArgs) -> None:
        """Make it."""
        plan = args.plan
        made = aws.efs.FileSystem(
            args.names(plan.name),
            encrypted=True,
            kms_key_id=plan.kms_key,
            performance_mode=plan.performance_mode,
            throughput_mode=plan.throughput_mode,
            provisioned_throughput_in_mibps=plan.mibps,
            tags={"Name": args.names(plan.name)},
            opts=self.child(KEPT),
        )
        group = _nfs_group(self, args.names, plan.name, args.vpc_id, args.node_groups)
        ready = pulumi.ResourceOptions(depends_on=group.rules)
        targets = [
            aws.efs.MountTarget(
                args.names(f"{plan.name}-{what}" if what else plan.name),
                file_system_id=made.id,
                subnet_id=subnet,
                security_groups=[group.id],
                opts=self.child(pulumi.ResourceOptions.merge(KEPT, ready)),
            )
            for what, subnet in args.subnets.items()
        ]
        # The name leads to the mount target of a node's own zone, and to none where that has none.
        # TLS needs it: the certificate is of the name.
        host = made.dns_name if plan.zones or plan.tls else targets[0].ip_address
        self.device = pulumi.Output.concat(host, ":/")


class OpenZfsArgs(Args, frozen=True):
    """What a file system of FSx for OpenZFS is made from."""

    names: Names
    plan: OpenZfsPlan
    vpc_id: pulumi.Input[str]
    subnet_id: pulumi.Input[str]
    node_groups: list[pulumi.Output[str]]


class OpenZfs(Component[OpenZfsArgs]):
    """A file system of FSx for OpenZFS and the group that lets the nodes reach it."""

    kind = "aws:OpenZfs"
    device: pulumi.Output[str]
    """What is mounted: DNS:/fsx, the root volume."""

    def build(self, args: OpenZfsArgs) -> None:
        """Make it."""
        plan = args.plan
        group = _nfs_group(self, args.names, plan.name, args.vpc_id, args.node_groups)
        for number, nodes in enumerate(args.node_groups, 1):
            for protocol in ("tcp", "udp"):
                for ports in _MOUNTD:
                    what = f"nodes-{number}-{protocol}-{ports[0]}"
                    group.allow("in", what, protocol, ports=ports, group=nodes)
        # Without no_root_squash root of the nodes can't create users' homes.
        options = ["rw", "crossmnt", "sync", "no_root_squash"]
        client = aws.fsx.OpenZfsFileSystemRootVolumeConfigurationNfsExportsClientConfigurationArgs
        exports = aws.fsx.OpenZfsFileSystemRootVolumeConfigurationNfsExportsArgs(
            client_configurations=[
                client(clients=network, options=options) for network in plan.clients or ("*",)
            ]
        )
        ready = pulumi.ResourceOptions(depends_on=group.rules)
        made = aws.fsx.OpenZfsFileSystem(
            args.names(plan.name),
            subnet_ids=args.subnet_id,
            security_group_ids=[group.id],
            deployment_type=plan.deployment,
            storage_type="SSD",
            storage_capacity=plan.capacity_gib,
            throughput_capacity=plan.throughput,
            kms_key_id=plan.kms_key,
            copy_tags_to_backups=True,
            copy_tags_to_volumes=True,
            # Deleted is what a person named for deletion: no unknown backup stays.
            skip_final_backup=True,
            delete_options=["DELETE_CHILD_VOLUMES_AND_SNAPSHOTS"],
            root_volume_configuration=aws.fsx.OpenZfsFileSystemRootVolumeConfigurationArgs(
                data_compression_type=plan.compression, nfs_exports=exports
            ),
            tags={"Name": args.names(plan.name)},
            opts=self.child(pulumi.ResourceOptions.merge(KEPT, ready)),
        )
        self.device = pulumi.Output.concat(made.dns_name, ":/fsx")


def _nfs_group(
    owner: Component[EfsArgs] | Component[OpenZfsArgs],
    names: Names,
    storage: str,
    vpc_id: pulumi.Input[str],
    node_groups: list[pulumi.Output[str]],
) -> Group:
    """Make the group of a service's interfaces: NFS from the nodes, and nothing else."""
    group = make_group(
        names,
        f"nfs-{storage}",
        vpc_id=vpc_id,
        why="NFS for the nodes of the cluster",
        opts=owner.child(KEPT),
    )
    for number, nodes in enumerate(node_groups, 1):
        group.allow("in", f"nodes-{number}", "tcp", ports=_NFS, group=nodes)
    return group
