"""A launch template: all parameters of a node, so that a launch adds none."""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
import pulumi_aws as aws

from ...pulumi.names import OFFER, POOL
from ..plan.facts import facts
from ..plan.types import OfferPlan, OptionPlan, PoolPlan

_TAGGED = ("instance", "volume", "network-interface")


def launch_template(
    name: str,
    *,
    pool: PoolPlan,
    offer: OfferPlan,
    subnet_id: pulumi.Input[str] | None,
    security_groups: Sequence[pulumi.Input[str]],
    placement: pulumi.Input[str] | None,
    profile: pulumi.Input[str],
    kms_key: str | None,
    user_data: pulumi.Input[str],
    block: pulumi.Input[str] | None = None,
    tags: dict[str, str],
    opts: pulumi.ResourceOptions,
) -> aws.ec2.LaunchTemplate:
    """Return the template of a pool's nodes when they are bought by an offer.

    Without a subnet it is of an Auto Scaling group: that sets the subnet itself, and the template
    sets how the group's nodes are bought. Nodes have no public address: several interfaces rule out
    an automatic one anyway. Metadata needs a token (IMDSv2) and is one hop away, out of reach of
    containers with their own network.
    """
    return aws.ec2.LaunchTemplate(
        name,
        description=f"{pool.name}: {pool.machine}, {offer.key}",
        instance_type=pool.machine,
        image_id=pool.image.ami or None,
        user_data=user_data,
        update_default_version=True,
        iam_instance_profile=aws.ec2.LaunchTemplateIamInstanceProfileArgs(name=profile),
        metadata_options=aws.ec2.LaunchTemplateMetadataOptionsArgs(
            http_endpoint="enabled",
            http_tokens="required",
            http_put_response_hop_limit=1,
            # A node's metadata shows no tag whose key has a slash, and then it shows none at all.
            instance_metadata_tags="disabled" if pool.joins_eks else "enabled",
        ),
        block_device_mappings=[_root_disk(pool, kms_key)],
        network_interfaces=[
            aws.ec2.LaunchTemplateNetworkInterfaceArgs(
                network_card_index=interface.card,
                device_index=interface.device,
                interface_type=interface.kind,
                subnet_id=subnet_id,
                security_groups=list(security_groups),
                associate_public_ip_address="false" if interface.kind == "interface" else None,
                delete_on_termination="true",
            )
            for interface in pool.interfaces
        ],
        placement=None
        if placement is None
        else aws.ec2.LaunchTemplatePlacementArgs(group_name=placement),
        instance_market_options=_market(offer.option, grouped=subnet_id is None),
        capacity_reservation_specification=_reservation(offer.option, block),
        tag_specifications=[
            aws.ec2.LaunchTemplateTagSpecificationArgs(resource_type=kind, tags=tags)
            for kind in _TAGGED
        ],
        tags={"Name": name, POOL: pool.name, OFFER: offer.key},
        opts=opts,
    )


def _root_disk(pool: PoolPlan, kms_key: str | None) -> aws.ec2.LaunchTemplateBlockDeviceMappingArgs:
    return aws.ec2.LaunchTemplateBlockDeviceMappingArgs(
        device_name=pool.image.root_device,
        ebs=aws.ec2.LaunchTemplateBlockDeviceMappingEbsArgs(
            volume_type="gp3",
            volume_size=pool.disk_gib,
            iops=facts().root_disk_iops,
            throughput=facts().root_disk_mib_per_s,
            encrypted="true",
            kms_key_id=kms_key,
            delete_on_termination="true",
        ),
    )


def _market(
    option: OptionPlan, *, grouped: bool
) -> aws.ec2.LaunchTemplateInstanceMarketOptionsArgs | None:
    """Return the market options of a capacity block; for spot the node or the fleet sets them.

    A group only takes them from its template, and accepts one-time requests alone (EC2 Auto Scaling
    User Guide, "Request Spot Instances for fault-tolerant and flexible applications"; read
    2026-11).
    """
    if grouped and option.market == "spot":
        limit = option.max_usd_per_hour
        return aws.ec2.LaunchTemplateInstanceMarketOptionsArgs(
            market_type="spot",
            spot_options=aws.ec2.LaunchTemplateInstanceMarketOptionsSpotOptionsArgs(
                spot_instance_type="one-time", max_price=None if limit is None else f"{limit:g}"
            ),
        )
    if option.market != "capacity-block":
        return None
    return aws.ec2.LaunchTemplateInstanceMarketOptionsArgs(market_type="capacity-block")


def _reservation(
    option: OptionPlan, block: pulumi.Input[str] | None
) -> aws.ec2.LaunchTemplateCapacityReservationSpecificationArgs | None:
    """Return the reserved capacity to use. A group doesn't fall back to on demand by itself."""
    one = block or option.reservation
    if one is None and option.reservation_group is None:
        return None
    return aws.ec2.LaunchTemplateCapacityReservationSpecificationArgs(
        capacity_reservation_preference="capacity-reservations-only"
        if option.reservation_group
        else None,
        capacity_reservation_target=aws.ec2.LaunchTemplateCapacityReservationSpecificationCapacityReservationTargetArgs(
            capacity_reservation_id=one,
            capacity_reservation_resource_group_arn=option.reservation_group,
        ),
    )
