"""Links to other sites: who may come in, and a gateway that every node's packets find."""

from __future__ import annotations

from typing import Any

from tests.stacks.recorded_graph import Graph

from gcluster.schemas.catalog import load_catalog
from gcluster.stacks.azure.program.site import program
from gcluster.stacks.pulumi.recording.record import record

from .recorded_cases import parsed

SPEC = """
apiVersion: gcluster/v1
name: demo
sites:
  hall: {provider: bare-metal, ssh: {user: ops}, network: {cidr: 10.20.0.0/16}}
  east:
    provider: azure
    subscription: 11111111-2222-3333-4444-555555555555
    region: eastus
    network: {cidr: 10.40.0.0/16, admin_cidrs: [192.0.2.0/24]}
links: [{between: [hall, east]}]
pools:
  head: {site: hall, role: controller, hosts: [{name: head01, address: 10.20.0.1}]}
  gate: {site: east, role: login, machine: Standard_D8s_v5}
  train: {site: east, machine: Standard_ND96isr_H100_v5, count: 1}
scheduler: {type: slurm}
"""


def graph(text: str = SPEC) -> Graph:
    spec = parsed(text)
    run = program(spec, "east", load_catalog(), None)
    return Graph(record(run, project="gcluster-demo", stack="east", preview=False))


def rules(made: Graph, what: str) -> dict[str, dict[str, Any]]:
    [group] = [g for g in made.of_type("NetworkSecurityGroup") if g.name.endswith(what)]
    return {rule["name"]: rule for rule in group.inputs.get("securityRules", [])}


def test_the_gateway_has_an_address_of_its_own_and_forwards() -> None:
    made = graph()
    [interface] = made.of_type("NetworkInterface")
    assert interface.inputs["enableIPForwarding"] is True
    [part] = interface.inputs["ipConfigurations"]
    assert part["publicIPAddress"] == {"id": "${PublicIPAddress/demo-east-gate.id}"}


def test_the_nodes_subnets_lead_to_the_other_site_through_the_gateway() -> None:
    made = graph()
    [route] = made.of_type("Route")
    assert route.inputs["addressPrefix"] == "10.20.0.0/16"
    assert route.inputs["nextHopType"] == "VirtualAppliance"
    tables = {s.name.split("-")[2]: "routeTable" in s.inputs for s in made.of_type("Subnet")}
    assert tables == {"compute": True, "egress": True, "storage": False}


def test_the_tunnels_port_is_open_at_doors_and_the_other_sites_nodes_come_in() -> None:
    made = graph()
    access, closed = rules(made, "access"), rules(made, "closed")
    assert list(access) == ["ssh-from-admins", "other-sites", "tunnels"]
    assert (access["tunnels"]["protocol"], access["tunnels"]["destinationPortRange"]) == (
        "Udp",
        "51820",
    )
    assert list(closed) == ["other-sites"]
    assert closed["other-sites"]["sourceAddressPrefixes"] == ["10.20.0.0/16"]


def test_a_route_that_exists_makes_no_gateway() -> None:
    made = graph(SPEC.replace("[hall, east]}", "[hall, east], via: vpn}"))
    assert made.of_type("Route") == ()
    assert made.of_type("RouteTable") == ()
    assert list(rules(made, "access")) == ["ssh-from-admins", "other-sites"]
