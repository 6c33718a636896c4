"""The virtual network: three subnets, who may come in, the one way out, and names."""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
from pulumi_azure_native import network, privatedns

from ....schemas.derived.links import TUNNEL_PORT
from ...pulumi.component import KEPT, Args, Component
from ...pulumi.names import Names
from ..plan.types import NetworkPlan, SubnetName

_EVERYWHERE = "global"
"""Location of private DNS zones."""


class NetworkArgs(Args, frozen=True, kw_only=True):
    """What a network is made from."""

    names: Names
    region: str
    resource_group: pulumi.Input[str]
    base_group: pulumi.Input[str]
    """Resource group of the network itself, which may be kept."""
    plan: NetworkPlan
    has_gateway: bool
    """Tunnels from other sites end here, so that nodes need routes to their gateway."""


class Network(Component[NetworkArgs]):
    """A virtual network with compute, storage and egress subnets, or one that exists."""

    kind = "azure:Network"
    vnet_id: pulumi.Output[str]
    subnet_ids: dict[str, pulumi.Output[str]]
    closed_group_id: pulumi.Output[str]
    """Security group that lets in nothing from outside the network."""
    access_group_id: pulumi.Output[str]
    """Security group that lets in SSH from the admins' networks."""
    route_table: pulumi.Output[str]
    """Name of the nodes' routes to other sites; "" without a gateway."""

    def build(self, args: NetworkArgs) -> None:
        """Make it."""
        self.closed_group_id = self._group(args, "closed", self._sites(args)).id
        doors = [*self._ssh(args), *self._sites(args), *self._tunnels(args)]
        self.access_group_id = self._group(args, "access", doors).id
        self.route_table = pulumi.Output.from_input("")
        plan = args.plan
        if plan.existing:
            self.vnet_id = pulumi.Output.from_input(plan.existing)
            self.subnet_ids = {
                subnet.name: pulumi.Output.from_input(subnet.existing) for subnet in plan.subnets
            }
            return
        options = self.child(KEPT if args.plan.kept else None)
        vnet = network.VirtualNetwork(
            args.names("vnet"),
            resource_group_name=args.base_group,
            location=args.region,
            address_space=network.AddressSpaceArgs(address_prefixes=[args.plan.cidr]),
            opts=options,
        )
        self.vnet_id = vnet.id
        self.subnet_ids = self._subnets(args, vnet)

    def _group(
        self, args: NetworkArgs, what: str, rules: Sequence[network.SecurityRuleArgs]
    ) -> network.NetworkSecurityGroup:
        """Azure's own last rules let the network in and shut out the rest."""
        return network.NetworkSecurityGroup(
            args.names(what, kind="network-security-group"),
            resource_group_name=args.resource_group,
            location=args.region,
            security_rules=list(rules),
            opts=self.child(),
        )

    def _ssh(self, args: NetworkArgs) -> list[network.SecurityRuleArgs]:
        if not args.plan.admin_cidrs:
            return []
        why = "SSH of login and controller machines"
        return [_rule("ssh-from-admins", 100, why, list(args.plan.admin_cidrs), ("Tcp", "22"))]

    def _sites(self, args: NetworkArgs) -> list[network.SecurityRuleArgs]:
        why = "Nodes of the cluster's other sites"
        return (
            [_rule("other-sites", 110, why, list(args.plan.allowed_networks))]
            if args.plan.allowed_networks
            else []
        )

    def _tunnels(self, args: NetworkArgs) -> list[network.SecurityRuleArgs]:
        """WireGuard only responds to known keys, from any address."""
        if not args.has_gateway:
            return []
        why = "Tunnels from the cluster's other sites"
        return [_rule("tunnels", 120, why, ["0.0.0.0/0"], ("Udp", str(TUNNEL_PORT)))]

    def _routes(self, args: NetworkArgs) -> network.SubResourceArgs | None:
        """Make the table of routes to other sites; the routes follow once the gateway is there."""
        if not args.has_gateway:
            return None
        table = network.RouteTable(
            args.names("sites"),
            resource_group_name=args.resource_group,
            location=args.region,
            opts=self.child(),
        )
        self.route_table = table.name
        return network.SubResourceArgs(id=table.id)

    def _subnets(
        self, args: NetworkArgs, vnet: network.VirtualNetwork
    ) -> dict[str, pulumi.Output[str]]:
        """Create them one after the other: Azure changes one subnet of a network at a time.

        The storage subnet depends on nothing that `down` removes. Managed Lustre calls Azure's
        services itself, so that subnet keeps Azure's default outbound access; it has no machine of
        ours.
        """
        cidrs = {subnet.name: subnet.cidr for subnet in args.plan.subnets}
        storage = network.Subnet(
            args.names("storage"),
            resource_group_name=args.base_group,
            virtual_network_name=vnet.name,
            address_prefix=cidrs["storage"],
            default_outbound_access=True,
            private_endpoint_network_policies="Disabled",
            opts=self.child(KEPT if args.plan.kept else None),
        )
        made, last = {"storage": storage.id}, storage
        gateway = self._way_out(args) if args.plan.nat else None
        table = self._routes(args)
        groups: dict[SubnetName, pulumi.Output[str]] = {
            "compute": self.closed_group_id,
            "egress": self.access_group_id,
        }
        for name, group in groups.items():
            last = network.Subnet(
                args.names(name),
                resource_group_name=args.base_group,
                virtual_network_name=vnet.name,
                address_prefix=cidrs[name],
                default_outbound_access=False,
                nat_gateway=gateway,
                route_table=None if table is None else network.RouteTableArgs(id=table.id),
                network_security_group=network.NetworkSecurityGroupArgs(id=group),
                opts=self.child(pulumi.ResourceOptions(depends_on=[last])),
            )
            made[name] = last.id
        return made

    def _way_out(self, args: NetworkArgs) -> network.SubResourceArgs:
        address = network.PublicIPAddress(
            args.names("nat"),
            resource_group_name=args.resource_group,
            location=args.region,
            sku=network.PublicIPAddressSkuArgs(name="Standard"),
            public_ip_allocation_method="Static",
            opts=self.child(),
        )
        gateway = network.NatGateway(
            args.names("nat"),
            resource_group_name=args.resource_group,
            location=args.region,
            sku=network.NatGatewaySkuArgs(name="Standard"),
            public_ip_addresses=[network.SubResourceArgs(id=address.id)],
            opts=self.child(),
        )
        return network.SubResourceArgs(id=gateway.id)


