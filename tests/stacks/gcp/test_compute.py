"""Machines: disks, placement, how they are bought, and what another pool changes."""

from __future__ import annotations

import msgspec
import pytest
from gcp_cases import MACHINE, TEMPLATE, graph_of, items, part, recorded, spec_of, template
from tests.stacks.recorded_graph import Graph

from gcluster.schemas.spec import Option, Pool

from ..graph_comparison import diff


@pytest.mark.parametrize(
    ("machine", "disk"),
    [
        ("a3-highgpu-8g", "pd-balanced"),
        ("a3-megagpu-8g", "pd-balanced"),
        ("a3-ultragpu-8g", "hyperdisk-balanced"),
        ("a4-highgpu-8g", "hyperdisk-balanced"),
        ("a4x-highgpu-4g", "hyperdisk-balanced"),
    ],
)
def test_the_boot_disk_is_of_a_type_that_the_machine_takes(machine: str, disk: str) -> None:
    [boot] = items(template(graph_of(machine), "train").inputs["disks"])
    assert boot["diskType"] == disk
    assert boot["autoDelete"] is True


def test_machines_of_a_fabric_are_placed_together_unless_their_capacity_is_already() -> None:
    graph = graph_of("a3-highgpu-8g")
    policy = graph.only("ResourcePolicy")
    assert policy.inputs["groupPlacementPolicy"] == {"collocation": "COLLOCATED"}
    placed = {m.name for m in graph.of_type(MACHINE) if "resourcePolicies" in m.inputs}
    assert placed == {"tcpx-east-train001", "tcpx-east-train002"}
    assert graph_of("a3-megagpu-8g").of_type("ResourcePolicy") == (), "a reservation is dense"
    assert graph_of("a4-highgpu-8g").of_type("ResourcePolicy") == (), "so is flex-start"


def test_each_nvlink_domain_that_spans_machines_has_a_policy_also_when_reserved() -> None:
    policies = graph_of("a4x-highgpu-4g").of_type("ResourcePolicy")
    assert [p.name for p in policies] == [f"nvl72-central-train-placement-{n}" for n in (1, 2)]
    for policy in policies:
        assert policy.inputs["groupPlacementPolicy"] == {
            "collocation": "COLLOCATED",
            "gpuTopology": "1x72",
        }


@pytest.mark.parametrize(
    ("machine", "model", "affinity", "ends"),
    [
        ("a3-highgpu-8g", "STANDARD", "ANY_RESERVATION", None),
        ("a3-megagpu-8g", "STANDARD", "SPECIFIC_RESERVATION", None),
        ("a3-highgpu-1g", "SPOT", "NO_RESERVATION", "DELETE"),
        ("a4-highgpu-8g", "FLEX_START", "NO_RESERVATION", "DELETE"),
    ],
)
def test_machines_are_bought_as_the_first_option_has(
    machine: str, model: str, affinity: str, ends: str | None
) -> None:
    made = template(graph_of(machine), "train")
    scheduling = part(made, "scheduling")
    assert scheduling["provisioningModel"] == model
    assert scheduling.get("instanceTerminationAction") == ends
    assert scheduling["automaticRestart"] is (ends is None)
    assert part(made, "reservationAffinity")["type"] == affinity


@pytest.mark.parametrize(
    ("machine", "model"),
    [
        ("a3-megagpu-8g", "STANDARD"),
        ("a3-ultragpu-8g", "RESERVATION_BOUND"),
        ("a4-highgpu-8g", "RESERVATION_BOUND"),
        ("a4x-highgpu-4g", "RESERVATION_BOUND"),
    ],
)
def test_machines_of_a_dense_reservation_are_bound_to_it(machine: str, model: str) -> None:
    spec = spec_of(machine)
    owned = msgspec.structs.replace(spec.pools["train"], market=[Option(reservation="r")])
    spec = msgspec.structs.replace(spec, pools={**spec.pools, "train": owned})
    made = template(Graph(recorded(spec)), "train")
    scheduling = part(made, "scheduling")
    assert (scheduling["provisioningModel"], scheduling["onHostMaintenance"]) == (
        model, "TERMINATE",
    )  # fmt: skip
    assert part(made, "reservationAffinity")["type"] == "SPECIFIC_RESERVATION"


def test_a_reservation_of_the_own_project_is_called_by_its_name() -> None:
    affinity = part(template(graph_of("a3-megagpu-8g"), "train"), "reservationAffinity")
    assert affinity["specificReservation"] == {
        "key": "compute.googleapis.com/reservation-name",
        "values": ["a3-mega"],
    }


def test_queued_machines_are_requested_at_once_for_as_long_as_in_the_spec() -> None:
    graph = graph_of("a4-highgpu-8g")
    assert graph.only("ResizeRequest").inputs["resizeBy"] == 4
    group = graph.only("InstanceGroupManager")
    assert group.inputs["targetSize"] == 0
    assert group.options.ignore_changes == ("targetSize",)
    run = part(template(graph, "train"), "scheduling")["maxRunDuration"]
    assert run == {"seconds": 2 * 24 * 3600}
    assert [m.name for m in graph.of_type(MACHINE)] == ["queued-south-head"]


def test_an_elastic_pool_has_a_template_for_every_option() -> None:
    graph = graph_of("a3-ultragpu-8g")
    names = [t.name for t in graph.of_type(TEMPLATE) if graph.tags(t)["gcluster-pool"] == "train"]
    assert names == [
        "gib-west-train-on-demand-us-central1-b",
        "gib-west-train-spot-us-central1-b",
    ]
    assert len(graph.of_type(MACHINE)) == 2, "only what is always there is in the stack"


def test_another_pool_changes_nothing_but_labels_and_names_no_template_again() -> None:
    spec = spec_of("a3-megagpu-8g")
    more = dict(spec.pools) | {"cpu": Pool(site="central", machine="n2-standard-8", count=3)}
    change = diff(recorded(spec), recorded(msgspec.structs.replace(spec, pools=more)))
    assert change.removed == ()
    assert {path for c in change.changed for path in c.inputs} == {"labels.gcluster-spec"}
    assert all(not c.options for c in change.changed)


def test_a_template_is_not_replaced_when_only_its_labels_change() -> None:
    for made in graph_of("a3-megagpu-8g").of_type(TEMPLATE):
        assert made.options.ignore_changes == ("labels",)


def test_tags_of_a_pool_are_on_its_machines_and_on_no_others() -> None:
    graph = graph_of("a3-highgpu-8g")
    team = {m.name: graph.tags(m).get("team") for m in graph.of_type(MACHINE)}
    assert team["tcpx-east-train001"] == "nlp"
    assert team["tcpx-east-head"] is None
    assert all(graph.tags(m)["cost-centre"] == "4711" for m in graph.of_type(MACHINE))
