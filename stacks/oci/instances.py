"""One node as a resource of its own: gpu003 stays gpu003 when gpu001 is replaced."""

from __future__ import annotations

import pulumi
import pulumi_oci as oci

from .launch import PLUGINS, LaunchArgs
from .plan import OfferPlan
from .tags import OFFER

_FAULT_DOMAINS = 3
"""In every availability domain (docs.oracle.com, Regions and Availability Domains)."""
_KEEP = pulumi.ResourceOptions(
    # What is for the first start is over for nodes that run. One that was bought by another offer
    # is replaced: a fabric domain doesn't mix rungs.
    ignore_changes=["metadata"],
    replace_on_changes=[f'freeformTags["{OFFER}"]'],
)


def instance(
    name: str,
    args: LaunchArgs,
    offer: OfferPlan,
    *,
    host: str,
    number: int,
    domain: pulumi.Input[str],
    cluster: pulumi.Input[str] | None,
    tags: dict[str, str],
    opts: pulumi.ResourceOptions,
) -> oci.core.Instance:
    """Make a node.

    Args:
        name: of the resource.
        args: what is alike for the pool.
        offer: how it is bought.
        host: its name in the cluster.
        number: its place in the pool, from 0.
        domain: name of the availability domain.
        cluster: compute cluster that it joins.
        tags: free-form tags.
        opts: of the resource.
    """
    plan = args.plan
    return oci.core.Instance(
        name,
        availability_domain=domain,
        compartment_id=args.compartment,
        compute_cluster_id=cluster,
        display_name=name,
        shape=plan.shape.name,
        shape_config=None
        if plan.shape.ocpus is None
        else oci.core.InstanceShapeConfigArgs(
            ocpus=plan.shape.ocpus, memory_in_gbs=plan.shape.memory_gib
        ),
        fault_domain=f"FAULT-DOMAIN-{number % _FAULT_DOMAINS + 1}" if plan.spread else None,
        source_details=_source(args),
        create_vnic_details=oci.core.InstanceCreateVnicDetailsArgs(
            subnet_id=args.subnet_id,
            assign_public_ip=str(plan.public).lower(),
            nsg_ids=list(args.security_groups),
            hostname_label=host,
        ),
        instance_options=oci.core.InstanceInstanceOptionsArgs(
            are_legacy_imds_endpoints_disabled=True
        ),
        agent_config=_agent() if plan.rdma else None,
        capacity_reservation_id=offer.rung.reservation,
        preemptible_instance_config=_preemptible(offer),
        preserve_boot_volume=False,
        metadata=args.metadata,
        freeform_tags=tags,
        defined_tags=args.role,
        opts=pulumi.ResourceOptions.merge(opts, _KEEP),
    )


def _source(args: LaunchArgs) -> oci.core.InstanceSourceDetailsArgs:
    image = args.plan.image
    newest = oci.core.InstanceSourceDetailsInstanceSourceImageFilterDetailsArgs(
        compartment_id=args.compartment,
        operating_system=image.operating_system,
        operating_system_version=image.version,
    )
    return oci.core.InstanceSourceDetailsArgs(
        source_type="image",
        source_id=image.image or None,
        instance_source_image_filter_details=None if image.image else newest,
        boot_volume_size_in_gbs=str(args.plan.disk_gib),
        kms_key_id=args.kms_key,
    )


def _agent() -> oci.core.InstanceAgentConfigArgs:
    return oci.core.InstanceAgentConfigArgs(
        plugins_configs=[
            oci.core.InstanceAgentConfigPluginsConfigArgs(name=plugin, desired_state="ENABLED")
            for plugin in PLUGINS
        ]
    )


def _preemptible(offer: OfferPlan) -> oci.core.InstancePreemptibleInstanceConfigArgs | None:
    if offer.rung.market != "spot":
        return None
    return oci.core.InstancePreemptibleInstanceConfigArgs(
        preemption_action=oci.core.InstancePreemptibleInstanceConfigPreemptionActionArgs(
            type="TERMINATE", preserve_boot_volume=False
        )
    )
