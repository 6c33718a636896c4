"""The site's VCN: a private subnet of the nodes, a public one, and the ways out."""

from __future__ import annotations

import pulumi
import pulumi_oci as oci

from ...pulumi.component import Args, Component
from ...pulumi.names import Names
from ..plan.types import DnsPlan, NetworkPlan, SubnetPlan

EVERYWHERE = "0.0.0.0/0"
_ALL_SERVICES = "All .* Services In Oracle Services Network"
"""Name of the service entry for all services of a region (ListServices)."""


class NetworkArgs(Args, frozen=True):
    """What a network is made from."""

    names: Names
    compartment: str
    plan: NetworkPlan


class Network(Component[NetworkArgs]):
    """A VCN with a private and a public subnet, or one that exists.

    Nodes reach the outside through a NAT gateway, and OCI's own services through a service gateway:
    data neither leaves OCI nor passes the NAT. Security groups alone define the access: the lists
    of the subnets are empty, and so is the VCN's default one, which OCI creates with SSH open to
    the world.
    """

    kind = "oci:Network"
    vcn_id: pulumi.Output[str]
    compute_subnet_id: pulumi.Output[str]
    public_subnet_id: pulumi.Output[str]
    """"" where there is none."""

    def build(self, args: NetworkArgs) -> None:
        """Make the network; of one that exists nothing is made or changed."""
        plan = args.plan
        if plan.vcn is not None or plan.compute is None or plan.public is None:
            self.vcn_id = pulumi.Output.from_input(plan.vcn or "")
            self.compute_subnet_id = pulumi.Output.from_input(plan.compute_subnet or "")
            self.public_subnet_id = pulumi.Output.from_input(plan.public_subnet or "")
            return
        vcn = oci.core.Vcn(
            args.names("vcn"),
            compartment_id=args.compartment,
            cidr_blocks=[plan.cidr],
            display_name=args.names("vcn"),
            dns_label=args.names("vcn", kind="label"),
            opts=self.child(),
        )
        self.vcn_id = vcn.id
        oci.core.DefaultSecurityList(
            args.names("default"),
            manage_default_resource_id=vcn.default_security_list_id,
            compartment_id=args.compartment,
            display_name=args.names("default"),
            ingress_security_rules=[],
            egress_security_rules=[],
            opts=self.child(),
        )
        nothing = oci.core.SecurityList(
            args.names("nothing"),
            compartment_id=args.compartment,
            vcn_id=vcn.id,
            display_name=args.names("nothing"),
            ingress_security_rules=[],
            egress_security_rules=[],
            opts=self.child(),
        )
        public, private = self._public_routes(args, vcn), self._private_routes(args, vcn)
        self.compute_subnet_id = self._subnet(args, plan.compute, vcn, private, nothing)
        self.public_subnet_id = self._subnet(args, plan.public, vcn, public, nothing)

    def _public_routes(self, args: NetworkArgs, vcn: oci.core.Vcn) -> pulumi.Output[str]:
        internet = oci.core.InternetGateway(
            args.names("internet"),
            compartment_id=args.compartment,
            vcn_id=vcn.id,
            display_name=args.names("internet"),
            opts=self.child(),
        )
        return self._table(args, vcn, "public", [_everywhere(internet.id)])

    def _private_routes(self, args: NetworkArgs, vcn: oci.core.Vcn) -> pulumi.Output[str]:
        rules = [self._services(args, vcn)]
        if args.plan.nat:
            nat = oci.core.NatGateway(
                args.names("nat"),
                compartment_id=args.compartment,
                vcn_id=vcn.id,
                display_name=args.names("nat"),
                opts=self.child(),
            )
            rules.append(_everywhere(nat.id))
        return self._table(args, vcn, "private", rules)

    def _services(self, args: NetworkArgs, vcn: oci.core.Vcn) -> oci.core.RouteTableRouteRuleArgs:
        """Make the way to OCI's own services, and return its route."""
        found = oci.core.get_services_output(
            filters=[
                oci.core.GetServicesFilterArgs(name="name", values=[_ALL_SERVICES], regex=True)
            ],
            opts=pulumi.InvokeOutputOptions(parent=self),
        )
        gateway = oci.core.ServiceGateway(
            args.names("services"),
            compartment_id=args.compartment,
            vcn_id=vcn.id,
            display_name=args.names("services"),
            services=[
                oci.core.ServiceGatewayServiceArgs(
                    service_id=found.services.apply(lambda services: services[0].id)
                )
            ],
            opts=self.child(),
        )
        return oci.core.RouteTableRouteRuleArgs(
            network_entity_id=gateway.id,
            destination=found.services.apply(lambda services: services[0].cidr_block),
            destination_type="SERVICE_CIDR_BLOCK",
        )

    def _table(
        self,
        args: NetworkArgs,
        vcn: oci.core.Vcn,
        what: str,
        rules: list[oci.core.RouteTableRouteRuleArgs],
    ) -> pulumi.Output[str]:
        return oci.core.RouteTable(
            args.names(what),
            compartment_id=args.compartment,
            vcn_id=vcn.id,
            display_name=args.names(what),
            route_rules=rules,
            opts=self.child(),
        ).id

    def _subnet(
        self,
        args: NetworkArgs,
        plan: SubnetPlan,
        vcn: oci.core.Vcn,
        table_id: pulumi.Output[str],
        nothing: oci.core.SecurityList,
    ) -> pulumi.Output[str]:
        return oci.core.Subnet(
            args.names(f"{plan.what}-subnet"),
            compartment_id=args.compartment,
            vcn_id=vcn.id,
            cidr_block=plan.cidr,
            display_name=args.names(plan.what),
            dns_label=plan.what,
            prohibit_public_ip_on_vnic=not plan.is_public,
            prohibit_internet_ingress=not plan.is_public,
            route_table_id=table_id,
            security_list_ids=[nothing.id],
            opts=self.child(),
        ).id


def _everywhere(gateway_id: pulumi.Output[str]) -> oci.core.RouteTableRouteRuleArgs:
    return oci.core.RouteTableRouteRuleArgs(
        network_entity_id=gateway_id, destination=EVERYWHERE, destination_type="CIDR_BLOCK"
    )


_TTL_S = 60
"""A replaced node has another address: its name follows within a minute."""


class DnsArgs(Args, frozen=True):
    """What the records are made from."""

    names: Names
    plan: DnsPlan
    addresses: dict[str, pulumi.Output[str]]
    """Node -> private address, of nodes created one by one: the program has no others."""


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
