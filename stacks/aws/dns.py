"""Names of nodes: a private DNS zone, or records in one that exists."""

from __future__ import annotations

import pulumi
import pulumi_aws as aws

from ..pulumi.component import Args, Component
from ..pulumi.names import Names
from .plan import DnsPlan

_TTL_S = 60
"""A replaced node has another address: its name follows within a minute."""


class DnsArgs(Args, frozen=True):
    """What the zone is made from."""

    names: Names
    plan: DnsPlan
    vpc_id: pulumi.Input[str]
    addresses: dict[str, pulumi.Output[str]]
    """Node -> private address."""


class Dns(Component[DnsArgs]):
    """A private zone with the names of the fixed nodes, or their records in one that exists."""

    kind = "aws:Dns"
    zone_id: pulumi.Output[str]
    domain: pulumi.Output[str]

    def build(self, args: DnsArgs) -> None:
        """Make zone and records."""
        plan = args.plan
        if plan.zone is not None:
            self.zone_id = pulumi.Output.from_input(plan.zone)
        else:
            self.zone_id = aws.route53.Zone(
                args.names("zone"),
                name=plan.domain,
                comment="Nodes of the cluster",
                vpcs=[aws.route53.ZoneVpcArgs(vpc_id=args.vpc_id)],
                opts=self.child(),
            ).zone_id
        self.domain = pulumi.Output.from_input(plan.domain)
        for node, address in args.addresses.items():
            aws.route53.Record(
                args.names(node),
                zone_id=self.zone_id,
                name=f"{node}.{plan.domain}" if plan.domain else node,
                type="A",
                ttl=_TTL_S,
                records=[address],
                opts=self.child(),
            )
