"""Data of an AWS site: file systems in its own terms, private buckets, and nothing is lost."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from tests.stacks.recorded_graph import Graph

from .conftest import BASE

Ask = Callable[..., Graph]


def with_storage(text: str) -> str:
    return BASE.replace("scheduler:", f"storage:\n{text}\nscheduler:")


LUSTRE = with_storage(
    "  fast: {type: lustre, mount: /fsx, site: east, capacity: 4800 GiB,"
    " throughput: 250 MB/s/TiB, import: 's3://data/in'}"
)
EFA = LUSTRE.replace("4800 GiB", "19200 GiB").replace("import:", "efa: true, import:")
BUCKET = with_storage(
    "  models: {type: object, mount: /models, bucket: 's3://acme-models', create: true}\n"
    "  sets: {type: object, mount: /sets, bucket: 's3://acme-sets/train', read_only: true}"
)


def test_a_file_system_is_persistent_in_the_nodes_subnet(graph: Ask) -> None:
    made = graph(LUSTRE).only("LustreFileSystem").inputs
    assert made["deploymentType"] == "PERSISTENT_2"
    assert (made["storageCapacity"], made["perUnitStorageThroughput"]) == (4800, 250)
    assert made["subnetIds"] == "${Subnet/demo-east-compute-use1-az4.id}"
    assert not made.keys() & {"efaEnabled", "metadataConfiguration"}


def test_over_efa_it_has_a_metadata_configuration(graph: Ask) -> None:
    made = graph(EFA).only("LustreFileSystem").inputs
    assert made["efaEnabled"] is True
    assert made["metadataConfiguration"] == {"mode": "AUTOMATIC"}


KINDS = {"in": "SecurityGroupIngressRule", "out": "SecurityGroupEgressRule"}


def rules_of(recorded: Graph, group: str) -> set[tuple[str, str, object, object]]:
    """Return (direction, peer, first port, last port) of a group's rules with other groups."""
    return {
        (direction, str(peer), rule.inputs.get("fromPort"), rule.inputs.get("toPort"))
        for direction, kind in KINDS.items()
        for rule in recorded.of_type(kind)
        if rule.inputs["securityGroupId"] == group
        and (peer := rule.inputs.get("referencedSecurityGroupId")) is not None
    }


def test_lustre_and_the_nodes_reach_each_other_on_its_ports(graph: Ask) -> None:
    recorded = graph(LUSTRE)
    lustre, nodes = (f"${{SecurityGroup/demo-east-{n}.id}}" for n in ("lustre-fast", "nodes"))
    ports = ((988, 988), (1018, 1023))
    assert rules_of(recorded, lustre) == {
        (direction, peer, *port)
        for direction in ("in", "out")
        for peer in (lustre, nodes)
        for port in ports
    }
    assert rules_of(recorded, nodes) - {("in", nodes, None, None), ("out", nodes, None, None)} == {
        (direction, lustre, *port) for direction in ("in", "out") for port in ports
    }


def test_over_efa_they_let_everything_through_both_ways(graph: Ask) -> None:
    recorded = graph(EFA)
    lustre, nodes = (f"${{SecurityGroup/demo-east-{n}.id}}" for n in ("lustre-fast", "nodes"))
    everything = {(direction, None, None) for direction in ("in", "out")}
    assert {(d, f, t) for d, _, f, t in rules_of(recorded, lustre)} == everything
    assert ("in", lustre, None, None) in rules_of(recorded, nodes)
    assert ("out", lustre, None, None) in rules_of(recorded, nodes)


@pytest.mark.parametrize(
    ("message", "paths"),
    [
        ("import: 's3://a'", {"/": ("s3://a", True, False)}),
        ("export: 's3://a'", {"/": ("s3://a", False, True)}),
        ("import: 's3://a', export: 's3://a'", {"/": ("s3://a", True, True)}),
        (
            "import: 's3://a', export: 's3://b'",
            {"/import": ("s3://a", True, False), "/export": ("s3://b", False, True)},
        ),
    ],
)
def test_buckets_are_linked_for_what_the_spec_has(
    message: str, paths: dict[str, tuple[str, bool, bool]], graph: Ask
) -> None:
    recorded = graph(LUSTRE.replace("import: 's3://data/in'", message))
    found = {
        link.inputs["fileSystemPath"]: (
            link.inputs["dataRepositoryPath"],
            "autoImportPolicy" in link.inputs["s3"],
            "autoExportPolicy" in link.inputs["s3"],
        )
        for link in recorded.of_type("DataRepositoryAssociation")
    }
    assert found == paths


