"""Where nodes at another site find data: itself, a copy at its folder, one without staging."""

from __future__ import annotations

import yaml

from gcluster.schemas.derived.storage import DataLocation, Staged, data_locations, staged
from gcluster.schemas.load import load_text
from gcluster.schemas.spec import ClusterSpec

DATA = {"type": "nfs", "mount": "/data", "server": "10.20.8.9", "site": "hall"}
LAKE = {"type": "object", "mount": "/lake", "bucket": "s3://lake", "pools": ["burst"]}
WARM = {
    "type": "lustre",
    "mount": "/data",
    "mgs": "10.40.0.5@tcp",
    "fsname": "warm",
    "pools": ["burst"],
    "copy_of": "lake",
    "stage_within": "1h",
}


def spec(**storage: object) -> ClusterSpec:
    document = {
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
            "burst": {"site": "east", "machine": "p5.48xlarge", "count": {"max": 4}},
        },
        "storage": storage,
        "scheduler": {"type": "slurm"},
    }
    loaded = load_text(yaml.safe_dump(document))
    assert loaded.spec is not None, loaded.diagnostics
    return loaded.spec


def test_a_copy_at_the_jobs_folder_comes_first_even_if_it_must_be_staged() -> None:
    answer = spec(data=DATA, lake={**LAKE, "copy_of": "data"}, warm=WARM)
    assert data_locations(answer, "burst") == {
        "data": DataLocation(storage="warm", stage_within=3600.0),
        "lake": DataLocation(storage="lake"),
        "warm": DataLocation(storage="warm"),
    }


def test_of_copies_elsewhere_one_that_needs_no_staging_comes_first() -> None:
    warm = {**WARM, "mount": "/warm"}
    answer = spec(data=DATA, warm=warm, lake={**LAKE, "copy_of": "data"})
    assert data_locations(answer, "burst")["data"] == DataLocation(storage="lake")


def test_data_without_a_copy_is_not_there() -> None:
    assert "data" not in data_locations(spec(data=DATA, lake=LAKE), "burst")


def test_nodes_stage_what_they_mount_from_what_they_mount() -> None:
    answer = spec(data=DATA, lake={**LAKE, "copy_of": "data"}, warm=WARM)
    assert staged(answer, "burst") == (
        Staged(storage="warm", source="/lake", destination="/data", within=3600.0),
    )
    assert staged(answer, "head") == ()
