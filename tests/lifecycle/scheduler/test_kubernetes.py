"""Kubernetes drains, gives back and requeues as a rolling change requests."""

from __future__ import annotations

import pytest
from tests.lifecycle.kubernetes.api_double import ApiDouble

from gcluster.lifecycle.scheduler.base import NodeUse, SchedulerSilent
from gcluster.lifecycle.scheduler.kubernetes import Kubernetes

NODES = [
    {"name": "gpu001", "ready": "True"},
    {"name": "gpu002", "ready": "True", "cordoned": "true", "reason": "gcluster up: run 7"},
    {"name": "gpu003", "ready": "False", "not_ready": "container runtime is down"},
]
POD = {"namespace": "nlp", "node": "gpu001", "phase": "Running"}
PODS = [
    {**POD, "name": "train-0", "owner": "Job", "owner_name": "train"},
    {**POD, "name": "once-0", "owner": "Job", "owner_name": "once"},
    {**POD, "name": "survives-0", "owner": "Job", "owner_name": "survives"},
    {**POD, "name": "web-1", "owner": "ReplicaSet", "owner_name": "web"},
    {**POD, "name": "bare"},
    {**POD, "name": "proxy", "owner": "DaemonSet"},
]
JOBS = [
    {"namespace": "nlp", "name": "train", "retries": "6", "failed": "1"},
    {"namespace": "nlp", "name": "once", "retries": "0"},
    {"namespace": "nlp", "name": "survives", "retries": "0", "ignores": "DisruptionTarget"},
]


def double() -> ApiDouble:
    return ApiDouble({"nodes": NODES, "pods": PODS, "jobs": JOBS})


def evicted(api: ApiDouble) -> list[str]:
    paths = [words[1] for words in api.calls if words[0] == "create"]
    return [path.split("/pods/")[1].removesuffix("/eviction") for path in paths]


def test_a_node_is_seen_with_its_pods_and_why_it_is_out() -> None:
    uses = Kubernetes(double()).nodes(["gpu001", "gpu002", "gpu003", "gpu099"])
    held = ("nlp/train-0", "nlp/once-0", "nlp/survives-0", "nlp/web-1", "nlp/bare")
    assert uses == {
        "gpu001": NodeUse(out=False, jobs=held),
        "gpu002": NodeUse(out=True, reason="gcluster up: run 7"),
        "gpu003": NodeUse(out=True, reason="not ready: container runtime is down"),
    }
    assert uses["gpu002"].is_ours


def test_what_is_given_up_on_a_node_that_is_away_holds_it_no_more() -> None:
    gone = {**POD, "name": "gone", "node": "gpu003", "deleted": "2026-11-22T11:05:00Z"}
    ending = {**POD, "name": "ending", "deleted": "2026-11-22T11:05:00Z"}
    uncertain = {**POD, "name": "uncertain", "node": "gpu003"}
    uses = Kubernetes(ApiDouble({"nodes": NODES, "pods": [gone, ending, uncertain]})).nodes(
        ["gpu001", "gpu003"]
    )
    assert uses["gpu001"].jobs == ("nlp/ending",), "its kubelet ends it"
    assert uses["gpu003"].jobs == ("nlp/uncertain",)


def test_a_drain_writes_the_reason_before_it_cordons_and_moves_what_never_ends() -> None:
    api = double()
    Kubernetes(api).drain(["gpu001"], "NVLink of\nGPU 3")
    annotated, cordoned, *_ = api.calls
    assert annotated[:4] == ("annotate", "nodes", "gpu001", "--overwrite")
    assert annotated[4] == "gcluster.local/drain-reason=NVLink of GPU 3"
    assert cordoned == ("cordon", "gpu001")
    assert evicted(api) == ["web-1"]


def test_a_node_that_is_given_back_takes_pods_and_keeps_no_reason() -> None:
    api = double()
    Kubernetes(api).resume(["gpu002"])
    assert [words[0] for words in api.calls] == ["uncordon", "annotate"]
    assert "gcluster.local/drain-reason-" in api.calls[1]


def test_only_pods_that_come_again_are_evicted() -> None:
    api = double()
    Kubernetes(api).requeue([f"nlp/{pod['name']}" for pod in PODS])
    assert evicted(api) == ["train-0", "survives-0", "web-1"]


def test_no_nodes_are_requested_for_nothing() -> None:
    api = double()
    service = Kubernetes(api)
    service.drain([], "x")
    service.resume([])
    assert api.calls == []


def test_an_api_that_is_silent_is_a_scheduler_that_is() -> None:
    service = Kubernetes(ApiDouble({}, silent="head: connection refused"))
    for ask in (
        lambda: service.nodes(["gpu001"]),
        lambda: service.drain(["gpu001"], "x"),
        lambda: service.resume(["gpu001"]),
        lambda: service.requeue(["nlp/a"]),
    ):
        with pytest.raises(SchedulerSilent, match="connection refused"):
            ask()
