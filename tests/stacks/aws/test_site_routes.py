"""Links to other sites: who may come in, and a gateway that every node's packets find."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.stacks.recorded_graph import Graph

from .conftest import BASE

Ask = Callable[..., Graph]
LINKED = BASE.replace(
    "pools:\n  head: {site: east, role: controller, machine: m7i.4xlarge}",
    "  hall: {provider: bare-metal, ssh: {user: ops}, network: {cidr: 10.20.0.0/16}}\n"
    "links: [{between: [hall, east]}]\n"
    "pools:\n  head: {site: hall, role: controller, hosts: head01}\n"
    "  gate: {site: east, role: login, machine: m7i.xlarge}",
)


def rules(graph: Graph) -> list[dict[str, Any]]:
    found = graph.of_type("SecurityGroupIngressRule")
    return [rule.inputs for rule in found if "cidrIpv4" in rule.inputs]


def test_a_tunnel_gives_its_gateway_an_address_and_a_port_and_no_others(graph: Ask) -> None:
    made = graph(LINKED)
    [address] = made.of_type("EipAssociation")
    assert address.inputs["instanceId"] == "${Instance/demo-east-gate.id}"
    [udp] = [rule for rule in rules(made) if rule["ipProtocol"] == "udp"]
    assert (udp["cidrIpv4"], udp["fromPort"], udp["toPort"]) == ("0.0.0.0/0", 51820, 51820)
    groups = {
        t.name.split("-")[2]: t.inputs["networkInterfaces"][0]["securityGroups"]
        for t in made.of_type("LaunchTemplate")
    }
    assert "${SecurityGroup/demo-east-gateway.id}" in groups["gate"]
    assert "${SecurityGroup/demo-east-gateway.id}" not in groups["train"]


def test_only_the_gateway_takes_packets_that_are_not_its_own(graph: Ask) -> None:
    checks = {
        node.name: node.inputs.get("sourceDestCheck", True)
        for node in graph(LINKED).of_type("Instance")
    }
    assert checks == {
        "demo-east-gate": False,
        "demo-east-train001": True,
        "demo-east-train002": True,
    }


def test_every_route_table_leads_to_the_other_site_through_the_gateway(graph: Ask) -> None:
    made = graph(LINKED)
    routes = {
        route.inputs["routeTableId"]: route.inputs["networkInterfaceId"]
        for route in made.of_type("Route")
        if route.inputs["destinationCidrBlock"] == "10.20.0.0/16"
    }
    tables = {f"${{RouteTable/demo-east-{name}.id}}" for name in ("private", "public")}
    assert set(routes) == tables
    assert set(routes.values()) == {"${Instance/demo-east-gate.primaryNetworkInterfaceId}"}


def test_nodes_of_the_other_site_may_come_in_over_any_link(graph: Ask) -> None:
    for text in (LINKED, LINKED.replace("[hall, east]}", "[hall, east], via: vpn}")):
        everything = [rule for rule in rules(graph(text)) if rule["ipProtocol"] == "-1"]
        assert [rule["cidrIpv4"] for rule in everything] == ["10.20.0.0/16"]


def test_a_route_that_exists_makes_no_gateway(graph: Ask) -> None:
    made = graph(LINKED.replace("[hall, east]}", "[hall, east], via: vpn}"))
    assert made.of_type("EipAssociation") == ()
    assert not [rule for rule in rules(made) if rule["ipProtocol"] == "udp"]
    to_hall = [r for r in made.of_type("Route") if r.inputs["destinationCidrBlock"] != "0.0.0.0/0"]
    assert to_hall == []
