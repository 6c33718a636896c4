"""The networks of each fabric, who gets in and what gets out."""

from __future__ import annotations

import msgspec
import pytest
from gcp_cases import TEMPLATE, graph_of, items, recorded, spec_from, spec_of, template
from tests.stacks.recorded_graph import Graph


def test_ssh_is_let_in_from_the_admins_only_and_only_to_logins_and_controllers() -> None:
    graph = graph_of("a3-highgpu-8g")
    rule = graph.named("tcpx-east-nodes-ssh")
    assert rule.inputs["sourceRanges"] == ["192.0.2.0/24"]
    assert rule.inputs["targetTags"] == ["tcpx-east-ssh"]
    tagged = {graph.tags(t)["gcluster-pool"] for t in graph.of_type(TEMPLATE) if "tags" in t.inputs}
    assert tagged == {"head", "login"}


def test_only_the_login_has_a_public_address() -> None:
    graph = graph_of("a3-highgpu-8g")
    public = [
        graph.tags(made)["gcluster-pool"]
        for made in graph.of_type(TEMPLATE)
        if any("accessConfigs" in nic for nic in items(made.inputs["networkInterfaces"]))
    ]
    assert public == ["login"]


@pytest.mark.parametrize(
    ("machine", "networks", "subnets", "mtu"),
    [
        ("a3-highgpu-8g", 5, 5, 8244),
        ("a3-megagpu-8g", 9, 9, 8244),
        ("a3-ultragpu-8g", 3, 10, 8896),
        ("a4-highgpu-8g", 3, 10, 8896),
        ("a4x-highgpu-4g", 3, 6, 8896),
        ("a4x-maxgpu-4g-metal", 3, 2, 8896),
        ("a3-highgpu-1g", 1, 1, None),
    ],
)
def test_a_machine_type_gets_the_networks_of_its_fabric(
    machine: str, networks: int, subnets: int, mtu: int | None
) -> None:
    graph = graph_of(machine)
    assert len(graph.of_type("gcp:compute/network:Network")) == networks
    assert len(graph.of_type("Subnetwork")) == subnets
    assert {n.inputs.get("mtu") for n in graph.of_type("gcp:compute/network:Network")} == {mtu}


@pytest.mark.parametrize(
    ("machine", "kinds"),
    [
        ("a3-highgpu-8g", ["GVNIC"] * 5),
        ("a3-megagpu-8g", ["GVNIC"] * 9),
        ("a3-ultragpu-8g", ["GVNIC"] * 2 + ["MRDMA"] * 8),
        ("a4-highgpu-8g", ["GVNIC"] * 2 + ["MRDMA"] * 8),
        ("a4x-highgpu-4g", ["GVNIC"] * 2 + ["MRDMA"] * 4),
        ("a3-highgpu-4g", ["GVNIC"]),
        ("a2-ultragpu-8g", ["GVNIC"]),
    ],
)
def test_a_machine_has_its_nics_in_order_and_each_in_a_subnet_of_its_own(
    machine: str, kinds: list[str]
) -> None:
    graph = graph_of(machine)
    nics = items(template(graph, "train").inputs["networkInterfaces"])
    assert [nic["nicType"] for nic in nics] == kinds
    assert len({str(nic["subnetwork"]) for nic in nics}) == len(kinds)
    cidrs = [str(s.inputs["ipCidrRange"]) for s in graph.of_type("Subnetwork")]
    assert len(set(cidrs)) == len(cidrs), "addresses of one machine's NICs may not overlap"


