"""The site's VPC: private subnets of the nodes, a public one, the ways out, and names."""

from __future__ import annotations

import pulumi
import pulumi_aws as aws

from ...pulumi.component import Args, Component
from ...pulumi.names import Names
from ..plan.types import DnsPlan, NetworkPlan, SubnetPlan

EVERYWHERE = "0.0.0.0/0"


class NetworkArgs(Args, frozen=True):
    """What a network is made from."""

    names: Names
    region: str
    plan: NetworkPlan


class Network(Component[NetworkArgs]):
    """A VPC with a private subnet in each zone, or one that exists.

    Nodes reach the outside through a NAT gateway, and S3 through an endpoint of its own: data
    neither leaves AWS nor pays for the NAT.
    """

    kind = "aws:Network"
    vpc_id: pulumi.Output[str]
    subnets: dict[str, pulumi.Output[str]]
    """Zone ID ("" where AWS chose it) -> private subnet."""
    public_subnet_id: pulumi.Output[str]
    """"" where there is none."""
    tables: dict[str, pulumi.Output[str]]
    """Route tables that are made, by what they are called; none of a network that exists."""

    def build(self, args: NetworkArgs) -> None:
        """Make the network; of one that exists nothing is made or changed."""
        plan = args.plan
        self.tables = {}
        self.internet: aws.ec2.InternetGateway | None = None
        """What public addresses of the network need; of one that exists it is there."""
        if plan.vpc is not None:
            self.vpc_id = pulumi.Output.from_input(plan.vpc)
            self.subnets = {"": pulumi.Output.from_input(plan.compute_subnet or "")}
            self.public_subnet_id = pulumi.Output.from_input(plan.public_subnet or "")
            return
        vpc = aws.ec2.Vpc(
            args.names("vpc"),
            cidr_block=plan.cidr,
            enable_dns_support=True,
            enable_dns_hostnames=True,
            tags={"Name": args.names("vpc")},
            opts=self.child(),
        )
        self.vpc_id = vpc.id
        gateway = self.internet = aws.ec2.InternetGateway(
            args.names("internet"),
            vpc_id=vpc.id,
            tags={"Name": args.names("internet")},
            opts=self.child(),
        )
        self.public_subnet_id = self._public(args, vpc, gateway)
        private = self._private_routes(args, vpc, gateway)
        self.subnets = {
            subnet.zone or "": self._subnet(args, vpc, subnet, private).id
            for subnet in plan.compute
        }
        aws.ec2.VpcEndpoint(
            args.names("s3"),
            vpc_id=vpc.id,
            service_name=f"com.amazonaws.{args.region}.s3",
            vpc_endpoint_type="Gateway",
            route_table_ids=[private.id],
            tags={"Name": args.names("s3")},
            opts=self.child(),
        )

    def subnet(self, zone: str | None) -> pulumi.Output[str]:
        """Return the private subnet in a zone; of a network that exists, the one that it has."""
        return self.subnets.get(zone or "") or next(iter(self.subnets.values()))

    def _public(
        self, args: NetworkArgs, vpc: aws.ec2.Vpc, gateway: aws.ec2.InternetGateway
    ) -> pulumi.Output[str]:
        if args.plan.public is None:
            return pulumi.Output.from_input("")
        table = self._table(args, vpc, "public")
        self._default_route(args, table, "public", gateway_id=gateway.id)
        return self._subnet(args, vpc, args.plan.public, table).id

    def _private_routes(
        self, args: NetworkArgs, vpc: aws.ec2.Vpc, gateway: aws.ec2.InternetGateway
    ) -> aws.ec2.RouteTable:
        table = self._table(args, vpc, "private")
        if not args.plan.nat:
            return table
        address = aws.ec2.Eip(
            args.names("nat"),
            domain="vpc",
            tags={"Name": args.names("nat")},
            opts=self.child(pulumi.ResourceOptions(depends_on=[gateway])),
        )
        nat = aws.ec2.NatGateway(
            args.names("nat"),
            allocation_id=address.id,
            subnet_id=self.public_subnet_id,
            tags={"Name": args.names("nat")},
            opts=self.child(pulumi.ResourceOptions(depends_on=[gateway])),
        )
        self._default_route(args, table, "private", nat_gateway_id=nat.id)
        return table

    def _table(self, args: NetworkArgs, vpc: aws.ec2.Vpc, what: str) -> aws.ec2.RouteTable:
        name = args.names(what)
        made = aws.ec2.RouteTable(name, vpc_id=vpc.id, tags={"Name": name}, opts=self.child())
        self.tables[what] = made.id
        return made

    def _default_route(
        self,
        args: NetworkArgs,
        table: aws.ec2.RouteTable,
        what: str,
        *,
        gateway_id: pulumi.Output[str] | None = None,
        nat_gateway_id: pulumi.Output[str] | None = None,
    ) -> None:
        aws.ec2.Route(
            args.names(f"{what}-out"),
            route_table_id=table.id,
            destination_cidr_block=EVERYWHERE,
            gateway_id=gateway_id,
            nat_gateway_id=nat_gateway_id,
            opts=self.child(),
        )

    def _subnet(
        self, args: NetworkArgs, vpc: aws.ec2.Vpc, plan: SubnetPlan, table: aws.ec2.RouteTable
    ) -> aws.ec2.Subnet:
        name = args.names(plan.what)
        subnet = aws.ec2.Subnet(
            name,
            vpc_id=vpc.id,
            cidr_block=plan.cidr,
            availability_zone_id=plan.zone,
            map_public_ip_on_launch=False,
            tags={"Name": name},
            opts=self.child(),
        )
        aws.ec2.RouteTableAssociation(
            name, subnet_id=subnet.id, route_table_id=table.id, opts=self.child()
        )
        return subnet


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
