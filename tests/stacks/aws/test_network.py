"""The network of an AWS site: private nodes, one way out, rules that EFA needs, none too many."""

from __future__ import annotations

from collections.abc import Callable

from tests.stacks.recorded_graph import Graph

from .conftest import BASE

Ask = Callable[..., Graph]


def test_compute_nodes_have_no_public_address(graph: Ask) -> None:
    recorded = graph()
    for template in recorded.of_type("LaunchTemplate"):
        for interface in template.inputs["networkInterfaces"]:
            assert interface.get("associatePublicIpAddress") != "true"
    assert {s.inputs["mapPublicIpOnLaunch"] for s in recorded.of_type("Subnet")} == {False}
    assert recorded.of_type("EipAssociation") == ()
    assert [eip.name for eip in recorded.of_type("Eip")] == ["demo-east-nat"]


def test_a_login_node_that_requests_an_address_has_one_of_its_own(graph: Ask) -> None:
    text = BASE.replace(
        "  train:", "  door: {site: east, role: login, public_address: true}\n  train:"
    )
    recorded = graph(text)
    [association] = recorded.of_type("EipAssociation")
    assert association.inputs["instanceId"] == "${Instance/demo-east-door.id}"
    template = next(t for t in recorded.of_type("LaunchTemplate") if "door" in t.name)
    assert template.inputs["networkInterfaces"][0]["subnetId"] == "${Subnet/demo-east-public.id}"


def test_ssh_is_open_to_the_administrators_alone(graph: Ask) -> None:
    rules = graph().of_type("SecurityGroupIngressRule")
    from_networks = [r.inputs for r in rules if "cidrIpv4" in r.inputs or "cidrIpv6" in r.inputs]
    assert [(r["cidrIpv4"], r["fromPort"], r["toPort"]) for r in from_networks] == [
        ("192.0.2.0/24", 22, 22)
    ]
    assert from_networks[0]["securityGroupId"] == "${SecurityGroup/demo-east-login.id}"


def test_compute_nodes_are_not_in_the_group_that_ssh_reaches(graph: Ask) -> None:
    recorded = graph()
    groups = {
        template.inputs["description"].partition(":")[0]: {
            group
            for interface in template.inputs["networkInterfaces"]
            for group in interface["securityGroups"]
        }
        for template in recorded.of_type("LaunchTemplate")
    }
    assert groups == {
        "head": {"${SecurityGroup/demo-east-nodes.id}", "${SecurityGroup/demo-east-login.id}"},
        "train": {"${SecurityGroup/demo-east-nodes.id}"},
    }


def test_the_nodes_group_lets_all_in_and_out_of_itself_in_rules_of_their_own(graph: Ask) -> None:
    recorded, nodes = graph(), "${SecurityGroup/demo-east-nodes.id}"
    for kind in ("SecurityGroupIngressRule", "SecurityGroupEgressRule"):
        own = [
            rule.inputs
            for rule in recorded.of_type(kind)
            if rule.inputs["securityGroupId"] == nodes
            and rule.inputs.get("referencedSecurityGroupId") == nodes
        ]
        assert [(rule["ipProtocol"], rule.get("fromPort")) for rule in own] == [("-1", None)]


def test_no_group_has_rules_inside_itself(graph: Ask) -> None:
    for group in graph().of_type("SecurityGroup"):
        assert not group.inputs.keys() & {"ingress", "egress"}


def test_nodes_go_out_through_a_nat_and_reach_s3_without_it(graph: Ask) -> None:
    recorded = graph()
    route = recorded.named("demo-east-private-out")
    assert route.inputs["natGatewayId"] == "${NatGateway/demo-east-nat.id}"
    assert "gatewayId" not in route.inputs
    endpoint = recorded.only("VpcEndpoint")
    assert endpoint.inputs["serviceName"] == "com.amazonaws.us-east-1.s3"
    assert endpoint.inputs["routeTableIds"] == ["${RouteTable/demo-east-private.id}"]


def test_with_a_proxy_there_is_no_nat(graph: Ask) -> None:
    text = BASE.replace("    network:", "    proxy: {https: 'http://10.0.0.3:3128'}\n    network:")
    recorded = graph(text)
    assert recorded.of_type("NatGateway") == ()
    assert recorded.of_type("Eip") == ()
    assert [route.name for route in recorded.of_type("Route")] == ["demo-east-public-out"]


def test_a_site_with_bursts_has_an_endpoint_of_ec2_for_the_controller(graph: Ask) -> None:
    recorded = graph(BASE.replace("count: 2", "count: {min: 0, max: 4}"))
    endpoint = recorded.named("demo-east-endpoint-ec2")
    assert endpoint.inputs["vpcEndpointType"] == "Interface"
    assert endpoint.inputs["privateDnsEnabled"] is True


def test_each_further_zone_has_a_subnet_that_stays_when_another_is_named(graph: Ask) -> None:
    def subnets(zones: str) -> dict[str, object]:
        text = BASE.replace("count: 2", f"count: 2, mixed: true, zones: [{zones}]")
        return {s.name: s.inputs["cidrBlock"] for s in graph(text).of_type("Subnet")}

    two, three = subnets("use1-az4, use1-az6"), subnets("use1-az2, use1-az4, use1-az6")
    assert two["demo-east-compute-use1-az4"] == "10.40.0.0/17"
    assert two.items() < three.items()
    assert len(set(three.values())) == len(three) == 4


EXISTING = BASE.replace(
    "network: {cidr: 10.40.0.0/16, admin_cidrs: [192.0.2.0/24]}",
    "network: {vpc: vpc-0a, subnets: {compute: subnet-0a}, security_groups: [sg-0a]}",
)


def test_of_a_network_that_exists_nothing_is_made(graph: Ask) -> None:
    recorded = graph(EXISTING)
    for kind in ("Vpc", "Subnet", "NatGateway", "InternetGateway", "Route", "RouteTable"):
        assert recorded.of_type(kind) == (), kind
    assert recorded.of_type("SecurityGroup") == ()
    for template in recorded.of_type("LaunchTemplate"):
        for interface in template.inputs["networkInterfaces"]:
            assert interface["subnetId"] == "subnet-0a"
            assert interface["securityGroups"] == ["sg-0a"]


def test_a_zone_that_exists_gets_the_records_and_none_is_made(graph: Ask) -> None:
    text = BASE.replace(
        "    network:", "    dns: {zone: Z0ABC, domain: gpu.example.edu}\n    network:"
    )
    recorded = graph(text)
    assert recorded.of_type("Zone") == ()
    records = {r.inputs["name"] for r in recorded.of_type("Record")}
    assert records == {
        "head.gpu.example.edu",
        "train001.gpu.example.edu",
        "train002.gpu.example.edu",
    }
    assert {r.inputs["zoneId"] for r in recorded.of_type("Record")} == {"Z0ABC"}


def test_a_small_network_is_divided_into_subnets_that_aws_makes(graph: Ask) -> None:
    recorded = graph(BASE.replace("10.40.0.0/16", "10.40.0.0/24"))
    cidrs = {subnet.name: subnet.inputs["cidrBlock"] for subnet in recorded.of_type("Subnet")}
    assert cidrs == {
        "demo-east-compute-use1-az4": "10.40.0.0/25",
        "demo-east-public": "10.40.0.240/28",
    }
