"""Routes of the site's network to other sites: through a gateway."""

from __future__ import annotations

import pulumi
import pulumi_aws as aws

from ..pulumi.component import Args, Component
from ..pulumi.names import Names


class SiteRoutesArgs(Args, frozen=True):
    """What the routes to other sites are made from."""

    names: Names
    tables: dict[str, pulumi.Output[str]]
    gateways: dict[str, pulumi.Input[str]]
    """Network of another site -> interface of the gateway that leads there."""


class SiteRoutes(Component[SiteRoutesArgs]):
    """Routes to other sites in every table: also nodes that come later need nothing more."""

    kind = "aws:SiteRoutes"
    networks: list[str]
    """Where they lead to."""

    def build(self, args: SiteRoutesArgs) -> None:
        """Make the routes."""
        self.networks = list(args.gateways)
        for cidr, interface in args.gateways.items():
            for what, table in args.tables.items():
                aws.ec2.Route(
                    args.names(f"{what}-to-{cidr.replace('/', '-').replace('.', '-')}"),
                    route_table_id=table,
                    destination_cidr_block=cidr,
                    network_interface_id=interface,
                    opts=self.child(),
                )
