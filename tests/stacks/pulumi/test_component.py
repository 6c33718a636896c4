"""Components register what they annotate, and names and labels are what each cloud takes."""

import pulumi
import pulumi_aws as aws
import pulumi_azure_native as azure
import pulumi_gcp as gcp
import pulumi_random as random
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pulumi_example import LABELS
from tests.stacks.recorded_graph import Graph, untagged

from gcluster.stacks.pulumi.component import Args, Component, tag_everything
from gcluster.stacks.pulumi.names import (
    LONGEST_LABEL,
    SUFFIX,
    Labels,
    Names,
    label_key,
    label_value,
)
from gcluster.stacks.pulumi.recording.record import RecordError, record


class Nothing(Args, frozen=True, kw_only=True):
    """No arguments."""


class Silent(Component[Nothing]):
    """Annotates no outputs."""

    kind = "test:Silent"

    def build(self, args: Nothing) -> None:
        """Make nothing."""


class Unset(Component[Nothing]):
    """Annotates an output and never sets it."""

    kind = "test:Unset"
    pet: pulumi.Output[str]

    def build(self, args: Nothing) -> None:
        """Make nothing."""


@pytest.mark.parametrize(
    ("component", "reason"),
    [(Silent, "Silent annotates no outputs"), (Unset, "Unset never set its output pet")],
)
def test_a_component_without_outputs_fails(
    component: type[Component[Nothing]], reason: str
) -> None:
    with pytest.raises(RecordError, match=reason):
        record(lambda: component("x", Nothing()), project="p", stack="s")


def test_outputs_of_the_base_class_are_registered_too() -> None:
    class Base(Component[Nothing]):
        kind = "test:Base"
        first: pulumi.Output[str]

        def build(self, args: Nothing) -> None:  # noqa: ARG002  # as the base has it
            self.first = random.RandomPet("first", opts=self.child()).id

    class More(Base):
        kind = "test:More"
        second: pulumi.Output[str]

        def build(self, args: Nothing) -> None:
            super().build(args)
            self.second = self.first

    graph = record(lambda: More("x", Nothing()), project="p", stack="s")
    first = "${RandomPet/first.id}"
    assert Graph(graph).only("More").outputs == {"first": first, "second": first}


def test_arguments_are_frozen() -> None:
    with pytest.raises(AttributeError):
        Nothing().anything = 1  # type: ignore[attr-defined]


def test_a_name_has_cluster_site_and_what() -> None:
    names = Names(cluster="demo", site="east", cloud="aws")
    assert names("vpc") == "demo-east-vpc"
    assert names("gpu", 12) == "demo-east-gpu-12"


@pytest.mark.parametrize(
    ("cloud", "kind", "longest"),
    [("aws", "role", 64), ("gcp", "default", 63), ("gcp", "service-account", 30),
     ("azure", "storage-account", 24), ("azure", "default", 64), ("azure", "budget", 63)],
)  # fmt: skip
@given(
    parts=st.lists(st.from_regex(r"[a-z][a-z0-9-]{0,40}", fullmatch=True), min_size=2, max_size=2)
)
def test_long_names_fit_and_stay_apart(
    cloud: str, kind: str, longest: int, parts: list[str]
) -> None:
    names = Names(cluster=parts[0], site=parts[1], cloud=cloud)
    one, other = names("gpu", 1, kind=kind), names("gpu", 11, kind=kind)
    assert one != other
    assert one == names("gpu", 1, kind=kind)
    assert len(one) <= longest - SUFFIX
    if kind == "storage-account":
        assert one.isalnum()


@given(text=st.text(max_size=200))
def test_gcp_takes_every_label(text: str) -> None:
    for value in (label_value(text), label_key(text)):
        assert len(value) <= LONGEST_LABEL
        assert set(value) <= set("abcdefghijklmnopqrstuvwxyz0123456789_-")
    assert label_key(text)[0].isalpha()


def test_the_labels_of_gcluster_win() -> None:
    labels = Labels(
        cluster="demo", site="east", spec_hash="0a", extra={"gcluster-site": "no", "Team": "ML"}
    )
    assert labels.tags() == {
        "Team": "ML",
        "gcluster-cluster": "demo",
        "gcluster-site": "east",
        "gcluster-spec": "0a",
    }
    assert labels.gcp()["team"] == "ml"


def test_each_cloud_is_tagged_in_its_own_form() -> None:
    def run() -> None:
        tag_everything(LABELS)
        group = azure.resources.ResourceGroup("group")
        azure.network.VirtualNetwork(
            "net",
            resource_group_name=group.name,
            address_space=azure.network.AddressSpaceArgs(address_prefixes=["10.0.0.0/16"]),
            tags=group.name.apply(lambda name: {"own": name}),
        )
        gcp.compute.Network("net")
        interface = gcp.compute.InstanceNetworkInterfaceArgs(network="default")
        disk = gcp.compute.InstanceBootDiskArgs()
        gcp.compute.Instance(
            "node", machine_type="a3-highgpu-8g", boot_disk=disk, network_interfaces=[interface],
            tags=["a-network-tag"],
        )  # fmt: skip
        aws.autoscaling.Group("nodes", max_size=1, min_size=1)

    graph = record(run, project="p", stack="s")
    questions = Graph(graph)
    assert questions.only("VirtualNetwork").inputs["tags"] == {
        "own": "${ResourceGroup/group.name}",
        **LABELS.tags(),
    }
    node = questions.only("Instance")
    assert node.inputs["tags"] == ["a-network-tag"]
    assert node.inputs["labels"] == LABELS.gcp()
    assert questions.only("gcp:compute/network:Network").takes_tags == ""
    tags = questions.only("Group").inputs["tags"]
    expected = {"key": "gcluster-site", "value": "east", "propagateAtLaunch": True}
    assert isinstance(tags, list)
    assert expected in tags
    assert untagged(graph, LABELS.found_by()) == ()
