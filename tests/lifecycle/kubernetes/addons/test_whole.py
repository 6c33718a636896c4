"""A cluster of machines from its spec: objects, add-ons and what needs them, on a real API server.

Over the double of an SSH session kubectl runs here. The add-ons are small charts under the names of
the real ones; Kueue's brings kinds by the names and versions that gcluster compiles.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.lifecycle.controller import LocalShell
from tests.lifecycle.publisher import Publisher, published

from gcluster.lifecycle.cluster.cluster import Cluster, open_cluster
from gcluster.lifecycle.cluster.progress import silent
from gcluster.lifecycle.kubernetes.addons.ready import ready
from gcluster.lifecycle.kubernetes.objects import desired_objects
from gcluster.lifecycle.kubernetes.settle import objects_plan, settle_objects
from gcluster.lifecycle.status.drift.kubernetes import KubernetesDrift
from gcluster.lifecycle.status.drift.values import Drift
from gcluster.lifecycle.status.observe import Observation
from gcluster.schemas.diagnostics import Diagnostic

from . import charts
from .lab import SPEC, entry, facts_of, hosts_of, write

pytestmark = pytest.mark.kubernetes_api
GROUP = "kueue.x-k8s.io"
WITHOUT = SPEC.replace("{type: kubernetes,", "{type: kubernetes, kueue: false,")


def definition(made: dict[str, Any]) -> str:
    """Return a CRD of an object's kind, which takes anything."""
    kind, version = made["kind"], made["apiVersion"].rpartition("/")[2]
    plural = f"{kind.lower().removesuffix('y')}ies" if kind[-1] == "y" else f"{kind.lower()}s"
    plural = plural.replace("classs", "classes")
    names = f"{{kind: {kind}, plural: {plural}, singular: {kind.lower()}}}"
    scope = "Namespaced" if "namespace" in made["metadata"] else "Cluster"
    schema = "{openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}"
    return f"""\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: {plural}.{GROUP}}}
spec:
  {{group: {GROUP}, scope: {scope}, names: {names}, versions: [
    {{name: {version}, served: true, storage: true, schema: {schema}}}]}}
"""


class Whole:
    """A cluster whose one control plane is this machine."""

    def __init__(self, server: Any, folder: Path, publisher: Publisher) -> None:
        """Publish the charts; write the spec."""
        self.server, self.folder = server, folder
        small = {"settings": charts.SETTINGS, "manager": charts.MANAGER}
        plain = {
            name: entry(publisher, name, charts.chart(name, "1.0.0", small))
            for name in ("cilium", "gpu-operator", "widgets")
        }
        write(folder, *plain.values())
        queues = wanted_of(folder / "lab.yaml")
        crds = {made["kind"]: definition(made) for made in queues}
        kueue = charts.chart("kueue", "1.0.0", small, crds=crds)
        reported = {"kueue": entry(publisher, "kueue", kueue) | {"kinds": [GROUP]}} | plain
        self.addons = list(reported.values())
        self.session = LocalShell(folder / "bin")
        self.session.has("sudo", 'shift; exec "$@"')
        kubectl = f"HOME={folder} exec {server.folder}/kubectl --kubeconfig={server.kubeconfig}"
        self.session.has("kubectl", f'shift; {kubectl} "$@"')
        self.waited = 0.0

    def opened(self, spec: str = SPEC) -> tuple[Cluster, Observation]:
        """Return the cluster and what was observed of it."""
        path = write(self.folder, *self.addons, spec=spec)
        cluster, hosts = open_cluster(str(path)), hosts_of(path)
        return cluster, Observation(
            sites=(),
            existing=hosts,
            desired=hosts,
            stamps={"cp1": {"kubernetes.join": "0" * 64}},
            unreachable={},
            taken_at=0.0,
        )

    def plan(self, spec: str = SPEC) -> tuple[str, ...]:
        """Return the lines of the plan."""
        found = objects_plan(*self.opened(spec), self.session)
        assert found is not None
        assert not found.problem
        return found.changes

    def up(self, spec: str = SPEC, *, prune: bool = True) -> tuple[Diagnostic, ...]:
        """Do what `up` does between its steps on nodes."""
        cluster, observation = self.opened(spec)
        ready(cluster, observation, self.session, silent)
        return settle_objects(
            cluster,
            observation,
            self.session,
            silent,
            prune=prune,
            clock=lambda: self.waited,
            sleep=self.sleep,
        )

    def sleep(self, seconds: float) -> None:
        """Simulate the pod network, which makes nodes ready."""
        self.waited += seconds
        ready_now = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        status = json.dumps({"status": {"conditions": [ready_now]}})
        for node in ("gpu1", "gpu2"):
            self.server.kubectl(
                *("patch", "node", node, "--subresource=status", "--type=merge"),
                f"--patch={status}",
            )

    def drift(self) -> tuple[Drift, ...]:
        """Return what differs in the API."""
        cluster, observation = self.opened()
        found = desired_objects(cluster.spec, observation.desired, cluster.catalog)
        look = KubernetesDrift(cluster.name, found, [h.name for h in observation.desired.hosts])
        answer = self.session.run(observation.desired.hosts[0], look.words)
        output = look.judge({"cp1": getattr(answer, "stdout", "")}, {})
        assert not output.problem, answer
        return output.drifts


def wanted_of(path: Path) -> list[dict[str, Any]]:
    """Return the objects that are of Kueue's kinds."""
    facts = facts_of(path)
    made = desired_objects(facts.spec, facts.inventory, facts.catalog).objects
    return [one for key, one in made.items() if key.group == GROUP]


@pytest.fixture
def whole(server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Whole]:
    """Give a cluster whose nodes have joined and wait for the pod network."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    nodes = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {"gcluster.local/pool": "gpu"}},
        }
        for name in ("gpu1", "gpu2")
    ]
    assert server.apply(nodes).returncode == 0
    with published() as publisher:
        yield Whole(server, tmp_path, publisher)
    server.kubectl("delete", "nodes", "--all")


def test_machines_come_up_with_their_add_ons_and_what_needs_them(whole: Whole) -> None:
    assert whole.plan()[:4] == (
        "add add-on cilium 1.0.0",
        "add add-on gpu-operator 1.0.0",
        "add add-on kueue 1.0.0",
        "add add-on widgets 1.0.0",
    )
    answer = whole.up()
    assert [(d.code, d.summary) for d in answer if d.is_error] == []
    assert whole.waited > 0
    get = whole.server.kubectl
    assert get("get", f"localqueues.{GROUP}", "default", "--namespace=everyone").returncode == 0

    assert whole.plan() == ()
    assert whole.drift() == ()

    get("delete", "deployment", "manager", "--namespace=gpu-operator-system")
    get("delete", f"clusterqueues.{GROUP}", "--all")
    reported = {(d.where, d.name, d.now) for d in whole.drift()}
    assert reported == {
        ("Deployment", "gpu-operator-system/manager", "not there"),
        ("ClusterQueue", "everyone.main", "not there"),
    }
    assert [d for d in whole.up(prune=False) if d.is_error] == []
    assert whole.drift() == ()

    gone = whole.plan(WITHOUT)
    assert gone[0].startswith("remove add-on kueue: ")
    assert "remove ClusterQueue: everyone.main" in gone
    assert [d for d in whole.up(WITHOUT) if d.is_error] == []
    assert GROUP not in get("get", "customresourcedefinitions", "--output=name").stdout
    # A namespace goes when all in it is gone.
    get("wait", "--for=delete", "namespace/kueue-system", "--timeout=60s")
    assert whole.plan(WITHOUT) == ()
