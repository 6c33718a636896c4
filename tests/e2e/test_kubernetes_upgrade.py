"""Kubernetes from one minor to the next on real nodes: control plane first, then nodes, drained.

The minor before is built from the recipe next to this file, as our own is: minutes, once. The tests
of this file run in order and share one cluster of a control plane and two nodes.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from gcluster.lifecycle.kubernetes.release.recipe import VARIABLE, recipe

from .conftest import until
from .kubernetes_site import PAUSE, SMOKE, KubernetesCluster, kernel, name_servers

pytestmark = [pytest.mark.local, pytest.mark.kubernetes]

KERNEL_BEFORE = kernel()
RECIPE = Path(__file__).parent / "kubernetes_previous"
BEFORE, AFTER = "1.34.4", recipe().kubernetes
NODES = ("head", "gpu001", "gpu002")
OLD_DNS = f"{recipe().repository}/coredns:v1.12.1"
KEPT = "what was written before"


class Upgraded(KubernetesCluster):
    """A cluster whose spec names its version, and whose nodes take that from either recipe."""

    def of(self, version: str, recipe_folder: Path | None) -> None:
        """Set a version in the spec, and the recipe that has it; None: our own."""
        self.write_spec(nodes=2, end=f'software: {{kubernetes: "{version}"}}\n{SMOKE}')
        self.environment.pop(VARIABLE, None)
        if recipe_folder is not None:
            self.environment[VARIABLE] = str(recipe_folder)

    def versions(self) -> dict[str, str]:
        """Return node -> version of its kubelet."""
        return {
            one["metadata"]["name"]: one["status"]["nodeInfo"]["kubeletVersion"]
            for one in self.get("nodes")["items"]
        }

    def server(self) -> str:
        """Return the API server's version."""
        answer: str = json.loads(self.kubectl("get", "--raw=/version"))["gitVersion"]
        return answer

    def replicas(self) -> dict[str, str]:
        """Return pod -> node of the Deployment's pods that run."""
        return {
            one["metadata"]["name"]: one["spec"]["nodeName"]
            for one in self.get("pods", "--selector=app=kept")["items"]
            if one["status"]["phase"] == "Running" and "deletionTimestamp" not in one["metadata"]
        }

    def refused(self, code: str) -> str:
        """Have `plan` name what `up` refuses; nothing is changed."""
        before = self.stamp_times(), self.versions()
        message = list(self.json("plan", str(self.spec), expect=None)["diagnostics"])
        assert code in {d["code"] for d in message}
        self.gcluster("up", str(self.spec), "--yes", expect=4)
        assert (self.stamp_times(), self.versions()) == before
        return str(next(d["summary"] for d in message if d["code"] == code))

    @contextmanager
    def watched(self) -> Iterator[list[frozenset[str]]]:
        """Poll every second, while the API answers, which nodes take no pods; yields the lists."""
        seen: list[frozenset[str]] = []
        is_over = threading.Event()

        def look() -> None:
            while not is_over.wait(1):
                with suppress(AssertionError, ValueError):  # the upgrade starts the API again
                    nodes = self.get("nodes")["items"]
                    out = (n for n in nodes if n["spec"].get("unschedulable"))
                    seen.append(frozenset(n["metadata"]["name"] for n in out))

        thread = threading.Thread(target=look)
        thread.start()
        try:
            yield seen
        finally:
            is_over.set()
            thread.join()

    def certificate(self) -> Any:
        """Return the existing certificate."""
        return self.json("status", str(self.spec), expect=None)["certificate"]


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Upgraded]:
    """A cluster that is taken down whatever happens."""
    cluster = Upgraded(tmp_path_factory.mktemp("kubernetes"), nodes=2)
    yield cluster
    cluster.gcluster("down", str(cluster.spec), "--yes", expect=None)


def kept() -> list[dict[str, Any]]:
    """Return an object, and a Deployment of two pods, one on each node while both take some."""
    labels = {"app": "kept"}
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": labels},
    }
    pod = {
        "terminationGracePeriodSeconds": 0,
        "topologySpreadConstraints": [spread],
        "containers": [{"name": "main", "image": PAUSE, "imagePullPolicy": "Never"}],
    }
    template = {"metadata": {"labels": labels}, "spec": pod}
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "kept"},
            "data": {"a": KEPT},
        },
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "kept"},
            "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": template},
        },
    ]


def timed(what: str, began: float) -> None:
    """Say how long something took; nothing is judged by it."""
    sys.stdout.write(f"TIME {what}: {time.monotonic() - began:.0f} s\n")


