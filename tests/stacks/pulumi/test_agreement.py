"""A preview agrees with what is made but for what it can't know, and says where it does not."""

import msgspec
import pulumi
import pulumi_aws as aws
from pulumi_example import program

from gcluster.stacks.pulumi.recording.graph import RecordedGraph
from gcluster.stacks.pulumi.recording.record import record

from ..graph_comparison import Difference, agrees


def both(run: object) -> tuple[RecordedGraph, RecordedGraph]:
    assert callable(run)
    return tuple(record(run, project="p", stack="s", preview=p) for p in (False, True))  # type: ignore[return-value]


def test_the_example_agrees() -> None:
    assert agrees(*both(program()))


def test_a_resource_that_only_apply_makes_is_found() -> None:
    def run() -> None:
        vpc = aws.ec2.Vpc("vpc")
        vpc.id.apply(lambda _: aws.ec2.Eip("hidden"))

    found = agrees(*both(run))
    assert not found
    [difference] = found.differences
    assert difference.urn.endswith("::hidden")
    assert difference.path == ()


def test_an_input_that_depends_on_preview_is_found() -> None:
    def run() -> None:
        aws.ec2.Vpc("vpc", tags={"mode": str(pulumi.runtime.is_dry_run())})

    [difference] = agrees(*both(run)).differences
    assert difference == Difference(
        urn="urn:pulumi:s::p::aws:ec2/vpc:Vpc::vpc",
        path=("inputs", "tags", "mode"),
        reason="differs",
    )


def test_an_option_that_depends_on_preview_is_found() -> None:
    def run() -> None:
        options = pulumi.ResourceOptions(protect=pulumi.runtime.is_dry_run())
        aws.ec2.Vpc("vpc", opts=options)

    [difference] = agrees(*both(run)).differences
    assert difference.path == ("options",)


def test_a_value_that_only_the_preview_has_is_found() -> None:
    applied, preview = both(program())
    assert not agrees(preview, applied), "ids are known on the wrong side"
    assert agrees(applied, applied)
    outputs = msgspec.structs.replace(preview, outputs={})
    assert {d.path for d in agrees(applied, outputs).differences} == {
        ("outputs", "gpu"),
        ("outputs", "pet"),
    }
