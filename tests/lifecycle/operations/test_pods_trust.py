"""Which pods are made again, and which are waited for, when there are other authorities."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from gcluster.lifecycle.cluster.outcome import LifecycleError
from gcluster.lifecycle.cluster.progress import silent
from gcluster.lifecycle.kubernetes.kubectl import Kubectl
from gcluster.lifecycle.nodes.ssh import Answer, SshResult
from gcluster.lifecycle.operations.rotate.pods_trust import pods_of_before
from gcluster.schemas.load import load_text
from gcluster.schemas.spec import ClusterSpec

SPEC = """\
apiVersion: gcluster/v1
name: demo
sites: {here: {provider: local}}
pools:
  head: {site: here, role: controller}
  gpu: {site: here, machine: sim.h100x8, count: 1}
scheduler: {type: kubernetes, accounts: {physics: {users: [ada]}}}
users: [{name: ada, uid: 2001}]
"""
NEW = "the new one"
BEFORE, THEN, AFTER = (f"2026-11-29T1{n}:00:00Z" for n in range(3))
TOKEN = [{"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}]


def pod(name: str, space: str, owner: str = "", *, start: str = BEFORE, **more: Any) -> Any:
    kind, _, owned_by = owner.partition("/")
    owners = [{"kind": kind, "name": owned_by}] * bool(owner)
    labels = {"pod-template-hash": "5d8"} if kind == "ReplicaSet" else {}
    meta = {"name": name, "namespace": space, "ownerReferences": owners, "labels": labels}
    status = {"phase": "Running", "startTime": start} | more.pop("status", {})
    return {"metadata": meta, "spec": {"volumes": TOKEN} | more, "status": status}


class Api:
    """The API of a cluster, whose controllers replace what is to be made again."""

    name = "head"

    def __init__(self, *pods: Any) -> None:
        """Begin with these pods; a namespace has the authority at the second look."""
        self.pods = list(pods)
        self.restarted: list[str] = []
        self.looks, self.has_it_at = 0, 2

    def run(self, arguments: Sequence[str], *, stdin: str | None, timeout_s: float) -> Answer:
        """Answer as the API server."""
        assert stdin is None
        assert timeout_s
        found: list[Any] = []
        if arguments[0] == "rollout":
            self.restarted.append(f"{arguments[3].partition('=')[2]} {arguments[2]}")
            kind, _, name = arguments[2].partition("/")
            for one in self.pods:
                owners = [o["name"] for o in one["metadata"]["ownerReferences"]]
                if any(name in owner for owner in owners) and kind != "statefulset":
                    one["status"]["startTime"] = AFTER
        elif arguments[1] == "configmaps":
            self.looks += 1
            for space in ("kube-system", "physics", "mine"):
                text = NEW if self.looks >= self.has_it_at or space == "physics" else "old"
                written = [{"time": "2026-01-01T00:00:00Z"}, {"time": THEN}]
                meta = {"namespace": space, "managedFields": written}
                found.append({"metadata": meta, "data": {"ca.crt": f"old{text}"}})
        elif arguments[1] == "namespaces":
            for space, phase in (("kube-system", "Active"), ("gone", "Terminating")):
                found.append({"metadata": {"name": space}, "status": {"phase": phase}})
        else:
            found = self.pods
        return SshResult(returncode=0, stdout=json.dumps({"items": found}), stderr="")

    def stream(self, *_: Any, **__: Any) -> Answer:
        """Nothing is streamed."""
        raise AssertionError

    def waits_for(self) -> dict[str, str]:
        """Return who is waited for; time is counted, not spent."""
        spec = load_text(SPEC).spec
        assert isinstance(spec, ClusterSpec)
        passed = [0.0]

        def sleep(seconds: float) -> None:
            passed[0] += seconds

        return pods_of_before(
            Kubectl.by(self), NEW, spec, silent, sleep=sleep, clock=lambda: passed[0]
        )


def test_the_clusters_own_are_made_again_and_each_once() -> None:
    api = Api(
        pod("proxy-1", "kube-system", "DaemonSet/kube-proxy"),
        pod("proxy-2", "kube-system", "DaemonSet/kube-proxy"),
        pod("coredns-5d8-x", "kube-system", "ReplicaSet/coredns-5d8"),
    )
    assert api.waits_for() == {}
    assert api.restarted == ["kube-system daemonset/kube-proxy", "kube-system deployment/coredns"]
    assert api.looks == 2


def test_those_of_accounts_are_waited_for() -> None:
    serving = pod("serving-5d8-x", "physics", "ReplicaSet/serving-5d8")
    api = Api(pod("long", "physics", "Job/long"), serving, pod("by-hand", "mine"))
    assert sorted(api.waits_for()) == ["mine/by-hand", "physics/long", "physics/serving-5d8-x"]
    assert api.restarted == []


def test_those_that_have_the_new_one_or_no_token_or_ended_are_not() -> None:
    api = Api(
        pod("late", "physics", start=AFTER),
        pod("no-token", "physics", volumes=[]),
        pod("ended", "physics", status={"phase": "Succeeded"}),
        pod("waiting", "physics", status={"phase": "Pending", "startTime": "9"}),
    )
    assert api.waits_for() == {}


def test_what_is_not_replaced_in_time_is_waited_for() -> None:
    api = Api(pod("held-0", "kube-system", "StatefulSet/held"))
    assert list(api.waits_for()) == ["kube-system/held-0"]
    assert api.restarted == ["kube-system statefulset/held"]


def test_it_is_an_error_where_pods_never_get_it() -> None:
    api = Api()
    api.has_it_at = 10_000
    with pytest.raises(LifecycleError, match="not all namespaces have the new authority"):
        api.waits_for()
