"""NFS and GPFS: who serves, who mounts, with which options, and whose packages are taken."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import yaml

from gcluster.inventory.compile.steps import Step
from gcluster.schemas.load import load_text

sys.path.insert(0, str(Path(__file__).parent))
import golden

sys.path.pop(0)

GPFS = {
    "type": "gpfs",
    "filesystem": "fs1",
    "cluster": "storage.example.edu",
    "contact": ["nsd01"],
    "mount": "/gpfs/fs1",
}
REPOSITORY = {"url": "https://repo.example.edu/scale", "key_fingerprint": "A" * 40}


def steps(
    pool: str, storage: dict[str, Any], *, provider: str = "bare-metal", **more: Any
) -> dict[str, Step]:
    """Return key -> step of a pool of a cluster with one head and two nodes."""
    here: dict[str, Any] = {"provider": provider}
    heads: dict[str, Any] = {"site": "here", "role": "controller"}
    gpu: dict[str, Any] = {"site": "here", "machine": "sim.h100x8", "count": 2}
    if provider == "bare-metal":
        here |= {"ssh": {"user": "ops"}, "network": {"cidr": "10.0.0.0/16"}}
        heads["hosts"] = [{"name": "head01", "address": "10.0.0.1"}]
        gpu = {"site": "here", "machine": "dgx-h100", "hosts": "gpu[01-02]"}
    document = {
        "apiVersion": "gcluster/v1",
        "name": "demo",
        "sites": {"here": here},
        "pools": {"head": heads, "gpu": gpu},
        "scheduler": {"type": "slurm"},
        "storage": storage,
        **more,
    }
    loaded = load_text(yaml.safe_dump(document))
    assert loaded.spec is not None, loaded.diagnostics
    groups = {group.name: group for group in golden.compiled(loaded.spec).groups}
    return {step.key: step for step in groups[pool].steps}


def test_the_pool_that_serves_exports_to_the_sites_networks_and_the_others_mount() -> None:
    storage = {"home": {"type": "nfs", "server": "head", "mount": "/home", "export": "/srv/home"}}
    served = steps("head", storage)["nfs.configure"].variables
    assert steps("head", storage)["nfs.install"].variables == {"nfs_server": True}
    assert served["nfs_exports"] == [
        {
            "path": "/srv/home",
            "host": "head01",
            "clients": ["10.0.0.0/16"],
            "root": False,
            "read_only": False,
        }
    ]
    mounting = steps("gpu", storage)
    assert mounting["nfs.install"].variables == {"nfs_server": False}
    (mount,) = mounting["nfs.join"].variables["nfs_mounts"]
    assert (mount["server"], mount["host"]) == ("10.0.0.1", "head01")
    assert (mount["export"], mount["path"]) == ("/srv/home", "/home")
    assert mounting["nfs.join"].variables["nfs_exports"] == []


def test_a_server_that_exists_is_mounted_by_its_address_and_has_no_exporter() -> None:
    storage = {
        "data": {"type": "nfs", "server": "10.9.0.9", "mount": "/data", "options": ["actimeo=5"]}
    }
    (mount,) = steps("gpu", storage)["nfs.join"].variables["nfs_mounts"]
    assert (mount["server"], mount["host"]) == ("10.9.0.9", "")
    assert mount["options"] == ["actimeo=5"]
    assert steps("head", storage)["nfs.configure"].variables["nfs_exports"] == []


def test_a_pool_that_neither_serves_nor_mounts_has_no_nfs() -> None:
    storage = {"data": {"type": "nfs", "server": "10.9.0.9", "mount": "/data", "pools": ["gpu"]}}
    assert not [key for key in steps("head", storage) if key.startswith("nfs")]


def test_containers_have_no_nfs_in_their_kernel_and_are_left_out() -> None:
    storage = {"home": {"type": "nfs", "server": "head", "mount": "/home"}}
    for pool in ("head", "gpu"):
        found = steps(pool, storage, provider="local")
        assert not [key for key in found if key.startswith("nfs")]


def test_gpfs_comes_from_ones_own_repository_and_joins_the_cluster_that_owns_it() -> None:
    scale = {**GPFS, "version": "5.2.3-0", "accept_license": True, "pagepool": "16 GiB"}
    software = {"sources": {"storage-scale": REPOSITORY}}
    found = steps("gpu", {"scale": scale}, software=software)

    assert found["gpfs_client.install"].variables["gpfs_client_version"] == "5.2.3-0"
    join = found["gpfs_client.join"].variables
    assert join["gpfs_client_cluster"] == "storage.example.edu"
    assert join["gpfs_client_settings"] == {"pagepool": str(16 * 2**30)}
    repositories = found["package_sources.install"].variables["package_sources_repositories"]
    urls = {r["url"] for r in repositories if r["name"] == "storage-scale"}
    assert "https://repo.example.edu/scale/gpfs_debs" in urls


def test_gpfs_of_the_image_needs_no_repository() -> None:
    found = steps("gpu", {"scale": GPFS})
    assert found["gpfs_client.install"].variables["gpfs_client_version"] == ""
    named = {
        repository["name"]
        for key, step in found.items()
        if key == "package_sources.install"
        for repository in step.variables["package_sources_repositories"]
    }
    assert "storage-scale" not in named


def test_gpfs_uses_rdma_over_the_rails_that_are_named() -> None:
    storage = {"scale": {**GPFS, "pools": ["gpu"]}}
    document: dict[str, Any] = {
        "pools": {
            "head": {"site": "here", "role": "controller", "hosts": "head01"},
            "gpu": {
                "site": "here",
                "machine": "dgx-h100",
                "hosts": "gpu01",
                "rdma": {"devices": ["mlx5_0", "mlx5_3"]},
            },
        }
    }
    join = steps("gpu", storage, **document)["gpfs_client.join"].variables
    assert join["gpfs_client_settings"] == {
        "verbsRdma": "enable",
        "verbsPorts": "mlx5_0/1 mlx5_3/1",
    }


LAKE = {"type": "nfs", "server": "10.9.0.9", "mount": "/lake"}
FAST = {
    "type": "nfs",
    "server": "10.9.0.8",
    "mount": "/fast",
    "pools": ["gpu"],
    "copy_of": "lake",
    "stage_within": "30m",
}


def test_nodes_that_mount_a_copy_and_its_source_can_stage_it() -> None:
    storage = {"lake": LAKE, "fast": FAST}
    answer = steps("gpu", storage)["staging.configure"].variables
    assert answer == {
        "staging_copies": [
            {"name": "fast", "source": "/lake", "destination": "/fast", "within_s": 1800}
        ],
        # Of a job that spilled nowhere, only what it names itself (--comment data=fast).
        "staging_before_jobs": {"main": {"needs": [], "copies": {"fast": "fast"}}},
    }
    assert not [key for key in steps("head", storage) if key.startswith("staging")]


def test_a_copy_on_the_nodes_own_disks_is_each_nodes_own() -> None:
    fast = {"type": "local-nvme", "format": True, "mount": "/fast", "copy_of": "lake"}
    answer = steps("gpu", {"lake": LAKE, "fast": {**fast, "stage_within": "30m"}})
    (copy,) = answer["staging.configure"].variables["staging_copies"]
    assert copy["own"] is True


def test_slurm_waits_for_a_prolog_as_long_as_its_staging_may_take() -> None:
    def limit(**storage: Any) -> Any:
        return steps("head", storage)["slurm.configure"].variables.get("slurm_prolog_limit")

    assert limit(lake=LAKE) is None
    assert limit(lake=LAKE, fast=FAST) == 300 + 1800
    other = {**FAST, "mount": "/other", "stage_within": "1h"}
    assert limit(lake=LAKE, fast=FAST, other=other) == 300 + 1800 + 3600
    assert limit(lake=LAKE, fast={**FAST, "stage_within": "48h"}) == 65_533


def test_containers_stage_nothing_for_they_mount_nothing() -> None:
    found = steps("gpu", {"lake": LAKE, "fast": FAST}, provider="local")
    assert not [key for key in found if key.startswith("staging")]


def test_a_partition_that_jobs_spill_to_stages_what_they_need() -> None:
    spill = {"to": "gpu", "after": "10m", "max_usd_per_hour": 200, "only": {"data": ["home"]}}
    loaded = load_text(
        yaml.safe_dump(
            {
                "apiVersion": "gcluster/v1",
                "name": "demo",
                "sites": {
                    "hall": {
                        "provider": "bare-metal",
                        "ssh": {"user": "ops"},
                        "network": {"cidr": "10.20.0.0/16"},
                    },
                    "east": {
                        "provider": "aws",
                        "region": "us-east-1",
                        "zone_id": "use1-az4",
                        "network": {"cidr": "10.40.0.0/16", "admin_cidrs": ["192.0.2.0/24"]},
                    },
                },
                "links": [{"between": ["hall", "east"], "via": "vpn"}],
                "pools": {
                    "head": {
                        "site": "hall",
                        "role": "controller",
                        "hosts": [{"name": "head01", "address": "10.20.0.1"}],
                    },
                    "train": {
                        "site": "hall",
                        "machine": "dgx-h100",
                        "hosts": [{"name": "gpu01", "address": "10.20.1.1"}],
                    },
                    "gpu": {"site": "east", "machine": "p5.48xlarge", "count": {"max": 4}},
                },
                "storage": {
                    "home": {**LAKE, "mount": "/data", "site": "hall"},
                    "lake": {
                        "type": "object",
                        "bucket": "s3://lake",
                        "mount": "/lake",
                        "pools": ["gpu"],
                        "copy_of": "home",
                    },
                    "fast": {**FAST, "mount": "/data"},
                },
                "scheduler": {
                    "type": "slurm",
                    "partitions": {"train": {"pools": ["train"], "default": True, "spill": spill}},
                },
            }
        )
    )
    assert loaded.spec is not None, loaded.diagnostics
    (group,) = [each for each in golden.compiled(loaded.spec).groups if each.name == "gpu"]
    (answer,) = [s.variables for s in group.steps if s.key == "staging.configure"]
    assert answer["staging_before_jobs"] == {
        "gpu": {"needs": ["home"], "copies": {"home": "fast", "fast": "fast"}}
    }


def test_lustre_behind_routers_is_reached_by_them_over_the_interfaces_that_are_named() -> None:
    store = {
        "type": "lustre", "mount": "/scratch", "mgs": "10.9.0.5@o2ib:10.9.0.6@o2ib",
        "fsname": "work", "interfaces": ["eth1", "eth2"],
        "routers": ["10.0.0.7@tcp", "10.0.0.8@tcp"],
        "tunables": {"osc.*.max_rpcs_in_flight": "64"},
    }  # fmt: skip
    configure = steps("gpu", {"scratch": store})["lustre_client.configure"].variables
    assert configure["lustre_client_networks"] == [
        {"net": "tcp", "towards": "10.0.0.7", "interfaces": ["eth1", "eth2"]}
    ]
    assert configure["lustre_client_routes"] == [
        {"net": "o2ib", "gateway": router} for router in store["routers"]
    ]
    (mount,) = configure["lustre_client_mounts"]
    assert mount["tunables"] == store["tunables"]

    del store["routers"], store["interfaces"]
    configure = steps("gpu", {"scratch": store})["lustre_client.configure"].variables
    assert configure["lustre_client_networks"] == [{"net": "o2ib", "towards": "10.9.0.5"}]
    assert configure["lustre_client_routes"] == []
