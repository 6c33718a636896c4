"""Node groups of eksctl: how many nodes a pool has, and whether it grows."""

from __future__ import annotations

from typing import Any

import pytest

from gcluster.schemas.adopt.aws.eksctl import adopt_eksctl
from gcluster.schemas.adopt.aws.place import AwsPlace
from gcluster.schemas.adopt.draft import Adopted


def adopted(**group: Any) -> Adopted:
    data = {
        "apiVersion": "eksctl.io/v1alpha5",
        "kind": "ClusterConfig",
        "metadata": {"name": "lab", "region": "us-east-1"},
        "managedNodeGroups": [{"name": "gpu", "instanceType": "p5.48xlarge", **group}],
    }
    place = AwsPlace(zone_id="use1-az4")
    return adopt_eksctl(data, name="", place=place, origin="a test", date="2026-11-28")


GROWS = {"iam": {"withAddonPolicies": {"autoScaler": True}}}
BOUNDS = {"minSize": 0, "desiredCapacity": 2, "maxSize": 10}


@pytest.mark.parametrize(
    ("group", "count"),
    [
        (BOUNDS | GROWS, {"min": 0, "max": 10}),
        (BOUNDS, 2),
        (BOUNDS | {"iam": {"withAddonPolicies": {"ebs": True}}}, 2),
        ({"minSize": 4, "desiredCapacity": 4, "maxSize": 4} | GROWS, 4),
        ({"minSize": 3, "maxSize": 3}, 3),
        ({"desiredCapacity": 5}, 5),
    ],
)
def test_a_pool_grows_where_an_autoscaler_may_size_its_group(group: Any, count: Any) -> None:
    assert adopted(**group).spec["pools"]["gpu"]["count"] == count


def test_what_is_left_of_the_sizes_is_listed_with_the_reason() -> None:
    left = {e.where.rpartition(".")[2]: e.why for e in adopted(**BOUNDS, **GROWS).not_carried}
    assert "starts with 0 nodes" in left["desiredCapacity: 2"]
    left = {e.where.rpartition(".")[2]: e.kind for e in adopted(**BOUNDS).not_carried}
    assert (left["minSize: 0"], left["maxSize: 10"]) == ("replaced", "replaced")
