"""All parameters of a node for OCI, as instance configurations: a launch adds little."""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
import pulumi_oci as oci

from ...pulumi.component import Args
from ..plan.types import OfferPlan, PoolPlan

PLUGINS = ("Compute HPC RDMA Auto-Configuration", "Compute HPC RDMA Authentication")
"""Parts of Oracle's agent that bring the RDMA interfaces up and let them into the network
("Oracle Cloud Agent", plugins; as in oracle-quickstart/oci-hpc)."""


class LaunchArgs(Args, frozen=True):
    """What is alike for all nodes of a pool."""

    compartment: str
    plan: PoolPlan
    subnet_id: pulumi.Input[str]
    security_groups: Sequence[pulumi.Input[str]]
    kms_key: str | None
    metadata: dict[str, str]
    role: pulumi.Output[dict[str, str]] | None
    """Defined tag."""


def instance_configuration(
    name: str,
    args: LaunchArgs,
    offer: OfferPlan,
    *,
    domain: pulumi.Input[str],
    cluster: pulumi.Input[str] | None,
    tags: dict[str, str],
    opts: pulumi.ResourceOptions,
) -> oci.core.InstanceConfiguration:
    """Make the configuration of a pool's nodes when they are bought by an offer.

    Nodes have no public address, and metadata answers only to version 2.

    Args:
        name: of the configuration.
        args: what is alike for the pool.
        offer: how they are bought.
        domain: name of the availability domain.
        cluster: compute cluster that they join; None for nodes of a cluster network.
        tags: free-form tags of the nodes, and of the configuration.
        opts: of the resource.
    """
    details = oci.core.InstanceConfigurationInstanceDetailsLaunchDetailsArgs(
        availability_domain=domain,
        compartment_id=args.compartment,
        compute_cluster_id=cluster,
        shape=args.plan.shape.name,
        shape_config=_shape_config(args.plan),
        source_details=_source(args),
        create_vnic_details=oci.core.InstanceConfigurationInstanceDetailsLaunchDetailsCreateVnicDetailsArgs(
            subnet_id=args.subnet_id,
            assign_public_ip=args.plan.public,
            nsg_ids=list(args.security_groups),
            freeform_tags=tags,
        ),
        instance_options=oci.core.InstanceConfigurationInstanceDetailsLaunchDetailsInstanceOptionsArgs(
            are_legacy_imds_endpoints_disabled=True
        ),
        agent_config=_agent(args.plan),
        capacity_reservation_id=offer.option.reservation,
        preemptible_instance_config=_preemptible(offer),
        metadata=args.metadata,
        freeform_tags=tags,
        defined_tags=args.role,
    )
    return oci.core.InstanceConfiguration(
        name,
        compartment_id=args.compartment,
        display_name=name,
        instance_details=oci.core.InstanceConfigurationInstanceDetailsArgs(
            instance_type="compute", launch_details=details
        ),
        freeform_tags=tags,
        opts=opts,
    )


def _shape_config(
    plan: PoolPlan,
) -> oci.core.InstanceConfigurationInstanceDetailsLaunchDetailsShapeConfigArgs | None:
    if plan.shape.ocpus is None:
        return None
    return oci.core.InstanceConfigurationInstanceDetailsLaunchDetailsShapeConfigArgs(
        ocpus=plan.shape.ocpus, memory_in_gbs=plan.shape.memory_gib
    )


def _source(
    args: LaunchArgs,
) -> oci.core.InstanceConfigurationInstanceDetailsLaunchDetailsSourceDetailsArgs:
    """Return the boot volume: always encrypted, with a key of one's own where the site has one."""
    image = args.plan.image
    newest = oci.core.InstanceConfigurationInstanceDetailsLaunchDetailsSourceDetailsInstanceSourceImageFilterDetailsArgs(  # noqa: E501  # the SDK's name
        compartment_id=args.compartment,
        operating_system=image.operating_system,
        operating_system_version=image.version,
    )
    return oci.core.InstanceConfigurationInstanceDetailsLaunchDetailsSourceDetailsArgs(
        source_type="image",
        image_id=image.image or None,
        instance_source_image_filter_details=None if image.image else newest,
        boot_volume_size_in_gbs=str(args.plan.disk_gib),
        kms_key_id=args.kms_key,
    )


def _agent(
    plan: PoolPlan,
) -> oci.core.InstanceConfigurationInstanceDetailsLaunchDetailsAgentConfigArgs | None:
    if not plan.rdma:
        return None
    return oci.core.InstanceConfigurationInstanceDetailsLaunchDetailsAgentConfigArgs(
        plugins_configs=[
            oci.core.InstanceConfigurationInstanceDetailsLaunchDetailsAgentConfigPluginsConfigArgs(
                name=plugin, desired_state="ENABLED"
            )
            for plugin in PLUGINS
        ]
    )


def _preemptible(
    offer: OfferPlan,
) -> oci.core.InstanceConfigurationInstanceDetailsLaunchDetailsPreemptibleInstanceConfigArgs | None:
    if offer.option.market != "spot":
        return None
    action = oci.core.InstanceConfigurationInstanceDetailsLaunchDetailsPreemptibleInstanceConfigPreemptionActionArgs(  # noqa: E501  # the SDK's name
        type="TERMINATE", preserve_boot_volume=False
    )
    return oci.core.InstanceConfigurationInstanceDetailsLaunchDetailsPreemptibleInstanceConfigArgs(
        preemption_action=action
    )
