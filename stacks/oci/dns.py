"""Names of nodes in a zone that exists. Without one, the VCN's own resolver knows them."""

from __future__ import annotations

import pulumi
import pulumi_oci as oci

from ..pulumi.component import Args, Component
from ..pulumi.names import Names
from .plan import DnsPlan

_TTL_S = 60
"""A replaced node has another address: its name follows within a minute."""


class DnsArgs(Args, frozen=True):
    """What the records are made from."""

    names: Names
    plan: DnsPlan
    addresses: dict[str, pulumi.Output[str]]
    """Node -> private address, of nodes made one by one: of the others the program knows none."""


class Dns(Component[DnsArgs]):
    """Records of the fixed nodes in a zone that exists."""

    kind = "oci:Dns"
    domain: pulumi.Output[str]

    def build(self, args: DnsArgs) -> None:
        """Make the records."""
        plan = args.plan
        self.domain = pulumi.Output.from_input(plan.domain)
        for node, address in args.addresses.items():
            full = f"{node}.{plan.domain}" if plan.domain else node
            oci.dns.Rrset(
                args.names(node),
                zone_name_or_id=plan.zone,
                domain=full,
                rtype="A",
                items=[oci.dns.RrsetItemArgs(domain=full, rtype="A", rdata=address, ttl=_TTL_S)],
                opts=self.child(),
            )
