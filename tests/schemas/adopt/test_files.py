"""Cluster files, blueprints and inventories become specs; each leaf is carried over or listed."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gcluster.schemas.adopt.aws.parallelcluster import adopt_parallelcluster
from gcluster.schemas.adopt.aws.place import AwsPlace
from gcluster.schemas.adopt.draft import (
    Adopted,
    NothingToAdopt,
    machines_text,
    spec_text,
)
from gcluster.schemas.adopt.gcp.toolkit import adopt_toolkit
from gcluster.schemas.adopt.inventories.ansible import adopt_ansible
from gcluster.schemas.adopt.source import Source, words
from gcluster.schemas.load import Loaded, load

CASES = Path(__file__).parent.parent.parent / "cases" / "adopt"
KNOWN_SECRET = "planted-secret-4711"  # noqa: S105  # looked for in what is written


def data(name: str) -> Any:
    return yaml.safe_load((CASES / name).read_text())


def pcluster(found: Any, zone_id: str = "use1-az4") -> Adopted:
    place = AwsPlace(zone_id=zone_id)
    return adopt_parallelcluster(found, name="p5", origin="x", date="2026-11-22", place=place)


def toolkit(found: Any, **given: Any) -> Adopted:
    given = {"project_id": "acme", **given}
    return adopt_toolkit(found, given=given, name="", origin="x", date="2026-11-22")


def ansible(found: Any, **roles: str) -> Adopted:
    return adopt_ansible(found, name="a", roles=roles, origin="x", date="2026-11-22")


INVENTORY: dict[str, Any] = {
    "_meta": {
        "hostvars": {
            "c1": {"ansible_host": "10.0.0.1", "ansible_user": "ops"},
            "n1": {"ansible_host": "10.0.1.{{ 1 }}", "ansible_user": "ops", "secret": KNOWN_SECRET},
            "n2": {
                "ansible_user": "admin",
                "ansible_port": 2222,
                "ansible_ssh_common_args": "-J j",
            },
        }
    },
    "all": {"children": ["heads", "gpu", "slurm"]},
    "heads": {"hosts": ["c1"]},
    "gpu": {"hosts": ["n1", "n2"]},
    "slurm": {"hosts": ["c1", "n1", "n2"]},
}


def written(found: Adopted, folder: Path) -> Loaded:
    (folder / "cluster.yaml").write_text(spec_text(found, "x"))
    if found.machines:
        (folder / "machines.yaml").write_text(machines_text(found, "x"))
    return load(folder / "cluster.yaml")


@pytest.mark.parametrize(
    "make",
    [
        lambda: pcluster(data("parallelcluster/p5.yaml")),
        lambda: toolkit(data("toolkit/ml-slurm.yaml")),
        lambda: ansible(INVENTORY, heads="controller"),
    ],
)
def test_the_spec_is_right_and_no_secret_is_in_it(make: Any, tmp_path: Path) -> None:
    found = make()
    loaded = written(found, tmp_path)
    assert [d for d in loaded.diagnostics if d.is_error] == []
    assert KNOWN_SECRET not in (tmp_path / "cluster.yaml").read_text()


def test_queues_become_partitions_and_compute_resources_pools() -> None:
    spec = pcluster(data("parallelcluster/p5.yaml")).spec
    assert spec["scheduler"] == {
        "type": "slurm",
        "partitions": {
            "train": {"pools": ["train"], "default": True},
            "Mixed_Work": {"pools": ["Mixed_Work-g5", "Mixed_Work-several"]},
        },
        "suspend_after": "15m",
        "accounting": {
            "database": "db.example.org:3306",
            "password": "aws-secret:arn:aws:secretsmanager:us-east-1:111122223333:secret:slurmdb",
        },
    }
    assert spec["pools"]["train"] == {
        "site": "aws",
        "machine": "p5.48xlarge",
        "count": 4,
        "market": [{"capacity_block": "cr-0123456789abcdef0"}],
        "features": ["p5.48xlarge", "p5", "efa"],
    }
    assert spec["pools"]["Mixed_Work-g5"]["count"] == {"min": 0, "max": 16}
    assert spec["pools"]["Mixed_Work-g5"]["market"] == [{"spot_max_usd_per_hour": 4.5}]
    assert spec["pools"]["Mixed_Work-several"]["count"] == {"min": 0, "max": 10}
    assert spec["pools"]["door"]["count"] == 2
    assert spec["storage"]["scratch"]["capacity"] == "4800 GiB"
    assert spec["tags"] == {"team": "ml"}


def test_nodesets_become_pools_and_variables_are_filled_in() -> None:
    spec = toolkit(data("toolkit/ml-slurm.yaml")).spec
    assert spec["name"] == "ml-example"
    assert spec["pools"]["mega"] == {
        "site": "gcp",
        "machine": "a3-megagpu-8g",
        "count": 4,
        "market": [{"reservation": "mega-block"}],
    }
    assert spec["pools"]["g2"]["market"] == ["spot"]
    assert spec["scheduler"]["partitions"]["mega"] == {"pools": ["mega"], "default": True}
    assert spec["storage"] == {
        "home": {
            "type": "filestore",
            "mount": "/home",
            "site": "gcp",
            "tier": "basic-ssd",
            "capacity": "2560 GiB",
        },
        "data": {"type": "object", "mount": "/data", "bucket": "gs://acme-data"},
    }


def test_a_deployment_file_overrides_the_blueprint() -> None:
    spec = toolkit(data("toolkit/ml-slurm.yaml"), mega="a3-ultragpu-8g", region="us-central1").spec
    assert spec["pools"]["mega"]["machine"] == "a3-ultragpu-8g"
    assert spec["sites"]["gcp"]["region"] == "us-central1"


def test_every_module_of_a_blueprint_is_in_the_spec_or_listed() -> None:
    listed = " ".join(each.where for each in toolkit(data("toolkit/ml-slurm.yaml")).not_carried)
    assert "module script" in listed
    assert "module slurm_controller: enable_controller_public_ips" in listed


def test_groups_become_pools_and_a_host_is_in_one() -> None:
    spec = ansible(INVENTORY, heads="controller").spec
    assert spec["sites"]["here"]["ssh"] == {"user": "ops", "bastion": "j"}
    assert spec["pools"]["heads"]["hosts"] == [{"name": "c1", "address": "10.0.0.1"}]
    assert spec["pools"]["gpu"]["hosts"] == ["n1", {"name": "n2", "user": "admin", "port": 2222}]
    assert "slurm" not in spec["pools"]


def test_variables_are_listed_by_name_alone() -> None:
    listed = [each.where for each in ansible(INVENTORY, heads="controller").not_carried]
    assert "variable secret of 1 host" in listed
    assert "variable ansible_host of 1 hosts" in " ".join(listed)
    assert KNOWN_SECRET not in " ".join(listed)


def _leaves(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _leaves(item, (*path, key))
    elif isinstance(value, list) and any(isinstance(i, dict | list) for i in value):
        for index, item in enumerate(value):
            yield from _leaves(item, (*path, index))
    elif value not in (None, {}, []):
        yield path


def test_every_leaf_of_a_source_is_read_or_reported() -> None:
    found = data("parallelcluster/p5.yaml")
    source = Source(found)
    assert {each.path for each in source.not_carried()} == set(_leaves(found))
    source.take("Region")
    next(source.each("Tags")).text("Key")
    rest = {words(each.path) for each in source.not_carried()}
    assert {"Region", "Tags[0].Key"} & rest == set()
    assert "Tags[0].Value" in rest


@given(
    st.lists(
        st.sampled_from(["HeadNode", "Scheduling", "Image", "SharedStorage", "Tags"]), max_size=3
    ),
    st.sampled_from([None, 3, "x", [], [3], {}, {"a": 1}]),
)
def test_a_file_of_another_shape_is_no_traceback(keys: list[str], value: Any) -> None:
    found = copy.deepcopy(data("parallelcluster/p5.yaml"))
    for key in keys:
        found[key] = value
    try:
        pcluster(found)
    except NothingToAdopt:
        return


@pytest.mark.parametrize("found", [None, 3, "x", [], {}, {"cluster": {}}, {"Region": "x"}])
def test_what_is_no_cluster_file_has_nothing_to_adopt(found: Any) -> None:
    with pytest.raises(NothingToAdopt):
        pcluster(found)


@pytest.mark.parametrize(
    "found", [None, 3, [], {}, {"deployment_groups": []}, {"deployment_groups": 3}]
)
def test_what_is_no_blueprint_has_nothing_to_adopt(found: Any) -> None:
    with pytest.raises(NothingToAdopt):
        toolkit(found)


def test_variables_that_refer_to_each_other_in_a_ring_end() -> None:
    found = data("toolkit/ml-slurm.yaml")
    found["vars"] |= {"mega": "$(vars.machine)", "machine": "$(vars.mega)"}
    adopted = toolkit(found)
    assert "machine" not in adopted.spec["pools"]["mega"]
    listed = {each.where for each in adopted.not_carried if each.kind == "unfinished"}
    assert "module mega_nodeset: machine_type: $(vars.machine)" in listed


def test_an_inventory_without_controllers_has_nothing_to_adopt() -> None:
    with pytest.raises(NothingToAdopt, match="controller"):
        ansible({"_meta": {"hostvars": {}}, "gpu": {"hosts": ["n1"]}})
