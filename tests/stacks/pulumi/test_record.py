"""Any Pulumi program is recorded without engine, credentials or network, and leaves no trace."""

import gc
import subprocess
import sys
import threading
from collections.abc import Callable

import pulumi
import pulumi_aws as aws
import pulumi_random as random
import pytest
from pulumi.runtime.settings import SETTINGS
from pulumi_example import program
from tests.stacks.recorded_graph import Graph

from gcluster.stacks.pulumi.recording.graph import (
    Archive,
    Asset,
    RecordedGraph,
    Reference,
    Secret,
    Unknown,
    from_json,
)
from gcluster.stacks.pulumi.recording.record import RecordError, record


def recorded(run: Callable[[], object], *, preview: bool = False) -> RecordedGraph:
    return record(run, project="demo", stack="east", preview=preview)


def test_the_same_program_gives_the_same_bytes() -> None:
    assert recorded(program()).to_json() == recorded(program()).to_json()


def test_a_graph_is_read_back_as_it_was_written() -> None:
    for preview in (False, True):
        graph = recorded(program(), preview=preview)
        assert from_json(graph.to_json()) == graph


def test_urns_are_those_of_the_engine() -> None:
    machine = Graph(recorded(program())).named("demo-east-gpu-0")
    # pulumi/sdk/go/common/resource/urn: the types of all parents but the stack, then the name
    assert machine.urn == (
        "urn:pulumi:east::demo::gcluster:example:Pool$aws:ec2/instance:Instance::demo-east-gpu-0"
    )
    assert machine.parent == "urn:pulumi:east::demo::gcluster:example:Pool::demo-east-pool-gpu"


def test_inputs_name_where_their_value_comes_from() -> None:
    graph = Graph(recorded(program()))
    machine = graph.named("demo-east-gpu-1")
    assert machine.inputs["subnetId"] == "${Subnet/demo-east-compute.id}"
    assert machine.inputs["instanceType"] == "p5.48xlarge"
    assert [needed.name for needed in graph.needs(machine)] == ["demo-east-compute"]
    assert machine.property_dependencies == {"subnetId": machine.dependencies}


def test_components_and_the_stack_have_their_outputs() -> None:
    graph = recorded(program())
    assert Graph(graph).only("Network").outputs == {
        "vpc_id": "${Vpc/demo-east-vpc.id}",
        "subnet_id": "${Subnet/demo-east-compute.id}",
    }
    addresses = [f"${{Instance/demo-east-gpu-{number}.privateIp}}" for number in (0, 1)]
    assert graph.outputs["gpu"] == addresses


def test_a_preview_has_no_ids_and_nothing_made_from_them() -> None:
    graph = recorded(program(), preview=True)
    machine = Graph(graph).named("demo-east-gpu-0")
    assert machine.inputs["subnetId"] == Unknown()
    assert machine.inputs["ami"] == "ami-0abc"
    assert graph.outputs["pet"] == Unknown()


def test_options_are_recorded() -> None:
    def run() -> None:
        here = aws.Provider("here", region="us-east-1")
        options = pulumi.ResourceOptions(
            provider=here,
            protect=True,
            retain_on_delete=True,
            delete_before_replace=False,
            ignore_changes=["tags"],
            replace_on_changes=["cidr_block"],
            additional_secret_outputs=["arn"],
            aliases=[pulumi.Alias(name="before")],
            custom_timeouts=pulumi.CustomTimeouts(create="30m", delete="1h"),
            import_="vpc-0abc",
        )
        first = aws.ec2.Vpc("vpc", cidr_block="10.0.0.0/16", opts=options)
        aws.ec2.Eip("address", opts=pulumi.ResourceOptions(deleted_with=first, depends_on=[first]))

    graph = Graph(recorded(run))
    vpc = graph.only("Vpc")
    options = vpc.options
    assert options.provider == "urn:pulumi:east::demo::pulumi:providers:aws::here"
    assert options.protect
    assert options.retain_on_delete
    assert options.delete_before_replace is False
    assert options.ignore_changes == ("tags",)
    assert options.replace_on_changes == ("cidrBlock",)
    assert options.secret_outputs == ("arn",)
    assert options.aliases == ("name=before",)
    assert (options.timeouts.create, options.timeouts.delete) == ("30m", "1h")
    assert options.import_id == "vpc-0abc"
    address = graph.only("Eip")
    assert address.options.deleted_with == vpc.urn
    assert address.dependencies == (vpc.urn,)


def test_a_secret_is_marked_and_its_value_is_nowhere() -> None:
    def run() -> None:
        password = random.RandomPassword("password", length=20)
        aws.ssm.Parameter("p", type="SecureString", value=pulumi.Output.secret("hunter2"))
        aws.ssm.Parameter("q", type="String", value=password.result)
        pulumi.export("it", pulumi.Output.secret("hunter2"))

    graph = recorded(run)
    assert Graph(graph).named("p").inputs["value"] == Secret()
    assert graph.outputs["it"] == Secret()
    assert b"hunter2" not in graph.to_json()


def test_assets_are_hashes_of_their_content() -> None:
    def run(text: str) -> Callable[[], None]:
        def body() -> None:
            aws.s3.BucketObject("text", bucket="b", source=pulumi.StringAsset(text))
            parts: dict[str, pulumi.Asset | pulumi.Archive] = {
                "a": pulumi.StringAsset(text),
                "b": pulumi.StringAsset("same"),
            }
            code = pulumi.AssetArchive(parts)
            aws.lambda_.Function("code", role="r", code=code)

        return body

    one, again, other = (Graph(recorded(run(text))) for text in ("x", "x", "y"))
    assert isinstance(one.named("text").inputs["source"], Asset)
    assert isinstance(one.named("code").inputs["code"], Archive)
    for name, key in (("text", "source"), ("code", "code")):
        assert one.named(name).inputs[key] == again.named(name).inputs[key]
        assert one.named(name).inputs[key] != other.named(name).inputs[key]