def _rule(
    name: str,
    priority: int,
    why: str,
    sources: list[str],
    to: tuple[str, str] = ("*", "*"),
) -> network.SecurityRuleArgs:
    """Return a rule that lets in from networks; `to` is a protocol and a port."""
    return network.SecurityRuleArgs(
        name=name,
        description=why,
        priority=priority,
        direction="Inbound",
        access="Allow",
        protocol=to[0],
        source_address_prefixes=sources,
        source_port_range="*",
        destination_address_prefix="*",
        destination_port_range=to[1],
    )


class DnsArgs(Args, frozen=True, kw_only=True):
    """What names are made from."""

    names: Names
    resource_group: pulumi.Input[str]
    """Of the zone, also where it exists."""
    domain: str
    zone: str = ""
    """Name of a zone that exists; "": one is made for the domain."""
    vnet_id: pulumi.Input[str]
    link: bool = True
    """Make machines of the network query the zone; for an existing network its owner decides."""
    addresses: dict[str, pulumi.Input[str]]
    """Name of a login or controller machine -> private address."""


class Dns(Component[DnsArgs]):
    """A private zone with the names of login and controller machines."""

    kind = "azure:Dns"
    zone_name: pulumi.Output[str]

    def build(self, args: DnsArgs) -> None:
        """Make the zone or use the one that exists; link it; write the names."""
        if args.zone:
            self.zone_name = pulumi.Output.from_input(args.zone)
        else:
            zone = privatedns.PrivateZone(
                args.names("zone"),
                resource_group_name=args.resource_group,
                private_zone_name=args.domain,
                location=_EVERYWHERE,
                opts=self.child(),
            )
            self.zone_name = zone.name
        if args.link:
            privatedns.VirtualNetworkLink(
                args.names("zone-link"),
                resource_group_name=args.resource_group,
                private_zone_name=self.zone_name,
                location=_EVERYWHERE,
                registration_enabled=False,
                virtual_network=privatedns.SubResourceArgs(id=args.vnet_id),
                opts=self.child(),
            )
        for host, address in args.addresses.items():
            privatedns.PrivateRecordSet(
                args.names(f"name-{host}"),
                resource_group_name=args.resource_group,
                private_zone_name=self.zone_name,
                record_type="A",
                relative_record_set_name=_below(host, args.domain, args.zone),
                ttl=300,
                a_records=[privatedns.ARecordArgs(ipv4_address=address)],
                opts=self.child(),
            )


def _below(host: str, domain: str, zone: str) -> str:
    """Return the record's name in the zone: the domain may lie deeper than the zone."""
    deeper = domain.removesuffix(zone).rstrip(".") if zone else ""
    return f"{host}.{deeper}" if deeper else host


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
