"""The guard of a control plane cordons what is unfit, silent or never looked at, up to a cap."""

from __future__ import annotations

import json
import os
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

GUARD = Path(__file__).parents[2] / "roles/kubernetes/files/libexec/kubernetes-guard.py"
KUBECTL = """#!/bin/sh
shift
printf '%s\\n' "$*" >>calls
case "$*" in
  "get nodes --output=json") cat nodes.json ;;
  "get configmap guard-stopped"*) [ ! -e stopped ] || echo configmap/guard-stopped ;;
  "get pods --all-namespaces --output=json") cat pods.json ;;
  *) cat >>given </dev/stdin ;;
esac
"""


def stamp(minutes: float) -> str:
    return (datetime.now(UTC) - timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ")


def node(name: str, *, status: str = "False", ago: float = 1, **more: Any) -> dict[str, Any]:
    """Return a node whose health check reported so many minutes ago."""
    message = {
        "type": "GclusterUnfit",
        "status": status,
        "message": "gpu-count: 7 of 8 GPUs" if status == "True" else "",
        "lastHeartbeatTime": stamp(ago),
    }
    metadata = {
        "name": name,
        "creationTimestamp": stamp(more.pop("age", 600)),
        "labels": more.pop("labels", {"gcluster.local/pool": "gpu"}),
    }
    ready = {
        "type": "Ready",
        "status": more.pop("ready", "True"),
        "lastTransitionTime": stamp(more.pop("ready_since", 600)),
    }
    conditions = [ready] if more.pop("unlooked", False) else [ready, message]
    return {"metadata": metadata, "spec": more, "status": {"conditions": conditions}}


def pod(name: str, owner: str, where: str = "bad") -> dict[str, Any]:
    owners = [{"kind": owner, "controller": True}] if owner else []
    metadata = {"name": name, "namespace": "nlp", "ownerReferences": owners}
    return {"metadata": metadata, "spec": {"nodeName": where}}


def guarded(
    folder: Path, nodes: list[dict[str, Any]], *pods: dict[str, Any], alarm: str = ""
) -> list[str]:
    """Run the guard on a cluster; return its requests to the API.

    Args:
        folder: where its doubles lie.
        nodes: as the API has them.
        pods: likewise.
        alarm: what it ends with; "": nothing.
    """
    kubectl = folder / "kubectl"
    kubectl.write_text(KUBECTL)
    kubectl.chmod(0o755)
    (folder / "nodes.json").write_text(json.dumps({"items": nodes}))
    (folder / "pods.json").write_text(json.dumps({"items": list(pods)}))
    path = f"{folder}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path}
    done = subprocess.run(
        ["python3", GUARD], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, alarm in done.stderr) == (1 if alarm else 0, True), done.stderr
    calls = (folder / "calls").read_text().splitlines()
    return [call for call in calls if not call.startswith("get ")]


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ({"status": "True"}, "gpu-count: 7 of 8 GPUs"),
        ({"status": "Unknown"}, "its health check failed"),
        ({"status": "True", "ready": "Unknown"}, "gpu-count: 7 of 8 GPUs"),
        ({"ago": 30}, "its health check has not reported for 30 min"),
        ({"unlooked": True}, "its health check has never reported"),
    ],
    ids=["unfit", "unknown", "unfit and away", "silent", "never looked at"],
)
def test_an_unfit_or_silent_node_is_cordoned_with_the_reason(
    tmp_path: Path, bad: dict[str, Any], why: str
) -> None:
    (call,) = guarded(tmp_path, [node("bad", **bad), node("good")])
    assert call.startswith("patch node bad --type=merge --patch=")
    change = json.loads(call.partition("--patch=")[2])
    assert change["spec"] == {"unschedulable": True}
    assert change["metadata"]["annotations"]["gcluster.local/drain-reason"] == (
        f"gcluster-health: {why}"
    )


@pytest.mark.parametrize(
    "left",
    [
        {},
        {"unlooked": True, "age": 5, "ready_since": 4},
        {"ago": 30, "ready": "Unknown"},
        {"ago": 30, "ready_since": 2},
        {"unlooked": True, "ready_since": 2},
        {"status": "True", "unschedulable": True},
        {"unlooked": True, "labels": {}},
        {
            "unlooked": True,
            "labels": {"gcluster.local/pool": "head", "node-role.kubernetes.io/control-plane": ""},
        },
    ],
    ids=[
        "fit",
        "just joined",
        "away",
        "back",
        "back before its first",
        "cordoned already",
        "not ours",
        "a control plane",
    ],
)
def test_other_nodes_are_left_alone(tmp_path: Path, left: dict[str, Any]) -> None:
    assert guarded(tmp_path, [node("x", **left)]) == []


def test_what_never_ends_is_moved_away_and_jobs_continue(tmp_path: Path) -> None:
    pods = [
        pod("web", "ReplicaSet"),
        pod("train", "Job"),
        pod("proxy", "DaemonSet"),
        pod("bare", ""),
        pod("elsewhere", "ReplicaSet", "good"),
    ]
    answer = guarded(tmp_path, [node("bad", status="True"), node("good")], *pods)
    assert answer[1:] == ["create --raw=/api/v1/namespaces/nlp/pods/web/eviction --filename=-"]
    given = (tmp_path / "given").read_text()
    assert json.loads(given[given.index("{") :])["kind"] == "Eviction"


def cordoned(calls: list[str]) -> list[str]:
    return [call.split()[2] for call in calls if call.startswith("patch node")]


def ours(name: str, minutes: float) -> dict[str, Any]:
    """Return a node that the guard cordoned so many minutes ago."""
    made = node(name, status="True", unschedulable=True)
    made["metadata"]["annotations"] = {
        "gcluster.local/drain-reason": "gcluster-health: gpu-count: 7 of 8 GPUs",
        "gcluster.local/drained-at": stamp(minutes),
    }
    return made


@pytest.mark.parametrize(
    ("already", "more"), [([], 4), ([5] * 4, 0), ([90] * 4, 4), ([90] * 8, 2), ([90] * 10, 0)]
)
def test_a_check_that_finds_every_node_unfit_takes_a_share_of_a_pool_and_no_more_an_hour(
    tmp_path: Path, already: list[float], more: int
) -> None:
    out = [ours(f"out{number}", minutes) for number, minutes in enumerate(already)]
    bad = [node(f"bad{number:02}", status="True") for number in range(40 - len(out))]
    left = f"unfit and left in service: {len(bad) - more} of 40 nodes of pool gpu"
    calls = guarded(tmp_path, [*out, *bad], alarm=left)
    assert cordoned(calls) == [f"bad{number:02}" for number in range(more)]


def test_the_cap_is_each_pools_and_drains_by_hand_are_not_counted(tmp_path: Path) -> None:
    other = {"gcluster.local/pool": "other"}
    nodes = [
        *(node(f"a{number}", unschedulable=True) for number in range(3)),
        node("a3", status="True"),
        node("b0", status="True", labels=other),
    ]
    assert cordoned(guarded(tmp_path, nodes)) == ["a3", "b0"]


def test_a_stop_holds_it(tmp_path: Path) -> None:
    (tmp_path / "stopped").touch()
    assert guarded(tmp_path, [node("bad", status="True"), node("good")]) == []