def test_bare_metal_has_its_rdma_interfaces_in_the_one_subnet_that_google_makes() -> None:
    """As Cluster Toolkit's a4xmax-bm-slurm-blueprint.yaml has it (June 2026).

    Profile ZONE-vpc-roce-metal, no subnets of ours, eight MRDMA interfaces with IPv6 alone in
    default-subnet-1-NETWORK, after two of the machine's own network.
    """
    graph = graph_of("a4x-maxgpu-4g-metal")
    rdma = graph.named("nvl72-central-gib-metal-rdma-us-central1-b", "gcp:compute/network:Network")
    profile = "projects/acme-ml/global/networkProfiles/us-central1-b-vpc-roce-metal"
    assert rdma.inputs["networkProfile"] == profile
    nics = items(template(graph, "train").inputs["networkInterfaces"])
    assert [nic["nicType"] for nic in nics] == ["IDPF"] * 2 + ["MRDMA"] * 8
    assert [nic.get("stackType") for nic in nics] == [None] * 2 + ["IPV6_ONLY"] * 8
    [subnet] = {str(nic["subnetwork"]) for nic in nics[2:]}
    assert "regions/us-central1/subnetworks/default-subnet-1-" in subnet
    assert "'gpuTopology': '1x72'" in str(graph.only("ResourcePolicy").inputs)


def test_the_rdma_network_has_the_roce_profile_of_its_zone_and_no_firewall_rules() -> None:
    graph = graph_of("a3-ultragpu-8g")
    rdma = graph.named("gib-west-gib-rdma-us-central1-b", "gcp:compute/network:Network")
    profile = "projects/acme-ml/global/networkProfiles/us-central1-b-vpc-roce"
    assert rdma.inputs["networkProfile"] == profile
    assert "Firewall" not in {r.type.rpartition(":")[2] for r in graph.needed_by(rdma)}


def test_networks_of_a_fabric_that_exist_are_used_in_the_order_of_the_nics() -> None:
    spec = spec_of("a3-ultragpu-8g")
    site = spec.sites["west"]
    existing = {
        "vpc": "projects/acme-net/global/networks/shared",
        "subnet": "projects/acme-net/regions/us-central1/subnetworks/gpu",
        "fabric_networks": [f"projects/acme-net/global/networks/{n}" for n in ("second", "rdma")],
    }
    network = msgspec.convert(existing, type(site.network))  # type: ignore[union-attr]
    changed = {"west": msgspec.structs.replace(site, network=network)}
    graph = Graph(recorded(msgspec.structs.replace(spec, sites=changed)))
    assert graph.of_type("gcp:compute/network:Network") == ()
    nics = items(template(graph, "train").inputs["networkInterfaces"])
    used = [str(nic["subnetwork"]) for nic in nics]
    assert used[0].endswith("subnetworks/gpu")
    assert "second.subnet-00" in used[1]
    assert ["rdma.subnet" in subnet for subnet in used[2:]] == [True] * 8
    assert len(set(used)) == 10


QUIET = """
apiVersion: gcluster/v1
name: quiet
sites: {a: {provider: gcp, project: p, region: us-central1, zone: us-central1-a}}
pools: {head: {site: a, role: controller, machine: n2-standard-8}}
scheduler: {type: slurm}
"""


def test_googles_own_proxy_reaches_ssh_where_it_is_the_way_in() -> None:
    through = spec_from(QUIET.replace("us-central1-a}", "us-central1-a, ssh: {tunnel: iap}}"))
    rule = Graph(recorded(through)).named("quiet-a-nodes-ssh")
    assert rule.inputs["sourceRanges"] == ["35.235.240.0/20"]


def test_without_admins_and_a_tunnel_ssh_is_not_reachable() -> None:
    rules = Graph(recorded(spec_from(QUIET))).of_type("Firewall")
    assert "quiet-a-nodes-ssh" not in {rule.name for rule in rules}


def test_behind_a_proxy_there_is_no_way_out_of_the_network() -> None:
    spec = spec_from(
        """
apiVersion: gcluster/v1
name: quiet
sites:
  a:
    provider: gcp
    project: p
    region: us-central1
    zone: us-central1-a
    proxy: {https: "http://10.0.0.3:3128"}
pools: {head: {site: a, role: controller, machine: n2-standard-8}}
scheduler: {type: slurm}
"""
    )
    assert Graph(recorded(spec)).of_type("RouterNat") == ()
    assert len(graph_of("a3-highgpu-8g").of_type("RouterNat")) == 1
