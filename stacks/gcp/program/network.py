"""The networks of a Google Cloud site, as components: the nodes' VPC, the fabrics', and names."""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
import pulumi_gcp as gcp

from ....schemas.derived.links import TUNNEL_PORT
from ...pulumi.component import Args, Component
from ...pulumi.names import Names

SSH_PORT = "22"
EVERYWHERE = "0.0.0.0/0"


class PeeringArgs(Args, frozen=True, kw_only=True):
    """Private services access, which Managed Lustre is reached through."""

    service: str
    prefix: int
    """Length of the range that Google's side takes addresses from."""
    port: int
    """TCP port on which the file system's servers reach the nodes."""


class NodeNetworkArgs(Args, frozen=True, kw_only=True):
    """The nodes' own VPC, to be made."""

    names: Names
    project: str
    region: str
    mark: str
    """Description of what is made: nothing here takes labels."""
    cidr: str
    mtu: int | None
    ssh_from: tuple[str, ...]
    """Networks that may reach SSH of nodes with `ssh_tag`."""
    ssh_tag: str
    nat: bool
    peering: PeeringArgs | None
    let_in: tuple[str, ...]
    """Networks of other sites, which reach everything of the nodes."""
    gateway_tag: str | None
    """Nodes that tunnels end at; None: none do."""


class NodeNetwork(Component[NodeNetworkArgs]):
    """A VPC with one private subnet; in: its own nodes, and SSH of some; out: through NAT."""

    kind = "gcp:NodeNetwork"
    network_id: pulumi.Output[str]
    subnet_id: pulumi.Output[str]
    peered_network_id: pulumi.Output[str]
    """The network's id, known once private services access is there."""

    def build(self, args: NodeNetworkArgs) -> None:
        """Make network, subnet, firewall, and what else is asked for."""
        names = args.names
        network = gcp.compute.Network(
            names("nodes"),
            project=args.project,
            auto_create_subnetworks=False,
            routing_mode="REGIONAL",
            mtu=args.mtu,
            description=args.mark,
            opts=self.child(),
        )
        subnet = gcp.compute.Subnetwork(
            names("nodes"),
            project=args.project,
            region=args.region,
            network=network.id,
            ip_cidr_range=args.cidr,
            description=args.mark,
            private_ip_google_access=True,
            opts=self.child(),
        )
        allow_internal(self, args, names("nodes-internal"), network.id, [args.cidr])
        if args.ssh_from:
            gcp.compute.Firewall(
                names("nodes-ssh"),
                project=args.project,
                network=network.id,
                description=args.mark,
                direction="INGRESS",
                source_ranges=list(args.ssh_from),
                target_tags=[args.ssh_tag],
                allows=[gcp.compute.FirewallAllowArgs(protocol="tcp", ports=[SSH_PORT])],
                opts=self.child(),
            )
        if args.let_in:
            allow_internal(self, args, names("nodes-sites"), network.id, args.let_in)
        if args.gateway_tag is not None:
            # WireGuard answers nobody without a key, wherever he is.
            gcp.compute.Firewall(
                names("nodes-tunnel"),
                project=args.project,
                network=network.id,
                description=args.mark,
                direction="INGRESS",
                source_ranges=[EVERYWHERE],
                target_tags=[args.gateway_tag],
                allows=[gcp.compute.FirewallAllowArgs(protocol="udp", ports=[str(TUNNEL_PORT)])],
                opts=self.child(),
            )
        if args.nat:
            self._nat(args, network, subnet)
        self.network_id = network.id
        self.subnet_id = subnet.id
        self.peered_network_id = network.id
        if args.peering is not None:
            peered = self._peer(args, args.peering, network)
            self.peered_network_id = pulumi.Output.all(network.id, peered.id).apply(
                lambda known: str(known[0])
            )

    def _nat(
        self,
        args: NodeNetworkArgs,
        network: gcp.compute.Network,
        subnet: gcp.compute.Subnetwork,
    ) -> None:
        router = gcp.compute.Router(
            args.names("nodes"),
            project=args.project,
            region=args.region,
            network=network.id,
            description=args.mark,
            opts=self.child(),
        )
        gcp.compute.RouterNat(
            args.names("nodes"),
            project=args.project,
            region=args.region,
            router=router.name,
            nat_ip_allocate_option="AUTO_ONLY",
            source_subnetwork_ip_ranges_to_nat="LIST_OF_SUBNETWORKS",
            subnetworks=[
                gcp.compute.RouterNatSubnetworkArgs(
                    name=subnet.id, source_ip_ranges_to_nats=["ALL_IP_RANGES"]
                )
            ],
            enable_dynamic_port_allocation=True,
            enable_endpoint_independent_mapping=False,
            log_config=gcp.compute.RouterNatLogConfigArgs(enable=True, filter="ERRORS_ONLY"),
            opts=self.child(),
        )

    def _peer(
        self, args: NodeNetworkArgs, peering: PeeringArgs, network: gcp.compute.Network
    ) -> gcp.servicenetworking.Connection:
        addresses = gcp.compute.GlobalAddress(
            args.names("peering"),
            project=args.project,
            purpose="VPC_PEERING",
            address_type="INTERNAL",
            prefix_length=peering.prefix,
            network=network.id,
            opts=self.child(),
        )
        gcp.compute.Firewall(
            args.names("nodes-lustre"),
            project=args.project,
            network=network.id,
            description=args.mark,
            direction="INGRESS",
            source_ranges=[pulumi.Output.concat(addresses.address, "/", str(peering.prefix))],
            allows=[gcp.compute.FirewallAllowArgs(protocol="tcp", ports=[str(peering.port)])],
            opts=self.child(),
        )
        return gcp.servicenetworking.Connection(
            args.names("peering"),
            network=network.id,
            service=peering.service,
            reserved_peering_ranges=[addresses.name],
            opts=self.child(),
        )