def test_a_resource_passed_whole_is_a_reference() -> None:
    class Holder(pulumi.ComponentResource):
        def __init__(self) -> None:
            super().__init__("test:Holder", "holder")
            self.register_outputs({"pet": random.RandomPet("pet")})

    graph = Graph(recorded(Holder))
    assert graph.only("Holder").outputs == {"pet": Reference(urn=graph.only("RandomPet").urn)}


def test_a_resource_that_exists_is_recorded_as_read() -> None:
    graph = recorded(lambda: pulumi.export("vpc", aws.ec2.Vpc.get("theirs", "vpc-0abc").id))
    assert Graph(graph).only("Vpc").options.read_id == "vpc-0abc"
    assert graph.outputs == {"vpc": "vpc-0abc"}


def look_up_image() -> None:
    image = aws.ec2.get_ami(owners=["amazon"], most_recent=True)
    later = aws.ec2.get_ami_output(owners=["amazon"], most_recent=True)
    aws.ec2.Instance("one", ami=image.id, instance_type="p5.48xlarge")
    aws.ec2.Instance("two", ami=later.id, instance_type="p5.48xlarge")


def test_invokes_are_answered_from_the_table() -> None:
    requested = "aws:ec2/getAmi:getAmi"
    for answer in ({"id": "ami-1"}, lambda given: {"id": f"ami-{len(given['owners'])}"}):
        graph = record(look_up_image, project="demo", stack="east", answers={requested: answer})
        assert Graph(graph).named("one").inputs["ami"] == "ami-1"
        assert Graph(graph).named("two").inputs["ami"] == "ami-1"
        assert [invoke.token for invoke in graph.invokes] == [requested]


def test_an_invoke_without_an_answer_is_named() -> None:
    with pytest.raises(RecordError, match=r'aws:ec2/getAmi:getAmi with \{.*"owners":\["amazon"\]'):
        recorded(look_up_image)


def missing_input() -> None:
    aws.ec2.Subnet("compute")


def failing_apply() -> None:
    vpc = aws.ec2.Vpc("vpc", cidr_block="10.0.0.0/16")
    aws.ec2.Subnet("compute", vpc_id=vpc.id.apply(lambda _: str(1 // 0)))


def twice() -> None:
    aws.ec2.Vpc("vpc")
    aws.ec2.Vpc("vpc")


@pytest.mark.parametrize(
    ("run", "resource", "reason"),
    [
        (missing_input, "Subnet compute", "Missing required property 'vpc_id'"),
        (failing_apply, "aws:ec2/subnet:Subnet compute", "ZeroDivisionError"),
        (twice, "aws:ec2/vpc:Vpc vpc", "two resources"),
    ],
)
def test_a_failure_names_the_resource(run: Callable[[], None], resource: str, reason: str) -> None:
    with pytest.raises(RecordError) as failure:
        recorded(run)
    assert failure.value.resource == resource
    assert reason in failure.value.reason


def test_what_the_program_logs_as_an_error_is_one() -> None:
    with pytest.raises(RecordError, match="no such pool"):
        recorded(lambda: pulumi.error("no such pool"))
    assert recorded(lambda: pulumi.warn("old image")).warnings == ("old image",)


def test_after_a_failure_the_next_recording_is_as_the_first() -> None:
    before = recorded(program()).to_json()
    for run in (missing_input, failing_apply, twice, look_up_image):
        with pytest.raises(RecordError):
            recorded(run)
    assert recorded(program()).to_json() == before


def test_nothing_stays_in_the_sdk() -> None:
    recorded(program(), preview=True)
    assert SETTINGS.monitor is None
    assert SETTINGS.engine is None
    assert not pulumi.runtime.is_dry_run()
    assert pulumi.runtime.get_root_resource() is None
    assert gc.isenabled()


def test_nothing_stays_when_the_first_import_is_within_a_recording() -> None:
    """Its settings are set in the context that imports it: another process, to be first."""
    code = """
import contextvars
def run():
    from gcluster.stacks.pulumi.recording.record import record
    record(lambda: None, project="p", stack="s", preview=True)
contextvars.Context().run(run)
from pulumi.runtime.settings import SETTINGS
assert SETTINGS.monitor is None and SETTINGS.engine is None and not SETTINGS.dry_run, SETTINGS
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_no_thread_is_started() -> None:
    def watching() -> None:
        vpc = aws.ec2.Vpc("vpc")
        seen.append(threading.active_count())
        pulumi.export("n", vpc.id.apply(lambda _: seen.append(threading.active_count())))

    seen = [threading.active_count()]
    recorded(watching)
    seen.append(threading.active_count())
    assert len(seen) == 4
    assert len(set(seen)) == 1


def test_two_recordings_may_run_in_two_threads() -> None:
    expected = {n: recorded(program({"gpu": n})).to_json() for n in (1, 5)}
    results: dict[int, bytes] = {}

    def work(count: int) -> None:
        results[count] = recorded(program({"gpu": count})).to_json()

    threads = [threading.Thread(target=work, args=(count,)) for count in expected]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == expected
