"""File systems that clouds run are mounted by their address, and planned until it is known."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from gcluster.inventory.compile.node import node_facts
from gcluster.inventory.compile.roles import node_steps
from gcluster.inventory.compile.steps import Step
from gcluster.inventory.hosts import ClusterInventory
from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.load import load_text

CATALOG = load_catalog()
UNKNOWN = "known-after-apply"
CLOUDS = {
    "aws": {
        "site": {"region": "us-east-1", "zone_id": "use1-az4"},
        "head": "m7i.4xlarge",
        "gpu": "p5.48xlarge",
        "size": {"capacity": "4800 GiB", "throughput": "250 MB/s/TiB"},
        "planned": f"{UNKNOWN}@tcp:/{UNKNOWN}",
        "device": "fs-0a.fsx.us-east-1.amazonaws.com@tcp:/abcdbev",
        "source": "fsx-lustre",
        "options": ["relatime", "flock"],
    },
    "gcp": {
        "site": {"project": "acme-ml", "region": "us-central1", "zone": "us-central1-a"},
        "head": "n2-standard-8",
        "gpu": "a3-highgpu-8g",
        "size": {"capacity": "36000 GiB", "throughput": "500 MB/s/TiB", "fsname": "scratch"},
        "planned": f"{UNKNOWN}@tcp:/scratch",
        "device": "10.90.0.2@tcp:/scratch",
        "source": "gcp-lustre",
        "options": ["flock", "noatime"],
    },
    "azure": {
        "site": {
            "subscription": "0b1f6471-1bf0-4dda-aec3-cb9272f09590",
            "region": "eastus",
            "zone": "1",
        },
        "head": "Standard_D16s_v5",
        "gpu": "Standard_ND96isr_H100_v5",
        "size": {"capacity": "16 TiB", "throughput": "125 MB/s/TiB"},
        "planned": f"{UNKNOWN}@tcp:/{UNKNOWN}",
        "device": "10.60.2.4@tcp:/lustrefs",
        "source": "amlfs",
        "options": ["flock", "noatime"],
    },
    "oci": {
        "site": {
            "region": "us-ashburn-1",
            "tenancy": "ocid1.tenancy.oc1..acme",
            "compartment": "ocid1.compartment.oc1..research",
        },
        "head": "VM.Standard.E5.Flex-8-128",
        "gpu": "BM.GPU.H100.8",
        "size": {"capacity": "31200 GiB", "throughput": "125 MB/s/TiB", "fsname": "scratch"},
        "planned": f"{UNKNOWN}@tcp:/scratch",
        "device": "10.70.0.4@tcp:/scratch",
        "source": "lustre",
        "options": ["flock", "noatime"],
    },
}


def steps(cloud: str, known: dict[str, str], **of_storage: Any) -> dict[str, dict[str, Step]]:
    """Return pool -> key -> step; the elastic pool has no machine at the time."""
    here = CLOUDS[cloud]
    document = {
        "apiVersion": "gcluster/v1",
        "name": "demo",
        "sites": {"here": {"provider": cloud, **here["site"]}},
        "pools": {
            "head": {"site": "here", "role": "controller", "machine": here["head"]},
            "burst": {"site": "here", "machine": here["gpu"], "count": {"min": 0, "max": 4}},
        },
        "storage": {
            "scratch": {
                "type": "lustre",
                "mount": "/lustre",
                "site": "here",
                **here["size"],
                **of_storage,
            }
        },
        "scheduler": {"type": "slurm"},
    }
    loaded = load_text(yaml.safe_dump(document), check=False)
    assert loaded.spec is not None, loaded.diagnostics
    inventory = ClusterInventory(cluster="demo", hosts=(), storage=known)
    facts = node_facts(loaded.spec, CATALOG, inventory)
    return {pool: {s.key: s for s in node_steps(node)} for pool, node in facts.items()}


@pytest.mark.parametrize("cloud", CLOUDS)
def test_all_nodes_mount_it_with_their_cloud_s_client_and_options(cloud: str) -> None:
    here = CLOUDS[cloud]
    found = steps(cloud, {"scratch": here["device"]})
    for pool in ("head", "burst"):
        install = found[pool]["lustre_client.install"].variables
        assert install["lustre_client_source"] == here["source"]
        join = found[pool]["lustre_client.join"].variables
        host = here["device"].partition("@")[0]
        assert join["lustre_client_networks"] == [{"net": "tcp", "towards": host}]
        (mount,) = join["lustre_client_mounts"]
        assert (mount["path"], mount["device"]) == ("/lustre", here["device"])
        assert mount["options"] == here["options"]


@pytest.mark.parametrize("cloud", CLOUDS)
def test_before_it_is_made_its_steps_are_there_with_an_address_that_is_not_known(
    cloud: str,
) -> None:
    planned = steps(cloud, {})["burst"]
    (mount,) = planned["lustre_client.join"].variables["lustre_client_mounts"]
    assert mount["device"] == CLOUDS[cloud]["planned"]
    real = steps(cloud, {"scratch": CLOUDS[cloud]["device"]})["burst"]
    assert planned["lustre_client.install"] == real["lustre_client.install"], "fits baked images"


def test_over_efa_only_nodes_that_have_it_take_it() -> None:
    found = steps("aws", {"scratch": CLOUDS["aws"]["device"]}, efa=True)

    def nets(pool: str) -> list[str]:
        join = found[pool]["lustre_client.join"].variables
        return [network["net"] for network in join["lustre_client_networks"]]

    assert nets("burst") == ["tcp", "efa"]
    assert nets("head") == ["tcp"]
