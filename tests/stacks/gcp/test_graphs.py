"""What is requested from Google Cloud for each machine type, and what must never be in it."""

from __future__ import annotations

import pytest
from gcp_cases import (
    CASES,
    FULL,
    TEMPLATE,
    graph_of,
    items,
    machines,
    part,
    recorded,
    spec_of,
    template,
)
from tests.stacks.recorded_graph import Graph, orphans, unregistered, untagged

from gcluster.schemas.catalog import load_catalog

from ...golden_files import GoldenFiles
from ..graph_comparison import agrees
from ..machine_table import table

every_machine = pytest.mark.parametrize("machine", machines())


def test_every_machine_type_with_gpus_of_the_catalog_has_an_example() -> None:
    types = load_catalog().machines.values()
    assert machines() == sorted(m.name for m in types if "gcp" in m.sites and m.gpu)


def test_the_graph_is_the_one_that_was_reviewed(golden: GoldenFiles) -> None:
    golden.check(CASES / "graph.json", recorded(spec_of(FULL)).to_json())


def test_machines_differ_in_what_was_reviewed(golden: GoldenFiles) -> None:
    others = {machine: recorded(spec_of(machine)) for machine in machines() if machine != FULL}
    golden.check(CASES / "machines.yaml", table(recorded(spec_of(FULL)), others, "machineType"))


@every_machine
def test_a_preview_agrees_with_what_is_made(machine: str) -> None:
    spec = spec_of(machine)
    assert agrees(recorded(spec), recorded(spec, preview=True)).differences == ()


@every_machine
def test_every_resource_is_labelled_and_sits_in_a_component(machine: str) -> None:
    graph = recorded(spec_of(machine))
    spec = spec_of(machine)
    site = next(iter(spec.sites))
    assert untagged(graph, {"gcluster-cluster": spec.name, "gcluster-site": site}) == ()
    assert all("gcluster-spec" in Graph(graph).tags(r) for r in graph.resources if r.takes_tags)
    assert orphans(graph) == ()
    assert unregistered(graph) == ()


@every_machine
def test_no_machine_is_open_to_the_world(machine: str) -> None:
    graph = graph_of(machine)
    for rule in graph.of_type("Firewall"):
        assert "0.0.0.0/0" not in str(rule.inputs), rule.name
        assert rule.inputs["direction"] == "INGRESS"
    for made in graph.of_type(TEMPLATE):
        if made.inputs.get("tags") is None:
            nics = items(made.inputs["networkInterfaces"])
            assert all("accessConfigs" not in nic for nic in nics), made.name
    assert "/0" not in [str(r.inputs.get("sourceRanges")) for r in graph.of_type("Firewall")]


@every_machine
def test_no_private_key_and_no_world_readable_secret_is_anywhere(machine: str) -> None:
    answer = recorded(spec_of(machine)).to_json().decode()
    assert "PRIVATE KEY" not in answer
    for made in Graph(recorded(spec_of(machine))).of_type(TEMPLATE):
        metadata = part(made, "metadata")
        assert metadata["enable-guest-attributes"] == "TRUE"
        assert metadata["block-project-ssh-keys"] == "TRUE"
        assert metadata["serial-port-enable"] == "FALSE"


@every_machine
def test_machines_with_gpus_are_terminated_for_maintenance(machine: str) -> None:
    made = template(graph_of(machine), "train")
    assert part(made, "scheduling")["onHostMaintenance"] == "TERMINATE"
    assert made.inputs["machineType"] == machine
