"""The template of a machine: NICs in order, boot disk, how it is bought, who it is."""

from __future__ import annotations

import pulumi
import pulumi_gcp as gcp

from ...pulumi.component import Args
from ...pulumi.names import HOST, POOL, Names, label_key, label_value
from ..plan.fabric import InterfacePlan
from ..plan.names import OPTION
from ..plan.pools import OfferPlan, PoolPlan, reservation_name

_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
"""Rights come from the account's roles alone; a narrower scope would cut them twice."""
_RESERVATION_KEY = "compute.googleapis.com/reservation-name"


NO_IMAGE = "image-is-not-known"
"""Placeholder for an unknown image; preflight stops before it is used."""


class SiteParts(Args, frozen=True, kw_only=True):
    """What all pools of a site share."""

    names: Names
    project: str
    region: str
    kms_key: str | None
    subnets: dict[str, pulumi.Input[str]]
    """Key -> id."""
    account: pulumi.Input[str]
    """E-mail of the nodes' identity."""
    metadata: dict[str, str]
    balanced: bool
    """There is a load balancer for the controllers."""


def make_template(
    site: SiteParts, pool: PoolPlan, option: OfferPlan, opts: pulumi.ResourceOptions
) -> gcp.compute.InstanceTemplate:
    """Make the template of a pool's machines that are bought on an option.

    It can't be changed, only replaced, and its machines with it: so new labels, which change with
    every change of the spec, don't; machines carry labels of their own.
    """
    return gcp.compute.InstanceTemplate(
        site.names(f"{pool.name}-{option.key}"),
        project=site.project,
        region=site.region,
        machine_type=pool.machine,
        disks=[_boot_disk(site, pool)],
        network_interfaces=[
            _interface(nic, site, public=pool.public and number == 0)
            for number, nic in enumerate(option.interfaces)
        ],
        scheduling=_scheduling(pool, option),
        reservation_affinity=_affinity(site, option),
        service_account=gcp.compute.InstanceTemplateServiceAccountArgs(
            email=site.account, scopes=[_SCOPE]
        ),
        shielded_instance_config=gcp.compute.InstanceTemplateShieldedInstanceConfigArgs(
            # GPU drivers are built on the node, with a key that is not in the firmware.
            enable_secure_boot=not pool.has_gpus,
            enable_vtpm=True,
            enable_integrity_monitoring=True,
        ),
        metadata=site.metadata,
        tags=_network_tags(site, pool) or None,
        can_ip_forward=pool.gateway or None,
        labels=labels_of(pool, option),
        opts=pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(ignore_changes=["labels"])),
    )


def labels_of(pool: PoolPlan, option: OfferPlan, host: str | None = None) -> dict[str, str]:
    """Return the own labels of a machine, by which it is found and called, or of its template."""
    own = {POOL: pool.name, OPTION: option.key} | ({} if host is None else {HOST: host})
    tags = {label_key(key): value for key, value in pool.tags.items()}
    return {key: label_value(value) for key, value in (tags | own).items()}


def _network_tags(site: SiteParts, pool: PoolPlan) -> list[str]:
    """Return the tags by which firewall rules select a pool's machines."""
    worn = {
        "ssh": pool.role != "compute",
        "api": pool.role == "controller" and site.balanced,
        "gateway": pool.gateway,
    }
    return [site.names(tag) for tag, is_worn in worn.items() if is_worn]


def _boot_disk(site: SiteParts, pool: PoolPlan) -> gcp.compute.InstanceTemplateDiskArgs:
    key = None
    if site.kms_key is not None:
        key = gcp.compute.InstanceTemplateDiskDiskEncryptionKeyArgs(kms_key_self_link=site.kms_key)
    return gcp.compute.InstanceTemplateDiskArgs(
        boot=True,
        auto_delete=True,
        source_image=pool.image or NO_IMAGE,
        disk_type=pool.disk_type,
        disk_size_gb=pool.disk_gib,
        disk_encryption_key=key,
    )


def _interface(
    nic: InterfacePlan, site: SiteParts, *, public: bool
) -> gcp.compute.InstanceTemplateNetworkInterfaceArgs:
    config = gcp.compute.InstanceTemplateNetworkInterfaceAccessConfigArgs(network_tier="PREMIUM")
    return gcp.compute.InstanceTemplateNetworkInterfaceArgs(
        subnetwork=site.subnets[nic.subnet],
        nic_type=nic.nic_type,
        stack_type="IPV6_ONLY" if nic.ipv6_only else None,
        access_configs=[config] if public else None,
    )


def _scheduling(pool: PoolPlan, option: OfferPlan) -> gcp.compute.InstanceTemplateSchedulingArgs:
    seconds, model, taken_back = (
        option.run_seconds,
        option.provisioning_model,
        option.is_reclaimable,
    )
    bound = taken_back or model == "RESERVATION_BOUND"
    run = None
    if seconds is not None:
        run = gcp.compute.InstanceTemplateSchedulingMaxRunDurationArgs(seconds=seconds)
    return gcp.compute.InstanceTemplateSchedulingArgs(
        # Machines with GPUs, and those that are bound to a block, can't move to another host.
        on_host_maintenance="TERMINATE" if pool.has_gpus or bound else "MIGRATE",
        automatic_restart=not taken_back,
        provisioning_model=model,
        preemptible=model == "SPOT",
        instance_termination_action="DELETE" if taken_back else None,
        max_run_duration=run,
    )


def _affinity(
    site: SiteParts, option: OfferPlan
) -> gcp.compute.InstanceTemplateReservationAffinityArgs:
    specific = None
    if option.reservation is not None:
        specific = gcp.compute.InstanceTemplateReservationAffinitySpecificReservationArgs(
            key=_RESERVATION_KEY, values=[reservation_name(option.reservation).value(site.project)]
        )
    return gcp.compute.InstanceTemplateReservationAffinityArgs(
        type=option.affinity, specific_reservation=specific
    )
