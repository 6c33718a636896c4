"""The machines of an AWS site: interfaces, placement, disks, metadata, markets, stable names."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Callable

import pytest
from tests.stacks.recorded_graph import Graph, orphans, unregistered, untagged

from gcluster.stacks.pulumi.recording.graph import RecordedGraph, RecordedResource, tags_of

from ..graph_comparison import agrees, diff
from .conftest import BASE

Ask = Callable[..., Graph]
Record = Callable[..., RecordedGraph]


def template_of(recorded: Graph, pool: str) -> RecordedResource:
    [found] = [t for t in recorded.of_type("LaunchTemplate") if tags_of(t)["gcluster-pool"] == pool]
    return found


def with_market(market: str) -> str:
    return BASE.replace("count: 2", f"count: 2, market: [{market}]")


@pytest.mark.parametrize(
    ("machine", "efa", "cards"),
    [
        ("p5.48xlarge", 32, range(32)),
        ("p5e.48xlarge", 32, range(32)),
        ("p5en.48xlarge", 16, range(16)),
        ("p6-b200.48xlarge", 8, range(8)),
        ("p6-b300.48xlarge", 16, range(1, 17)),
        ("p4d.24xlarge", 4, range(4)),
        ("p4de.24xlarge", 4, range(4)),
        ("p5.4xlarge", 1, range(1)),
        ("m7i.4xlarge", 0, range(0)),
    ],
)
def test_a_node_has_one_interface_with_an_address_and_its_efas(
    machine: str, efa: int, cards: range, graph: Ask
) -> None:
    text = BASE.replace("p5.48xlarge", machine)
    interfaces = template_of(graph(text), "train").inputs["networkInterfaces"]
    kinds = Counter(interface["interfaceType"] for interface in interfaces)
    assert kinds == Counter({"interface": 1, "efa-only": efa})
    first = interfaces[0]
    assert (first["networkCardIndex"], first["deviceIndex"]) == (0, 0)
    assert first["interfaceType"] == "interface"
    assert [i["networkCardIndex"] for i in interfaces[1:]] == list(cards)
    assert [i["deviceIndex"] for i in interfaces[1:]] == [0 if card else 1 for card in cards]


def test_a_pool_without_its_fabric_has_no_efa_and_no_placement(graph: Ask) -> None:
    recorded = graph(BASE.replace("count: 2", "count: 2, fabric: ethernet"))
    assert len(template_of(recorded, "train").inputs["networkInterfaces"]) == 1
    assert recorded.of_type("PlacementGroup") == ()


def test_pools_of_one_fabric_and_zone_share_one_cluster_placement_group(graph: Ask) -> None:
    more = "  more: {site: east, machine: p5.48xlarge, count: 1}\nscheduler:"
    recorded = graph(BASE.replace("scheduler:", more))
    group = recorded.only("PlacementGroup")
    assert group.inputs["strategy"] == "cluster"
    for pool in ("train", "more"):
        placement = template_of(recorded, pool).inputs["placement"]
        assert placement == {"groupName": "${PlacementGroup/demo-east-efa-v2-use1-az4.name}"}
    assert "placement" not in template_of(recorded, "head").inputs


def test_reserved_machines_are_put_into_no_new_placement_group(graph: Ask) -> None:
    text = BASE.replace("count: 2", "count: 2, market: [{reservation: cr-0abc}]")
    recorded = graph(text)
    assert recorded.of_type("PlacementGroup") == ()
    assert "placement" not in template_of(recorded, "train").inputs
    named = graph(text.replace("count: 2", "count: 2, placement: pg-reserved"))
    assert template_of(named, "train").inputs["placement"] == {"groupName": "pg-reserved"}
    arn = "arn:aws:resource-groups:us-east-1:111122223333:group/reserved"
    assert graph(text.replace("cr-0abc", f'"{arn}"')).of_type("PlacementGroup") == ()


def test_a_placement_group_that_exists_is_used(graph: Ask) -> None:
    recorded = graph(BASE.replace("count: 2", "count: 2, placement: pg-research"))
    assert recorded.of_type("PlacementGroup") == ()
    assert template_of(recorded, "train").inputs["placement"] == {"groupName": "pg-research"}


def test_every_disk_is_encrypted_with_the_sites_key(graph: Ask) -> None:
    for text, key in (
        (BASE, None),
        (BASE.replace("    zone_id", "    kms_key: k-1\n    zone_id"), "k-1"),
    ):
        for template in graph(text).of_type("LaunchTemplate"):
            disks = [mapping["ebs"] for mapping in template.inputs["blockDeviceMappings"]]
            assert [(d["encrypted"], d["volumeType"]) for d in disks] == [("true", "gp3")]
            assert [d.get("kmsKeyId") for d in disks] == [key]


def test_metadata_needs_a_token_and_stays_on_the_node(graph: Ask) -> None:
    for template in graph().of_type("LaunchTemplate"):
        options = template.inputs["metadataOptions"]
        assert options["httpTokens"] == "required"
        assert options["httpPutResponseHopLimit"] == 1


def test_a_reservation_is_the_target_and_nothing_else_is_bought(graph: Ask) -> None:
    recorded = graph(with_market("{reservation: cr-0abc}, on-demand"))
    template = template_of(recorded, "train")  # a fixed pool has the template of its option alone
    assert template.inputs["capacityReservationSpecification"] == {
        "capacityReservationTarget": {"capacityReservationId": "cr-0abc"}
    }
    assert "instanceMarketOptions" not in template.inputs


def test_a_group_of_reservations_never_falls_back_to_on_demand_by_itself(graph: Ask) -> None:
    group = "arn:aws:resource-groups:us-east-1:111122223333:group/gpus"
    recorded = graph(with_market(f"{{reservation: '{group}'}}"))
    assert template_of(recorded, "train").inputs["capacityReservationSpecification"] == {
        "capacityReservationPreference": "capacity-reservations-only",
        "capacityReservationTarget": {"capacityReservationResourceGroupArn": group},
    }


def test_a_capacity_block_that_is_owned_is_used_and_not_bought(graph: Ask) -> None:
    recorded = graph(with_market("{capacity_block: cr-0abc}"))
    template = template_of(recorded, "train")
    assert template.inputs["instanceMarketOptions"] == {"marketType": "capacity-block"}
    assert "placement" not in template.inputs  # its machines are close together already
    assert recorded.of_type("PlacementGroup") == ()
    assert recorded.of_type("CapacityBlockReservation") == ()


@pytest.mark.parametrize(
    "market", ["on-demand", "spot", "on-demand, {buy_capacity_block: 7d}", "{reservation: cr-0a}"]
)
def test_no_block_is_bought_unless_it_is_the_option_in_use(market: str, graph: Ask) -> None:
    assert graph(with_market(market)).of_type("CapacityBlockReservation") == ()


def test_a_block_is_bought_once_and_kept(graph: Ask) -> None:
    recorded = graph(with_market("{buy_capacity_block: 7d}"))
    block = recorded.only("CapacityBlockReservation")
    assert block.options.ignore_changes == ("capacityBlockOfferingId",)
    assert block.options.retain_on_delete
    assert not block.options.protect, "the stack lets go of it: later runs use it by its id"
    assert recorded.tags(block)["gcluster-pool"] == "train", "by which later runs find it"
    assert recorded.recorded.invokes == (), "which one it is was chosen before"
    offering = block.inputs["capacityBlockOfferingId"]
    assert offering == "${the earliest on offer in use1-az4}", "a recording asks nobody"
    target = template_of(recorded, "train").inputs["capacityReservationSpecification"]
    assert target["capacityReservationTarget"] == {
        "capacityReservationId": "${CapacityBlockReservation/demo-east-block-train.id}"
    }


def test_a_spot_node_sets_its_price_itself(graph: Ask) -> None:
    recorded = graph(with_market("{spot_max_usd_per_hour: 30}"))
    options = recorded.named("demo-east-train001", "Instance").inputs["instanceMarketOptions"]
    assert options["marketType"] == "spot"
    assert options["spotOptions"]["maxPrice"] == "30"
    assert "instanceMarketOptions" not in template_of(recorded, "train").inputs


def test_an_elastic_pool_has_a_template_for_each_offer_and_only_its_least_nodes(graph: Ask) -> None:
    text = BASE.replace("count: 2", "count: {min: 1, max: 9}, market: [spot, on-demand]")
    recorded = graph(text)
    templates = [
        tags_of(t)["gcluster-offer"]
        for t in recorded.of_type("LaunchTemplate")
        if tags_of(t)["gcluster-pool"] == "train"
    ]
    assert templates == ["on-demand-use1-az4", "spot-use1-az4"]
    nodes = [tags_of(node)["gcluster-host"] for node in recorded.of_type("Instance")]
    assert nodes == ["head", "train001"]


def test_user_data_holds_the_public_key_and_no_secret(graph: Ask) -> None:
    for template in graph().of_type("LaunchTemplate"):
        text = base64.b64decode(template.inputs["userData"]).decode()
        assert text.startswith("#cloud-config\n")
        assert "KEY-OF-THE-CLUSTER" in text
        assert "PRIVATE KEY" not in text


def test_another_pool_changes_nothing_that_is_there(recorded: Record) -> None:
    more = "  cpu: {site: east, machine: m7i.16xlarge, count: 1}\nscheduler:"
    difference = diff(recorded(), recorded(BASE.replace("scheduler:", more)))
    assert difference.removed == ()
    hash_tags = {"tags.gcluster-spec"}
    assert all(set(change.inputs) <= hash_tags for change in difference.changed)
    assert not any(change.options for change in difference.changed)


def test_a_pool_that_moves_to_another_option_is_replaced_as_a_whole(recorded: Record) -> None:
    moved = recorded(with_market("{reservation: cr-0abc}"))
    changes = {change.urn.rpartition("::")[2]: change for change in diff(recorded(), moved).changed}
    assert changes["demo-east-train001"].replaced
    assert changes["demo-east-train002"].replaced
    assert not changes["demo-east-head"].replaced


def test_growing_a_pool_renames_no_node(recorded: Record) -> None:
    difference = diff(recorded(), recorded(BASE.replace("count: 2", "count: 3")))
    assert difference.removed == ()
    assert {r.name for r in difference.added} == {"demo-east-train003"}


def test_every_taggable_resource_is_tagged_and_sits_in_a_component(recorded: Record) -> None:
    made = recorded()
    expected = {
        "gcluster-cluster": "demo",
        "gcluster-site": "east",
        "gcluster-owner": "ops@example.edu",
    }
    assert untagged(made, expected) == ()
    assert orphans(made) == ()
    assert unregistered(made) == ()


def test_the_same_spec_gives_the_same_bytes_and_the_preview_agrees(recorded: Record) -> None:
    assert recorded().to_json() == recorded().to_json()
    assert agrees(recorded(), recorded(preview=True))


def test_nothing_in_the_stack_is_a_secret(recorded: Record) -> None:
    assert b'"secret"' not in recorded().to_json()
