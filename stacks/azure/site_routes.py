"""Routes of the site's network to other sites: through a gateway."""

from __future__ import annotations

import pulumi
from pulumi_azure_native import network

from ..pulumi.component import Args, Component
from ..pulumi.names import Names


class SiteRoutesArgs(Args, frozen=True, kw_only=True):
    """What the routes to other sites are made from."""

    names: Names
    resource_group: pulumi.Input[str]
    table: pulumi.Input[str]
    """Name of the table that the nodes' subnets have."""
    gateways: dict[str, pulumi.Input[str]]
    """Network of another site -> private address of the gateway that leads there."""


class SiteRoutes(Component[SiteRoutesArgs]):
    """Routes of the nodes' subnets to other sites; a node that comes later has them too."""

    kind = "azure:SiteRoutes"
    networks: list[str]
    """Where they lead to."""

    def build(self, args: SiteRoutesArgs) -> None:
        """Make the routes."""
        self.networks = list(args.gateways)
        for cidr, address in args.gateways.items():
            name = f"to-{cidr.replace('/', '-').replace('.', '-')}"
            network.Route(
                args.names(name),
                route_name=name,
                resource_group_name=args.resource_group,
                route_table_name=args.table,
                address_prefix=cidr,
                next_hop_type="VirtualAppliance",
                next_hop_ip_address=address,
                opts=self.child(),
            )
