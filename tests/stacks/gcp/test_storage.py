"""Data is protected, private and encrypted, and outlives the rest."""

from __future__ import annotations

import msgspec
from gcp_cases import TEMPLATE, graph_of, items, recorded, spec_of
from tests.stacks.recorded_graph import Graph


def test_every_disk_and_file_system_is_encrypted_with_the_owners_key() -> None:
    graph, key = graph_of("a3-megagpu-8g"), "projects/acme-ml/locations/us-central1/keyRings/r/"
    for made in graph.of_type(TEMPLATE):
        for disk in items(made.inputs["disks"]):
            assert str(disk["diskEncryptionKey"]).find(key) > 0, made.name
    assert str(graph.only("gcp:lustre/instance:Instance").inputs["kmsKey"]).startswith(key)


def test_data_is_protected_and_goes_last() -> None:
    for machine, kinds in (
        ("a3-megagpu-8g", ["gcp:lustre/instance:Instance"]),
        ("a3-ultragpu-8g", ["gcp:storage/bucket:Bucket"]),
    ):
        graph = graph_of(machine)
        for resource in graph.recorded.resources:
            data = resource.type in kinds
            assert resource.options.protect is data, resource.name
            assert resource.options.retain_on_delete is data, resource.name


def test_the_file_system_needs_private_services_access_and_is_gone_before_it() -> None:
    graph = graph_of("a3-megagpu-8g")
    order = [resource.type for resource in graph.creation_order()]
    lustre = graph.only("gcp:lustre/instance:Instance")
    assert graph.only("Connection") in graph.needs(lustre)
    assert order.index("gcp:servicenetworking/connection:Connection") < order.index(lustre.type)
    assert lustre.inputs["capacityGib"] == "36000"
    assert lustre.inputs["perUnitStorageThroughput"] == "500"


def test_a_bucket_is_private_versioned_and_only_the_made_one_is_made() -> None:
    graph = graph_of("a3-ultragpu-8g")
    bucket = graph.only("gcp:storage/bucket:Bucket")
    assert bucket.inputs["name"] == "acme-runs"
    assert bucket.inputs["publicAccessPrevention"] == "enforced"
    assert bucket.inputs["uniformBucketLevelAccess"] is True
    assert bucket.inputs["versioning"] == {"enabled": True}
    assert bucket.inputs["forceDestroy"] is False
    roles = {m.inputs["bucket"]: m.inputs["role"] for m in graph.of_type("BucketIAMMember")}
    assert roles == {
        "acme-datasets": "roles/storage.objectViewer",
        "acme-runs": "roles/storage.objectUser",
    }


def test_a_bucket_of_real_folders_has_no_versions() -> None:
    spec = spec_of("a3-ultragpu-8g")
    runs = msgspec.structs.replace(spec.storage["runs"], hierarchical_namespace=True)
    spec = msgspec.structs.replace(spec, storage={**spec.storage, "runs": runs})
    bucket = Graph(recorded(spec)).only("gcp:storage/bucket:Bucket")
    assert bucket.inputs["hierarchicalNamespace"] == {"enabled": True}
    assert bucket.inputs["uniformBucketLevelAccess"] is True
    assert "versioning" not in bucket.inputs
