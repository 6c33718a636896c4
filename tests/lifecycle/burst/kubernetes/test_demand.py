"""Which nodes waiting pods need: what counts, in which order, and who is placed together."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from gcluster.lifecycle.operations.burst.kubernetes.demand import (
    Room,
    WaitingPod,
    amount,
    placed,
)
from gcluster.lifecycle.operations.burst.kubernetes.reading import WAITING_FIELDS, waiting_pods

GPU = "nvidia.com/gpu"


def room(name: str, gpus: int = 8, **labels: str) -> Room:
    """Return a node with GPUs."""
    return Room(
        node=name,
        labels={"pool": "gpu", **labels},
        taints=(),
        free={GPU: Decimal(gpus), "pods": Decimal(110)},
    )


def pod(name: str, gpus: int = 8, **more: Any) -> WaitingPod:
    """Return a pod that requests GPUs."""
    requests = {GPU: Decimal(gpus), "pods": Decimal(1)}
    return WaitingPod(id=f"a/{name}", created=more.pop("created", 0.0), requests=requests, **more)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("8", 8), ("100m", "0.1"), ("1.5", "1.5"), ("128Mi", 128 * 2**20), ("2Gi", 2 * 2**30),
        ("5k", 5000), ("3M", 3_000_000), ("1e3", 1000), ("0", 0),
    ],
)  # fmt: skip
def test_quantities_are_read_as_the_api_writes_them(text: str, number: int | str) -> None:
    assert amount(text) == Decimal(number)


def test_pods_share_a_node_and_no_more_nodes_are_needed_than_hold_them() -> None:
    found = placed([pod("a", 4), pod("b", 4), pod("c", 2)], [room("n1"), room("n2"), room("n3")])
    assert found.nodes == {"n1": ("a/a", "a/b"), "n2": ("a/c",)}


def test_higher_priority_comes_first_then_the_older() -> None:
    pods = [pod("old"), pod("young", created=9.0), pod("high", created=99.0, priority=5)]
    assert placed(pods, [room("n1"), room("n2")]).nodes == {"n1": ("a/high",), "n2": ("a/old",)}


def test_a_gang_that_does_not_fit_as_a_whole_gets_nothing_and_holds_up_none() -> None:
    gang = [pod(name, gang="job") for name in ("g1", "g2", "g3")]
    rooms = [room("n1"), room("n2")]
    assert placed([*gang, pod("single", created=5.0)], rooms).nodes == {"n1": ("a/single",)}
    assert placed(gang[:2], rooms).nodes == {"n1": ("a/g1",), "n2": ("a/g2",)}


@pytest.mark.parametrize(
    ("more", "fits"),
    [
        ({"selector": {"pool": "gpu"}}, True),
        ({"selector": {"pool": "cpu"}}, False),
        ({"affinity": ({"matchExpressions": [
            {"key": "pool", "operator": "In", "values": ["gpu", "x"]}]},)}, True),
        ({"affinity": ({"matchExpressions": [
            {"key": "pool", "operator": "NotIn", "values": ["gpu"]}]},)}, False),
        ({"affinity": ({"matchExpressions": [{"key": "pool", "operator": "DoesNotExist"}]},
                       {"matchExpressions": [{"key": "n", "operator": "Gt", "values": ["3"]}]})},
         True),
        ({"affinity": ({"matchFields": [
            {"key": "metadata.name", "operator": "In", "values": ["other"]}]},)}, False),
        ({"affinity": ({},)}, False),
    ],
)  # fmt: skip
def test_selectors_and_affinity_are_held(more: dict[str, Any], fits: bool) -> None:
    assert bool(placed([pod("a", **more)], [room("n1", n="4")]).nodes) is fits


@pytest.mark.parametrize(
    ("toleration", "fits"),
    [
        (None, False),
        ({"operator": "Exists"}, True),
        ({"key": "own", "operator": "Exists"}, True),
        ({"key": "own", "value": "x"}, True),
        ({"key": "own", "value": "y"}, False),
        ({"key": "own", "value": "x", "effect": "NoExecute"}, False),
    ],
)
def test_taints_have_to_be_tolerated(toleration: dict[str, Any] | None, fits: bool) -> None:
    taint = {"key": "own", "value": "x", "effect": "NoSchedule"}
    node = Room(node="n1", labels={}, taints=(taint,), free=room("n1").free)
    given = () if toleration is None else (toleration,)
    assert bool(placed([pod("a", tolerations=given)], [node]).nodes) is fits


def test_pods_that_keep_each_other_away_have_a_node_each() -> None:
    found = placed([pod("a", 1, apart="set"), pod("b", 1, apart="set")], [room("n1"), room("n2")])
    assert found.nodes == {"n1": ("a/a",), "n2": ("a/b",)}


def row(spec: str = '{"containers": []}', **more: str) -> dict[str, str]:
    """Return what the API says of a pod that can't be placed."""
    plain = dict.fromkeys(WAITING_FIELDS, "") | {"namespace": "a", "name": "p"}
    created = {"created": "2026-01-01T00:00:00Z"}
    return plain | created | {"reason": "Unschedulable", "spec": spec} | more


@pytest.mark.parametrize(
    "other",
    [
        row(reason="SchedulingGated"),
        row(nominated="n1"),
        row(deleted="2026-01-01T00:00:00Z"),
        row(unplaced="n1"),
        row('{"containers": [], "resourceClaims": [{"name": "gpus"}]}'),
        row('{"containers": [], "affinity": {"podAffinity": '
            '{"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}}}'),
    ],
)  # fmt: skip
def test_a_pod_that_waits_for_something_else_gets_no_node(other: dict[str, str]) -> None:
    assert waiting_pods([other]) == []


def test_what_a_pod_occupies_is_what_the_scheduler_counts() -> None:
    spec = """{"priority": 7, "containers": [
        {"resources": {"requests": {"cpu": "500m", "nvidia.com/gpu": "4"}}},
        {"resources": {"requests": {"cpu": "1"}}}],
      "initContainers": [
        {"resources": {"requests": {"cpu": "3"}}}], "overhead": {"cpu": "100m"}}"""
    [found] = waiting_pods([row(spec, index="0", owner="uid")])
    assert found.requests == {
        "pods": Decimal(1),
        "cpu": Decimal("3.1"),
        GPU: Decimal(4),
    }
    assert (found.priority, found.gang, found.created) == (7, "uid", 1_767_225_600.0)
