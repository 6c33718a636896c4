"""The networks of a Google Cloud site, as components: the nodes' VPC, the fabrics', and names."""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
import pulumi_gcp as gcp

from ....schemas.derived.links import TUNNEL_PORT
from ...pulumi.component import Args, Component
from ...pulumi.names import Names
from ..plan.fabric import FabricNetworkPlan
from ..plan.facts import facts
from ..plan.layout import DnsPlan, NodeNetworkPlan

SSH_PORT = "22"
EVERYWHERE = "0.0.0.0/0"


class NodeNetworkArgs(Args, frozen=True, kw_only=True):
    """The nodes' own VPC, to be made."""

    names: Names
    project: str
    region: str
    plan: NodeNetworkPlan
    has_gateway: bool
    """Tunnels from other sites end here."""


class NodeNetwork(Component[NodeNetworkArgs]):
    """A VPC with one private subnet; in: its own nodes, and SSH of some; out: through NAT."""

    kind = "gcp:NodeNetwork"
    network_id: pulumi.Output[str]
    network_name: pulumi.Output[str]
    subnet_id: pulumi.Output[str]
    peered_network_id: pulumi.Output[str]
    """The network's id, known once private services access is there."""

    def build(self, args: NodeNetworkArgs) -> None:
        """Create network, subnet, firewall, and what else is needed."""
        names, plan = args.names, args.plan
        network = gcp.compute.Network(
            names("nodes"),
            project=args.project,
            auto_create_subnetworks=False,
            routing_mode="REGIONAL",
            mtu=plan.mtu,
            description=args.names.description,
            opts=self.child(),
        )
        subnet = gcp.compute.Subnetwork(
            names("nodes"),
            project=args.project,
            region=args.region,
            network=network.id,
            ip_cidr_range=plan.cidr,
            description=args.names.description,
            private_ip_google_access=True,
            opts=self.child(),
        )
        allow_internal(self, args, names("nodes-internal"), network.id, [plan.cidr])
        if plan.ssh_from:
            gcp.compute.Firewall(
                names("nodes-ssh"),
                project=args.project,
                network=network.id,
                description=args.names.description,
                direction="INGRESS",
                source_ranges=list(plan.ssh_from),
                target_tags=[names("ssh")],
                allows=[gcp.compute.FirewallAllowArgs(protocol="tcp", ports=[SSH_PORT])],
                opts=self.child(),
            )
        if plan.allowed_networks:
            allow_internal(self, args, names("nodes-sites"), network.id, plan.allowed_networks)
        if args.has_gateway:
            # WireGuard only responds to known keys, from any address.
            gcp.compute.Firewall(
                names("nodes-tunnel"),
                project=args.project,
                network=network.id,
                description=args.names.description,
                direction="INGRESS",
                source_ranges=[EVERYWHERE],
                target_tags=[names("gateway")],
                allows=[gcp.compute.FirewallAllowArgs(protocol="udp", ports=[str(TUNNEL_PORT)])],
                opts=self.child(),
            )
        if plan.nat:
            self._nat(args, network, subnet)
        self.network_id = network.id
        self.network_name = network.name
        self.subnet_id = subnet.id
        self.peered_network_id = network.id
        if plan.peering:
            peered = self._peer(args, network)
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
            description=args.names.description,
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
        self, args: NodeNetworkArgs, network: gcp.compute.Network
    ) -> gcp.servicenetworking.Connection:
        """Make private services access, which Managed Lustre is reached through."""
        known = facts()
        addresses = gcp.compute.GlobalAddress(
            args.names("peering"),
            project=args.project,
            purpose="VPC_PEERING",
            address_type="INTERNAL",
            prefix_length=known.peering_prefix,
            network=network.id,
            opts=self.child(),
        )
        gcp.compute.Firewall(
            args.names("nodes-lustre"),
            project=args.project,
            network=network.id,
            description=args.names.description,
            direction="INGRESS",
            source_ranges=[pulumi.Output.concat(addresses.address, "/", str(known.peering_prefix))],
            allows=[gcp.compute.FirewallAllowArgs(protocol="tcp", ports=[str(known.lustre_port)])],
            opts=self.child(),
        )
        return gcp.servicenetworking.Connection(
            args.names("peering"),
            network=network.id,
            service=known.peering_service,
            reserved_peering_ranges=[addresses.name],
            opts=self.child(),
        )


