"""The example of each AWS machine type: its golden graph, and what holds for every one of them."""

from __future__ import annotations

import ipaddress

import pytest
from tests.stacks.recorded_graph import Graph, orphans, unregistered, untagged

from gcluster.schemas.catalog import load_catalog
from gcluster.stacks.pulumi.recording.graph import tags_of

from ...golden_files import GoldenFiles
from ..graph_comparison import agrees
from ..machine_table import table
from .recorded_cases import CASES, FULL, MACHINES, example, recorded, spec_of

every = pytest.mark.parametrize("machine", MACHINES)


def test_each_gpu_machine_of_aws_has_an_example() -> None:
    machines = load_catalog().machines.values()
    assert {m.name for m in machines if "aws" in m.sites and m.gpu} == set(MACHINES)


def test_the_graph_is_the_one_that_was_reviewed(golden: GoldenFiles) -> None:
    golden.check(CASES / "graph.json", example(FULL).to_json())


def test_machines_differ_in_what_was_reviewed(golden: GoldenFiles) -> None:
    others = {machine: example(machine) for machine in MACHINES if machine != FULL}
    golden.check(CASES / "machines.yaml", table(example(FULL), others, "instanceType"))


@every
def test_recording_twice_gives_the_same_bytes_and_a_preview_agrees(machine: str) -> None:
    assert recorded(machine).to_json() == example(machine).to_json()
    assert agrees(example(machine), recorded(machine, preview=True))


@every
def test_everything_is_tagged_sits_in_a_component_and_registers_outputs(machine: str) -> None:
    spec = spec_of(machine)
    [site] = spec.sites
    graph = example(machine)
    expected = {"gcluster-cluster": spec.name, "gcluster-site": site}
    assert untagged(graph, expected) == ()
    assert orphans(graph) == ()
    assert unregistered(graph) == ()


@every
def test_all_is_made_in_the_sites_region_and_account(machine: str) -> None:
    spec = spec_of(machine)
    [site] = spec.sites.values()
    graph = example(machine)
    provider = Graph(graph).only("aws")
    assert provider.inputs["region"] == site.region
    made = [r for r in graph.resources if r.custom and r != provider]
    assert {r.options.provider for r in made} == {provider.urn}


@every
def test_no_rule_lets_the_world_in(machine: str) -> None:
    for rule in Graph(example(machine)).of_type("SecurityGroupIngressRule"):
        network = rule.inputs.get("cidrIpv4") or rule.inputs.get("cidrIpv6")
        if network is not None:
            assert ipaddress.ip_network(str(network)).prefixlen > 0
            assert rule.inputs["toPort"] == 22


@every
def test_compute_nodes_have_no_way_in_from_outside(machine: str) -> None:
    graph = Graph(example(machine))
    pools = spec_of(machine).pools
    compute = {
        node.urn for node in graph.of_type("Instance")
        if pools[str(tags_of(node)["gcluster-pool"])].role == "compute"
    }  # fmt: skip
    for association in graph.of_type("EipAssociation"):
        assert not compute & set(association.dependencies)


@every
def test_every_disk_is_encrypted_and_metadata_needs_a_token(machine: str) -> None:
    templates = Graph(example(machine)).of_type("LaunchTemplate")
    assert templates
    for template in templates:
        assert [m["ebs"]["encrypted"] for m in template.inputs["blockDeviceMappings"]] == ["true"]
        assert template.inputs["metadataOptions"]["httpTokens"] == "required"


@every
def test_names_fit_what_aws_takes(machine: str) -> None:
    for made in example(machine).resources:
        longest = {"Role": 64, "InstanceProfile": 64}.get(made.type.rpartition(":")[2], 128)
        assert len(made.name) + 8 <= longest


@every
def test_destroying_goes_backwards_and_data_needs_no_node(machine: str) -> None:
    graph = Graph(example(machine))
    order = [made.urn for made in graph.creation_order()]
    data = [r for r in graph.recorded.resources if r.options.protect]
    nodes = {r.urn for r in graph.of_type("Instance")}
    for made in data:
        assert not nodes & set(made.dependencies)
    assert len(order) == len(graph.recorded.resources)
