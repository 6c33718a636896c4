"""Which pools mount and serve which storage, over which networks, with packages from where."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from gcluster.inventory.compile.node import node_facts, storage_facts
from gcluster.inventory.compile.roles import node_steps
from gcluster.inventory.compile.steps import Step
from gcluster.inventory.hosts import ClusterInventory, Host, SshTarget
from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.load import load, load_text

CATALOG = load_catalog()
EXAMPLE = Path(__file__).parents[3] / "examples/aws-p5-slurm.yaml"
RUNNING = {"type": "lustre", "mount": "/lustre", "mgs": "10.0.8.1@o2ib", "fsname": "scratch"}
SERVED = {
    "type": "lustre",
    "mount": "/lustre",
    "servers": {
        "pool": "oss",
        "metadata_devices": ["/dev/disk/by-id/nvme-a"],
        "object_devices": ["/dev/disk/by-id/nvme-b", "/dev/disk/by-id/nvme-c"],
        "network": "o2ib",
        "failover": True,
        "format": True,
    },
}


def steps(storage: dict[str, Any], **inventory: Any) -> dict[str, dict[str, Step]]:
    """Return pool -> key -> step, on existing hosts with the addresses of two servers."""
    hall = {"site": "hall", "cpu": {"sockets": 2, "cores": 56}, "memory": "2000 GiB"}
    document = {
        "apiVersion": "gcluster/v1",
        "name": "demo",
        "sites": {"hall": {"provider": "bare-metal", "ssh": {"user": "ops"}}},
        "pools": {
            "head": {"site": "hall", "role": "controller", "hosts": "head01"},
            "gpu": {**hall, "machine": "hgx-h100-8", "hosts": "gpu[01-02]"},
            "oss": {**hall, "machine": "hgx-h100-8", "hosts": "oss[01-02]"},
        },
        "storage": storage,
        "scheduler": {"type": "slurm", "partitions": {"all": {"pools": ["gpu"]}}},
        "software": {"lustre": "2.15.6"},
    }
    loaded = load_text(yaml.safe_dump(document))
    assert loaded.spec is not None, loaded.diagnostics
    servers = [
        Host(
            name=f"oss0{n}",
            site="hall",
            pool="oss",
            role="compute",
            machine=None,
            address=f"10.0.8.{n}",
            ssh=SshTarget(user="ops"),
        )
        for n in (1, 2)
    ]
    known = ClusterInventory(cluster="demo", hosts=tuple(servers), **inventory)
    facts = node_facts(loaded.spec, CATALOG, known)
    return {pool: {s.key: s for s in node_steps(node)} for pool, node in facts.items()}


def test_a_file_system_that_runs_is_mounted_by_all_pools_of_its_site() -> None:
    found = steps({"scratch": {**RUNNING, "options": ["user_xattr"]}})
    for pool in ("head", "gpu"):
        join = found[pool]["lustre_client.join"].variables
        assert join["lustre_client_networks"] == [{"net": "o2ib", "towards": "10.0.8.1"}]
        (mount,) = join["lustre_client_mounts"]
        assert mount["device"] == "10.0.8.1@o2ib:/scratch"
        assert mount["options"] == ["flock", "noatime", "user_xattr"]


def test_only_the_named_pools_mount_it() -> None:
    found = steps({"scratch": {**RUNNING, "pools": ["gpu"]}})
    assert "lustre_client.join" in found["gpu"]
    assert not [key for key in found["head"] if key.startswith("lustre")]


def test_where_lustre_is_the_kernel_is_held() -> None:
    found = steps({"scratch": RUNNING})
    assert "kernel.install" in found["head"]
    assert "kernel.install" not in steps({})["head"]


def test_clients_take_both_managers_of_a_served_file_system_and_count_its_osts() -> None:
    (mount,) = steps({"scratch": SERVED})["gpu"]["lustre_client.join"].variables[
        "lustre_client_mounts"
    ]
    assert mount["device"] == "10.0.8.1@o2ib:10.0.8.2@o2ib:/scratch"
    assert mount["osts"] == 4


def test_servers_get_servers_packages_and_targets_and_mount_nothing() -> None:
    oss = steps({"scratch": SERVED})["oss"]
    assert oss["lustre_client.install"].variables["lustre_client_kind"] == "ldiskfs"
    assert oss["lustre_client.install"].variables["lustre_client_source"] == "lustre-server"
    assert oss["lustre_client.join"].variables["lustre_client_mounts"] == []
    join = oss["lustre_server.join"].variables
    assert [host["name"] for host in join["lustre_server_hosts"]] == ["oss01", "oss02"]
    assert join["lustre_server_format"] is True


def test_nothing_is_formatted_unless_the_spec_has_the_word() -> None:
    servers = {key: value for key, value in SERVED["servers"].items() if key != "format"}  # type: ignore[attr-defined]  # a dict
    oss = steps({"scratch": {**SERVED, "servers": servers}})["oss"]
    assert oss["lustre_server.join"].variables["lustre_server_format"] is False


@pytest.mark.parametrize(
    ("bucket", "tool"), [("s3://data", "mountpoint-s3"), ("gs://data/train", "gcsfuse")]
)
def test_a_bucket_is_mounted_by_the_tool_of_its_kind(bucket: str, tool: str) -> None:
    found = steps(
        {"data": {"type": "object", "mount": "/data", "bucket": bucket, "cache": "1 TiB"}}
    )["gpu"]
    assert found["object_mount.install"].variables["object_mount_tools"][0]["name"] == tool
    (mount,) = found["object_mount.join"].variables["object_mount_mounts"]
    assert mount["tool"] == tool
    assert mount["bucket"] == "data"
    assert mount["cache_mib"] == 2**20


def test_aws_tarball_is_taken_by_its_checksum() -> None:
    found = steps({"data": {"type": "object", "mount": "/data", "bucket": "s3://data"}})["gpu"]
    (tool,) = found["object_mount.install"].variables["object_mount_tools"]
    assert tool["url"].endswith(f"mount-s3-{tool['version']}-x86_64.tar.gz")
    assert tool["checksum"].startswith("sha256:")


def test_what_a_provider_made_is_mounted_by_its_address() -> None:
    spec = load(EXAMPLE).spec
    assert spec is not None
    made = ClusterInventory(cluster="x", hosts=(), storage={"scratch": "fs-1@tcp:/abc"})
    assert storage_facts(spec, made)["train"].devices["scratch"] == "fs-1@tcp:/abc"