def test_a_cluster_of_the_minor_before_comes_up_to_a_passed_allreduce(live: Upgraded) -> None:
    live.of(BEFORE, RECIPE)
    began = time.monotonic()
    result = live.up()
    timed(f"up at {BEFORE}", began)
    assert result["verdict"]["verdict"] == "pass"
    assert live.versions() == dict.fromkeys(NODES, f"v{BEFORE}")
    assert live.server() == f"v{BEFORE}"
    assert live.up()["changed"] is False


def test_work_is_on_both_nodes(live: Upgraded) -> None:
    live.apply(*kept(), *name_servers(image=OLD_DNS))
    until(lambda: set(live.replicas().values()) == {"gpu001", "gpu002"}, seconds=90)
    until(lambda: live.get("daemonset", "names")["status"].get("numberReady") == 3, seconds=90)


def test_a_version_that_skips_a_minor_is_refused_before_anything_is_changed(
    live: Upgraded, tmp_path: Path
) -> None:
    text = (RECIPE / "programs.yaml").read_text()
    text = text.replace(f'kubernetes: "{BEFORE}"', 'kubernetes: "1.36.0"')
    folder = RECIPE.parent / "programs"
    text = text.replace("../../../lifecycle/kubernetes/release/programs", str(folder))
    text = text.replace("[programs/", f"[{RECIPE}/programs/")
    (tmp_path / "programs.yaml").write_text(text)
    live.of("1.36.0", tmp_path)
    assert "1.36.0 skips a minor" in live.refused("GC1009")


def test_plan_shows_the_upgrade_and_which_nodes_it_drains(live: Upgraded) -> None:
    live.of(AFTER, None)
    plan = live.json("plan", str(live.spec), expect=None)
    upgrades = {(u["what"], u["before"], u["after"]) for u in plan["upgrades"]}
    assert {(f"{pool}: kubernetes", BEFORE, AFTER) for pool in ("head", "gpu")} <= upgrades
    joins = {s["hosts"]: s for s in plan["steps"] if s["step"] == "kubernetes.join"}
    assert joins["head"]["disruption"] == "in-place"
    nodes = joins["gpu[001-002]"]
    assert (nodes["disruption"], nodes["at_once"]) == ("rolling", 1)


def test_the_control_plane_comes_first_and_then_nodes_drained_one_by_one(live: Upgraded) -> None:
    pods, certificate = live.replicas(), live.certificate()
    began = time.monotonic()
    with live.watched() as seen:
        done = live.gcluster("up", str(live.spec), "--yes", "--format", "json")
    timed(f"up from {BEFORE} to {AFTER}", began)
    result = json.loads(done.stdout)
    assert result["failed_hosts"] == {}
    assert result["verdict"]["verdict"] == "pass"
    answer = [str(json.loads(line).get("detail", "")) for line in done.stderr.splitlines()]
    joined = [line.split()[0] for line in answer if line.endswith("kubernetes.join")]
    assert joined[0] == "head"
    assert {out for out in seen if out} == {frozenset({"gpu001"}), frozenset({"gpu002"})}
    assert not seen[-1]
    until(lambda: len(live.replicas()) == 2, seconds=60)
    assert not pods.keys() & live.replicas().keys()
    assert live.certificate() != certificate


def test_everything_has_the_new_version(live: Upgraded) -> None:
    assert live.versions() == dict.fromkeys(NODES, f"v{AFTER}")
    assert live.server() == f"v{AFTER}"
    system = live.get("pods", "--namespace=kube-system")["items"]
    images = {c["image"] for one in system for c in one["spec"]["containers"]}
    tags = {image.rpartition("/")[2].partition(":")[::2] for image in images}
    ours = {(image.name, image.tag) for image in recipe().images}
    assert tags <= ours, sorted(images)
    waiting = [
        one["metadata"]["name"]
        for one in system
        if not all(status["ready"] for status in one["status"]["containerStatuses"])
    ]
    assert waiting == []


def test_what_was_there_survived(live: Upgraded) -> None:
    assert live.get("configmap", "kept")["data"] == {"a": KEPT}
    assert live.ready() == dict.fromkeys(NODES, True)
    for one in live.get("pods", "--selector=app=names")["items"]:
        live.finds_names(one)


def test_a_second_up_changes_nothing(live: Upgraded) -> None:
    before = live.stamp_times()
    assert live.up()["changed"] is False
    assert live.stamp_times() == before


def test_the_way_back_is_refused_before_anything_is_changed(live: Upgraded) -> None:
    live.of(BEFORE, RECIPE)
    assert f"{BEFORE} is older" in live.refused("GC1009")
    live.of(AFTER, None)


def test_down_leaves_nothing_and_the_kernel_as_it_was(live: Upgraded) -> None:
    live.gcluster("down", str(live.spec), "--yes")
    assert not any(live.left_behind().values()), live.left_behind()
    assert kernel() == KERNEL_BEFORE