class FabricSubnetArgs(Args, frozen=True, kw_only=True):
    """One subnet."""

    key: str
    cidr: str


class FabricNetworkArgs(Args, frozen=True, kw_only=True):
    """A network that only GPU traffic uses."""

    names: Names
    project: str
    region: str
    mark: str
    key: str
    mtu: int | None
    profile: str | None
    """Network profile: RoCE of a zone; None: an ordinary network of gVNICs."""
    subnets: tuple[FabricSubnetArgs, ...]


class FabricNetwork(Component[FabricNetworkArgs]):
    """A network of a fabric: no way in from elsewhere, no way out."""

    kind = "gcp:FabricNetwork"
    network_id: pulumi.Output[str]
    subnet_ids: dict[str, pulumi.Output[str]]

    def build(self, args: FabricNetworkArgs) -> None:
        """Make the network and a subnet for each NIC."""
        network = gcp.compute.Network(
            args.names(args.key),
            project=args.project,
            auto_create_subnetworks=False,
            routing_mode="REGIONAL",
            mtu=args.mtu,
            description=args.mark,
            network_profile=args.profile,
            opts=self.child(),
        )
        self.network_id = network.id
        self.subnet_ids = {
            subnet.key: gcp.compute.Subnetwork(
                args.names(subnet.key),
                project=args.project,
                region=args.region,
                network=network.id,
                ip_cidr_range=subnet.cidr,
                description=args.mark,
                opts=self.child(),
            ).id
            for subnet in args.subnets
        }
        if args.profile is None:  # VPC firewall rules don't exist in networks of a RoCE profile
            cidrs = [subnet.cidr for subnet in args.subnets]
            name = args.names(f"{args.key}-internal")
            allow_internal(self, args, name, network.id, cidrs)


def allow_internal(
    component: Component[NodeNetworkArgs] | Component[FabricNetworkArgs],
    args: NodeNetworkArgs | FabricNetworkArgs,
    name: str,
    network: pulumi.Input[str],
    cidrs: Sequence[str],
) -> None:
    """Make the rule that lets the nodes of a network reach each other."""
    gcp.compute.Firewall(
        name,
        project=args.project,
        network=network,
        description=args.mark,
        direction="INGRESS",
        source_ranges=list(cidrs),
        allows=[gcp.compute.FirewallAllowArgs(protocol="all")],
        opts=component.child(),
    )


def existing_subnets(
    network: str, *, project: str, region: str, keys: Sequence[str]
) -> dict[str, pulumi.Output[str]]:
    """Return the subnets of a network that exists: its own in the region, in order of their names.

    Raises:
        ValueError: it has fewer than there are keys; told when Google has answered.
    """
    name = network.rpartition("/")[2]
    owner = network.split("/")[1] if network.startswith("projects/") else project
    found = gcp.compute.get_network_output(name=name, project=owner)

    def nth(links: Sequence[str], number: int) -> str:
        here = sorted(link for link in links if f"/regions/{region}/" in link)
        if len(here) < len(keys):
            message = f"network {network} has {len(here)} subnets in {region}, not {len(keys)}"
            raise ValueError(message)
        return here[number]

    return {
        key: pulumi.Output.all(found, number).apply(
            lambda both: nth(both[0].subnetworks_self_links, both[1])
        )
        for number, key in enumerate(keys)
    }


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
