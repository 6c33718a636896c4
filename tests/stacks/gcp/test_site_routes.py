"""Links to other sites: who may come in, and a gateway that every node's packets find."""

from __future__ import annotations

from gcp_cases import MACHINE, TEMPLATE, items, recorded, spec_from
from tests.stacks.recorded_graph import Graph

SPEC = """
apiVersion: gcluster/v1
name: demo
sites:
  hall: {provider: bare-metal, ssh: {user: ops}, network: {cidr: 10.20.0.0/16}}
  east: {provider: gcp, project: acme-ml, region: us-central1, zone: us-central1-a,
    image: projects/p/global/images/i, network: {cidr: 10.40.0.0/16, admin_cidrs: [192.0.2.0/24]}}
links: [{between: [hall, east]}]
pools:
  head: {site: hall, role: controller, hosts: head01}
  gate: {site: east, role: login, machine: n2-standard-8}
  train: {site: east, machine: a3-highgpu-1g, count: 1}
scheduler: {type: slurm}
"""


def graph(text: str = SPEC) -> Graph:
    return Graph(recorded(spec_from(text)))


def test_the_gateway_keeps_its_address_and_forwards_and_no_others_does() -> None:
    made = graph()
    [gate] = [m for m in made.of_type(MACHINE) if m.name == "demo-east-gate"]
    [door] = items(gate.inputs["networkInterfaces"])
    assert items(door["accessConfigs"])[0]["natIp"] == "${Address/demo-east-address-gate.address}"
    forwards = {
        made.tags(t)["gcluster-pool"]: t.inputs.get("canIpForward", False)
        for t in made.of_type(TEMPLATE)
    }
    assert forwards == {"gate": True, "train": False}


def test_a_route_leads_to_the_other_site_through_the_gateway() -> None:
    [route] = graph().of_type("Route")
    assert route.inputs["destRange"] == "10.20.0.0/16"
    assert route.inputs["nextHopInstance"] == "${InstanceFromTemplate/demo-east-gate.selfLink}"


def test_the_tunnels_port_is_open_at_the_gateway_and_the_other_sites_nodes_come_in() -> None:
    made = graph()
    tunnel = made.named("demo-east-nodes-tunnel").inputs
    assert tunnel["targetTags"] == ["demo-east-gateway"]
    assert items(tunnel["allows"]) == [{"protocol": "udp", "ports": ["51820"]}]
    assert made.named("demo-east-nodes-sites").inputs["sourceRanges"] == ["10.20.0.0/16"]


def test_a_route_that_exists_makes_no_gateway() -> None:
    made = graph(SPEC.replace("[hall, east]}", "[hall, east], via: direct-connect}"))
    assert made.of_type("Route") == ()
    assert [f.name for f in made.of_type("Firewall") if f.name.endswith("tunnel")] == []
    assert made.named("demo-east-nodes-sites").inputs["sourceRanges"] == ["10.20.0.0/16"]
