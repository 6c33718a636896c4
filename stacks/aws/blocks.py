"""A capacity block that is bought: paid at once, not refundable, only where the spec says so."""

from __future__ import annotations

import pulumi
import pulumi_aws as aws

from ..pulumi.component import Args, Component
from ..pulumi.labels import POOL
from ..pulumi.names import Names

OFFERING = "aws:ec2/getCapacityBlockOffering:getCapacityBlockOffering"
"""The question to AWS that precedes a purchase; recordings answer it with `RECORDED`."""
RECORDED = {"capacityBlockOfferingId": "${the earliest offering when it is bought}"}


class CapacityBlockArgs(Args, frozen=True):
    """What is bought."""

    names: Names
    pool: str
    machine: str
    count: int
    hours: int


class CapacityBlock(Component[CapacityBlockArgs]):
    """A capacity block of the earliest offering that fits.

    Only the run that buys it has it in its program: later ones find it by its tags and use its id
    (`ladder.py`), so that no update ever buys it again. Then the stack lets go of it and nothing is
    deleted, because nothing is paid back: it ends by itself.
    """

    kind = "aws:CapacityBlock"
    reservation_id: pulumi.Output[str]

    def build(self, args: CapacityBlockArgs) -> None:
        """Buy it, once."""
        offering = aws.ec2.get_capacity_block_offering_output(
            capacity_duration_hours=args.hours,
            instance_count=args.count,
            instance_type=args.machine,
            opts=pulumi.InvokeOutputOptions(parent=self),
        )
        once = pulumi.ResourceOptions(
            ignore_changes=["capacityBlockOfferingId"], retain_on_delete=True
        )
        self.reservation_id = aws.ec2.CapacityBlockReservation(
            args.names(f"block-{args.pool}"),
            capacity_block_offering_id=offering.capacity_block_offering_id,
            instance_platform="Linux/UNIX",
            tags={POOL: args.pool},
            opts=self.child(once),
        ).id
