"""A recorded graph answers questions, is drawn, and is compared with another."""

import pulumi
import pulumi_aws as aws
import pulumi_random as random
import pytest
from pulumi_example import LABELS, program
from tests.stacks.recorded_graph import Graph, orphans, unregistered, untagged

from gcluster.stacks.pulumi.recording.graph import RecordedGraph, mermaid, natural, tree
from gcluster.stacks.pulumi.recording.record import record

from ..graph_comparison import ChangedResource, diff


def recorded(pools: dict[str, int] | None = None) -> RecordedGraph:
    return record(program(pools), project="p", stack="s")


def test_types_are_requested_by_token_or_last_word() -> None:
    graph = Graph(recorded())
    assert graph.of_type("Instance") == graph.of_type("aws:ec2/instance:Instance")
    assert len(graph.of_type("Instance")) == 2
    assert graph.of_type("NatGateway") == ()


def test_requesting_one_of_several_reports_which_there_are() -> None:
    graph = Graph(recorded())
    with pytest.raises(LookupError, match="demo-east-gpu-0, demo-east-gpu-1"):
        graph.only("Instance")
    with pytest.raises(LookupError, match="found: none"):
        graph.named("gone")


def test_counts_are_of_what_providers_make() -> None:
    assert Graph(recorded({"gpu": 12})).counts() == {
        "aws:ec2/instance:Instance": 12,
        "aws:ec2/subnet:Subnet": 1,
        "aws:ec2/vpc:Vpc": 1,
        "random:index/randomPet:RandomPet": 1,
    }


def test_the_tree_puts_components_first_and_numbers_in_order() -> None:
    found = tree(recorded({"gpu": 12}))
    assert [branch.name for branch in found] == [
        "demo-east-network",
        "demo-east-pool-gpu",
        "demo-east-pet",
    ]
    names = [branch.name for branch in found[1].children]
    assert names == [f"demo-east-gpu-{number}" for number in range(12)]
    assert natural("gpu-9") < natural("gpu-10")


def test_everything_comes_after_what_it_needs() -> None:
    graph = Graph(recorded())
    order = [resource.urn for resource in graph.creation_order()]
    assert len(order) == len(graph.recorded.resources)
    for resource in graph.recorded.resources:
        for needed in (*resource.dependencies, resource.parent):
            assert not needed or order.index(needed) < order.index(resource.urn)


def test_within_a_component_is_all_below_it() -> None:
    graph = Graph(recorded())
    network = graph.only("Network")
    assert {r.name for r in graph.within(network)} == {"demo-east-vpc", "demo-east-compute"}
    assert graph.needed_by(graph.only("Vpc")) == (graph.only("Subnet"),)


def test_every_taggable_resource_is_tagged_and_keeps_its_own() -> None:
    graph = recorded()
    assert untagged(graph, LABELS.tags()) == ()
    assert Graph(graph).tags(Graph(graph).only("Vpc")) == {"own": "1", **LABELS.tags()}


def test_an_untagged_resource_is_found() -> None:
    graph = record(lambda: aws.ec2.Vpc("bare"), project="p", stack="s")
    assert [resource.name for resource in untagged(graph, LABELS.found_by())] == ["bare"]


def test_a_missing_parent_and_missing_outputs_are_found() -> None:
    class Forgetful(pulumi.ComponentResource):
        def __init__(self) -> None:
            super().__init__("test:Forgetful", "forgetful")
            random.RandomPet("stray")

    graph = record(Forgetful, project="p", stack="s")
    assert [resource.name for resource in orphans(graph)] == ["stray"]
    assert [resource.name for resource in unregistered(graph)] == ["forgetful"]


def test_siblings_of_one_type_are_one_box_of_the_diagram() -> None:
    text = mermaid(recorded({"gpu": 64}))
    assert text.count("Instance") == 1
    assert '["64 Instance<br>demo-east-gpu-0 ... demo-east-gpu-63"]' in text
    assert text == mermaid(recorded({"gpu": 64}))
    assert 'subgraph n0["demo-east-network"]' in text


def test_another_pool_changes_nothing_that_is_there() -> None:
    difference = diff(recorded(), recorded({"gpu": 2, "cpu": 1}))
    assert [resource.name for resource in difference.added] == [
        "demo-east-cpu-0",
        "demo-east-pool-cpu",
    ]
    assert difference.removed == ()
    assert difference.changed == ()


def test_equal_graphs_have_no_difference() -> None:
    assert not diff(recorded(), recorded())
    assert diff(recorded({"gpu": 1}), recorded({"gpu": 2}))


def test_changed_inputs_are_named_and_replacement_where_the_sdk_requires_it() -> None:
    def run(cidr: str, *, replace: bool) -> RecordedGraph:
        rules = ["cidr_block"] if replace else None
        options = pulumi.ResourceOptions(replace_on_changes=rules)

        def body() -> None:
            aws.ec2.Vpc("vpc", cidr_block=cidr, tags={"a": cidr}, opts=options)

        return record(body, project="p", stack="s")

    urn = "urn:pulumi:s::p::aws:ec2/vpc:Vpc::vpc"
    inputs = ("cidrBlock", "tags.a")
    for replace, replaced in ((False, None), (True, True)):
        old, new = (run(cidr, replace=replace) for cidr in ("10.0.0.0/16", "10.1.0.0/16"))
        expected = ChangedResource(urn=urn, inputs=inputs, replaced=replaced)
        assert diff(old, new).changed == (expected,)