class FabricNetworkArgs(Args, frozen=True, kw_only=True):
    """A network that only GPU traffic uses."""

    names: Names
    project: str
    region: str
    plan: FabricNetworkPlan


class FabricNetwork(Component[FabricNetworkArgs]):
    """A network of a fabric: no way in from elsewhere, no way out."""

    kind = "gcp:FabricNetwork"
    network_id: pulumi.Output[str]
    subnet_ids: dict[str, pulumi.Output[str]]

    def build(self, args: FabricNetworkArgs) -> None:
        """Make the network and a subnet for each NIC."""
        plan, roce = args.plan, args.plan.roce_zone
        kind = "vpc-roce-metal" if plan.metal else "vpc-roce"
        profile = f"projects/{args.project}/global/networkProfiles/{roce}-{kind}"
        network = gcp.compute.Network(
            args.names(plan.key),
            project=args.project,
            auto_create_subnetworks=False,
            routing_mode="REGIONAL",
            mtu=plan.mtu,
            description=args.names.description,
            network_profile=None if roce is None else profile,
            opts=self.child(),
        )
        self.network_id = network.id
        made = f"projects/{args.project}/regions/{args.region}/subnetworks/default-subnet-1"
        self.subnet_ids = {  # the profile of bare metal brings its one subnet, by that name
            subnet.key: pulumi.Output.concat(made, "-", network.name)
            if subnet.cidr is None
            else gcp.compute.Subnetwork(
                args.names(subnet.key),
                project=args.project,
                region=args.region,
                network=network.id,
                ip_cidr_range=subnet.cidr,
                description=args.names.description,
                opts=self.child(),
            ).id
            for subnet in plan.subnets
        }
        if roce is None:  # VPC firewall rules don't exist in networks of a RoCE profile
            cidrs = [subnet.cidr for subnet in plan.subnets if subnet.cidr is not None]
            name = args.names(f"{plan.key}-internal")
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
        description=args.names.description,
        direction="INGRESS",
        source_ranges=list(cidrs),
        allows=[gcp.compute.FirewallAllowArgs(protocol="all")],
        opts=component.child(),
    )


def existing_subnets(
    network: str, *, project: str, region: str, keys: Sequence[str]
) -> dict[str, pulumi.Output[str]]:
    """Return the subnets of an existing network in the region, in order of their names.

    Raises:
        ValueError: it has fewer than there are keys; raised when Google has responded.
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
    plan: DnsPlan
    addresses: dict[str, pulumi.Output[str]]
    """Host name -> private address."""


class Dns(Component[DnsArgs]):
    """A private zone, and a name for each host."""

    kind = "gcp:Dns"
    zone: pulumi.Output[str]

    def build(self, args: DnsArgs) -> None:
        """Make the zone unless there is one, and the records."""
        project, _, name = (args.plan.zone or "").rpartition("/managedZones/")
        owner = project.removeprefix("projects/") or args.project
        if args.plan.zone is None:
            made = gcp.dns.ManagedZone(
                args.names("names"),
                project=args.project,
                dns_name=f"{args.plan.domain}.",
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
                name=f"{host}.{args.plan.domain}.",
                type="A",
                ttl=TTL_S,
                rrdatas=[address],
                opts=self.child(),
            )


class SiteRoutesArgs(Args, frozen=True, kw_only=True):
    """What the routes to other sites are made from."""

    names: Names
    project: str
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
                description=args.names.description,
                dest_range=cidr,
                next_hop_instance=machine,
                opts=self.child(),
            )