def test_scratch_has_neither_throughput_nor_key(graph: Ask) -> None:
    text = LUSTRE.replace("throughput: 250 MB/s/TiB", "deployment: scratch-2, kms_key: k-1")
    made = graph(text).only("LustreFileSystem").inputs
    assert made["deploymentType"] == "SCRATCH_2"
    assert not made.keys() & {"perUnitStorageThroughput", "kmsKeyId"}


def test_a_file_system_that_exists_is_not_made(graph: Ask) -> None:
    text = with_storage("  old: {type: lustre, mount: /fsx, site: east, existing: fs-0abc}")
    assert graph(text).of_type("LustreFileSystem") == ()


def test_data_is_protected_and_kept_and_goes_last(graph: Ask) -> None:
    for text, kind in ((LUSTRE, "LustreFileSystem"), (BUCKET, "Bucket")):
        recorded = graph(text)
        data = (
            recorded.only(kind)
            if kind != "Bucket"
            else recorded.named("demo-east-models", "aws:s3/bucket:Bucket")
        )
        assert data.options.protect
        assert data.options.retain_on_delete
        assert not any(node in recorded.needs(data) for node in recorded.of_type("Instance"))


def test_nothing_but_data_and_what_lets_nodes_reach_it_is_protected(graph: Ask) -> None:
    assert [r.name for r in graph().recorded.resources if r.options.protect] == []
    kinds = {
        r.type.rpartition(":")[2] for r in graph(LUSTRE).recorded.resources if r.options.protect
    }
    assert kinds == {
        "LustreFileSystem",
        "DataRepositoryAssociation",
        "SecurityGroup",
        "SecurityGroupIngressRule",
        "SecurityGroupEgressRule",
    }


def test_a_bucket_is_private_versioned_encrypted_and_requires_tls(graph: Ask) -> None:
    recorded = graph(BUCKET)
    assert (
        recorded.named("demo-east-models", "aws:s3/bucket:Bucket").inputs["bucket"] == "acme-models"
    )
    block = recorded.only("BucketPublicAccessBlock").inputs
    assert {value for key, value in block.items() if key != "bucket"} == {True}
    assert recorded.only("BucketVersioning").inputs["versioningConfiguration"] == {
        "status": "Enabled"
    }
    [rule] = recorded.only("BucketServerSideEncryptionConfiguration").inputs["rules"]
    assert rule["applyServerSideEncryptionByDefault"]["sseAlgorithm"] == "AES256"
    policy = json.loads(recorded.only("BucketPolicy").inputs["policy"])
    assert policy["Statement"][0]["Effect"] == "Deny"
    assert policy["Statement"][0]["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


def test_nodes_may_use_the_buckets_they_mount_and_no_other(graph: Ask) -> None:
    policy = json.loads(graph(BUCKET).named("demo-east-node-buckets").inputs["policy"])
    allowed = {
        (action, statement["Resource"])
        for statement in policy["Statement"]
        for action in (
            statement["Action"] if isinstance(statement["Action"], list) else [statement["Action"]]
        )
    }
    assert ("s3:PutObject", "arn:aws:s3:::acme-models/*") in allowed
    assert ("s3:GetObject", "arn:aws:s3:::acme-sets/train/*") in allowed
    assert not any("acme-sets" in arn and "Put" in action for action, arn in allowed)
    assert all("acme-models" in arn or "acme-sets" in arn for _, arn in allowed)


def test_the_budget_counts_the_clusters_tag_and_notifies_the_owner(graph: Ask) -> None:
    text = BASE.replace("scheduler:", "budget: {max_usd_per_month: 50000}\nscheduler:")
    budget = graph(text).only("Budget").inputs
    assert (budget["limitAmount"], budget["timeUnit"]) == ("50000.00", "MONTHLY")
    assert budget["costFilters"] == [
        {"name": "TagKeyValue", "values": ["user:gcluster-cluster$demo"]}
    ]
    assert {tuple(n["subscriberEmailAddresses"]) for n in budget["notifications"]} == {
        ("ops@example.edu",)
    }
    assert graph().of_type("Budget") == ()
