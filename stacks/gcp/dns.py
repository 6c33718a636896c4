"""Names of logins and controllers in a private zone, as a component."""

from __future__ import annotations

import pulumi
import pulumi_gcp as gcp

from ..pulumi.component import Args, Component
from ..pulumi.names import Names

TTL_S = 60
"""A replaced node is found again within a minute."""


class DnsArgs(Args, frozen=True, kw_only=True):
    """Which names, and where."""

    names: Names
    project: str
    network_id: pulumi.Input[str]
    zone: str | None
    """Managed zone that exists; None: a private one is made."""
    domain: str
    addresses: dict[str, pulumi.Output[str]]
    """Host name -> private address."""


class Dns(Component[DnsArgs]):
    """A private zone, and a name for each host."""

    kind = "gcp:Dns"
    zone: pulumi.Output[str]

    def build(self, args: DnsArgs) -> None:
        """Make the zone unless there is one, and the records."""
        project, _, name = (args.zone or "").rpartition("/managedZones/")
        owner = project.removeprefix("projects/") or args.project
        if args.zone is None:
            made = gcp.dns.ManagedZone(
                args.names("names"),
                project=args.project,
                dns_name=f"{args.domain}.",
                description="Logins and controllers",
                visibility="private",
                private_visibility_config=gcp.dns.ManagedZonePrivateVisibilityConfigArgs(
                    networks=[
                        gcp.dns.ManagedZonePrivateVisibilityConfigNetworkArgs(
                            network_url=args.network_id
                        )
                    ]
                ),
                opts=self.child(),
            )
            self.zone = made.name
        else:
            self.zone = pulumi.Output.from_input(name)
        for host, address in args.addresses.items():
            gcp.dns.RecordSet(
                args.names(f"name-{host}"),
                project=owner,
                managed_zone=self.zone,
                name=f"{host}.{args.domain}.",
                type="A",
                ttl=TTL_S,
                rrdatas=[address],
                opts=self.child(),
            )
