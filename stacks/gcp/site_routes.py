"""Routes of the site's network to other sites: through a gateway."""

from __future__ import annotations

import pulumi
import pulumi_gcp as gcp

from ..pulumi.component import Args, Component
from ..pulumi.names import Names


class SiteRoutesArgs(Args, frozen=True, kw_only=True):
    """What the routes to other sites are made from."""

    names: Names
    project: str
    mark: str
    network_id: pulumi.Input[str]
    gateways: dict[str, pulumi.Input[str]]
    """Network of another site -> the machine that leads there."""


class SiteRoutes(Component[SiteRoutesArgs]):
    """Routes of the nodes' network to other sites; a node that comes later has them too."""

    kind = "gcp:SiteRoutes"
    networks: list[str]
    """Where they lead to."""

    def build(self, args: SiteRoutesArgs) -> None:
        """Make the routes."""
        self.networks = list(args.gateways)
        for cidr, machine in args.gateways.items():
            gcp.compute.Route(
                args.names(f"to-{cidr.replace('/', '-').replace('.', '-')}"),
                project=args.project,
                network=args.network_id,
                description=args.mark,
                dest_range=cidr,
                next_hop_instance=machine,
                opts=self.child(),
            )
