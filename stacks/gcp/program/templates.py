"""The template of a machine: NICs in order, boot disk, how it is bought, who it is."""

from __future__ import annotations

import pulumi
import pulumi_gcp as gcp

from ...pulumi.component import Args
from ..plan.pools import Affinity, ProvisioningModel, reservation_name

_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
"""Rights come from the account's roles alone; a narrower scope would cut them twice."""
_RESERVATION_KEY = "compute.googleapis.com/reservation-name"


class NicArgs(Args, frozen=True, kw_only=True):
    """One NIC."""

    subnet_id: pulumi.Input[str]
    nic_type: str
    """GVNIC, MRDMA."""
    public: bool = False
    """It has an address of its own for as long as it runs."""


class TemplateArgs(Args, frozen=True, kw_only=True):
    """What machines are made from."""

    name: str
    option: str
    project: str
    region: str
    zone: str
    machine: str
    has_gpus: bool
    nics: tuple[NicArgs, ...]
    """In the order Google wants them: the nodes' own network first."""
    image: str
    disk_type: str
    disk_gib: int
    kms_key: str | None
    provisioning_model: ProvisioningModel
    affinity: Affinity
    reservation: str | None
    run_seconds: int | None
    taken_back: bool
    """The cloud takes the machine back by itself, and deletes it then."""
    account: pulumi.Input[str]
    metadata: dict[str, str]
    network_tags: tuple[str, ...]
    forwards: bool
    """Takes packets that aren't its own."""
    labels: dict[str, str]


def make_template(args: TemplateArgs, opts: pulumi.ResourceOptions) -> gcp.compute.InstanceTemplate:
    """Make the template.

    It can't be changed, only replaced, and its machines with it: so new labels, which change with
    every change of the spec, don't; machines carry labels of their own.
    """
    return gcp.compute.InstanceTemplate(
        args.name,
        project=args.project,
        region=args.region,
        machine_type=args.machine,
        disks=[_boot_disk(args)],
        network_interfaces=[_interface(nic) for nic in args.nics],
        scheduling=_scheduling(args),
        reservation_affinity=_affinity(args),
        service_account=gcp.compute.InstanceTemplateServiceAccountArgs(
            email=args.account, scopes=[_SCOPE]
        ),
        shielded_instance_config=gcp.compute.InstanceTemplateShieldedInstanceConfigArgs(
            # GPU drivers are built on the node, by a key that the firmware doesn't know.
            enable_secure_boot=not args.has_gpus,
            enable_vtpm=True,
            enable_integrity_monitoring=True,
        ),
        metadata=args.metadata,
        tags=list(args.network_tags) or None,
        can_ip_forward=args.forwards or None,
        labels=args.labels,
        opts=pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(ignore_changes=["labels"])),
    )


def _boot_disk(args: TemplateArgs) -> gcp.compute.InstanceTemplateDiskArgs:
    key = None
    if args.kms_key is not None:
        key = gcp.compute.InstanceTemplateDiskDiskEncryptionKeyArgs(kms_key_self_link=args.kms_key)
    return gcp.compute.InstanceTemplateDiskArgs(
        boot=True,
        auto_delete=True,
        source_image=args.image,
        disk_type=args.disk_type,
        disk_size_gb=args.disk_gib,
        disk_encryption_key=key,
    )


def _interface(nic: NicArgs) -> gcp.compute.InstanceTemplateNetworkInterfaceArgs:
    public = gcp.compute.InstanceTemplateNetworkInterfaceAccessConfigArgs(network_tier="PREMIUM")
    return gcp.compute.InstanceTemplateNetworkInterfaceArgs(
        subnetwork=nic.subnet_id,
        nic_type=nic.nic_type,
        access_configs=[public] if nic.public else None,
    )


def _scheduling(args: TemplateArgs) -> gcp.compute.InstanceTemplateSchedulingArgs:
    seconds = args.run_seconds
    bound = args.taken_back or args.provisioning_model == "RESERVATION_BOUND"
    run = None
    if seconds is not None:
        run = gcp.compute.InstanceTemplateSchedulingMaxRunDurationArgs(seconds=seconds)
    return gcp.compute.InstanceTemplateSchedulingArgs(
        # Machines with GPUs, and those that are bound to a block, can't move to another host.
        on_host_maintenance="TERMINATE" if args.has_gpus or bound else "MIGRATE",
        automatic_restart=not args.taken_back,
        provisioning_model=args.provisioning_model,
        preemptible=args.provisioning_model == "SPOT",
        instance_termination_action="DELETE" if args.taken_back else None,
        max_run_duration=run,
    )


def _affinity(args: TemplateArgs) -> gcp.compute.InstanceTemplateReservationAffinityArgs:
    specific = None
    if args.reservation is not None:
        specific = gcp.compute.InstanceTemplateReservationAffinitySpecificReservationArgs(
            key=_RESERVATION_KEY, values=[reservation_name(args.reservation).value(args.project)]
        )
    return gcp.compute.InstanceTemplateReservationAffinityArgs(
        type=args.affinity, specific_reservation=specific
    )
