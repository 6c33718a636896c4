"""Nodes of Kubernetes that come for pods that wait, and go when they are idle.

Nodes are containers; the scheduler, the kubelets and kubeadm's joins are real, the GPUs simulated.
The tests run in order and share one cluster, which begins with no node at all.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from gcluster.lifecycle.operations.burst.kubernetes.reading import MESSAGE

from .bursting import NONE, Bursting
from .conftest import until
from .kubernetes_site import KubernetesCluster, pod

pytestmark = [pytest.mark.local, pytest.mark.kubernetes]

SPEC = """\
apiVersion: gcluster/v1
name: {name}
sites: {{here: {{provider: local}}}}
pools:
  head: {{site: here, role: controller}}
  gpu: {{site: here, machine: sim.h100x8, count: {{min: 0, max: 2}}}}
scheduler:
  type: kubernetes
  kueue: false
  suspend_after: 10s
  accounts: {{physics: {{users: [ada]}}}}
users: [{{name: ada, uid: 2001}}]
monitoring: {{prometheus: true}}
smoke: {{allreduce: {{sizes: 8B..64KiB, iterations: 2}}}}
"""
NODES = ("gpu001", "gpu002")


class Elastic(Bursting):
    """The cluster, its agent, and its nodes that come and go."""

    live: KubernetesCluster

    def nodes(self) -> dict[str, Any]:
        """Return the nodes by name, without the control plane."""
        listed = {one["metadata"]["name"]: one for one in self.live.get("nodes")["items"]}
        return {name: one for name, one in listed.items() if name != "head"}

    def rented(self, node: str = "") -> list[str]:
        """Return the ids of the containers of nodes that come and go."""
        found = []
        for name in [node] if node else NODES:
            found += super().rented(name)
        return found

    def answering(self) -> dict[str, int]:
        """Return exporter -> how many of the nodes that come and go answer Prometheus there."""
        found = self.live.metric('sum by (job) (up{instance=~"gpu.*"})')
        return {one["metric"]["job"]: int(one["value"][1]) for one in found}

    def is_running(self, *names: str) -> bool:
        """Say whether pods of the account run."""
        return all(self.live.phase(name) == "Running" for name in names)


@pytest.fixture(scope="module")
def elastic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Elastic]:
    """Give the cluster, up, an agent at work; take it down whatever happens."""
    live = KubernetesCluster(tmp_path_factory.mktemp("elastic"))
    made = Elastic(live, NONE, spec=SPEC, away="here")
    try:
        live.up()
        made.start()
        yield made
    finally:
        made.stop()
        live.gcluster("down", str(live.spec), "--yes", expect=None)


def test_pods_that_wait_get_as_many_nodes_as_they_need(elastic: Elastic) -> None:
    assert elastic.nodes() == {}
    elastic.live.apply(pod("one", gpus=8), pod("half", gpus=4), pod("quarter", gpus=2))
    elastic.until(lambda: elastic.is_running("one", "half", "quarter"), within_s=300)
    requested = elastic.events("requested")
    assert [event["nodes"] for event in requested] == ["gpu[001-002]"]
    for node in elastic.nodes().values():
        assert node["metadata"]["labels"]["partition.gcluster.local/main"] == "true"
        assert node["status"]["allocatable"]["nvidia.com/gpu"] == "8"


def test_who_has_joined_is_scraped(elastic: Elastic) -> None:
    # Exporters run up to 30 s after the first pod. Then 10 s until a node is in the figures of
    # Kubernetes, 15 until they are scraped, 15 until it is listed, 30 until its kubelet is scraped:
    # 100 s where nothing else runs.
    until(lambda: elastic.answering() == {"node": 2, "gpu": 2, "kubelet": 2}, seconds=180)


def test_up_leaves_them_as_they_are(elastic: Elastic) -> None:
    elastic.stop()
    answer = elastic.live.up()
    assert set(elastic.nodes()) == {"gpu001", "gpu002"}
    assert elastic.is_running("one", "half", "quarter")
    assert answer["changed"] is False
    elastic.start()


def test_nothing_is_requested_for_a_pod_that_no_node_would_hold(elastic: Elastic) -> None:
    elastic.live.apply(pod("huge", gpus=16))
    until(lambda: elastic.live.phase("huge") == "Pending", seconds=30)
    elastic.live.kubectl("delete", "pod", "one", "--namespace=physics")
    elastic.until(lambda: len(elastic.rented()) == 1, within_s=120)
    assert elastic.is_running("half", "quarter")
    assert len(elastic.events("requested")) == 1


def test_an_agent_that_is_killed_in_each_state_makes_one_machine_and_gives_it_back(
    elastic: Elastic,
) -> None:
    elastic.inject(before_s=3, after_s=3)
    elastic.live.apply(pod("again", gpus=8))
    count = {what: len(elastic.events(what)) for what in ("requested", "made", "joined", "leaving")}
    for what in ("requested", "made", "joined"):
        elastic.kill_when(lambda what=what: len(elastic.events(what)) > count[what], within_s=300)
    elastic.until(lambda: elastic.is_running("again"), within_s=120)
    assert len(elastic.rented()) == 2
    elastic.live.kubectl("delete", "pod", "again", "--namespace=physics")
    elastic.kill_when(lambda: len(elastic.events("leaving")) > count["leaving"], within_s=120)
    elastic.until(lambda: len(elastic.rented()) == 1, within_s=120)
    elastic.inject()
    assert len(elastic.events("requested")) == count["requested"] + 1


def test_the_last_node_goes_when_it_is_idle(elastic: Elastic) -> None:
    elastic.live.free()
    elastic.until(lambda: not elastic.rented(), within_s=120)
    elastic.until(lambda: elastic.nodes() == {}, within_s=60)
    # A target is gone from Prometheus after two intervals more, of which kubelets' are of 30 s.
    until(lambda: elastic.answering() == {}, seconds=180)
    about_them = 'ALERTS{instance=~"gpu.*"}'
    until(lambda: elastic.live.metric(about_them) == [], seconds=30)
    # None that was sent either: only what people and agents do on purpose has fired.
    sent = 'max_over_time(ALERTS{alertstate="firing",severity!="none",instance=~"gpu.*"}[30m])'
    assert elastic.live.metric(sent) == []


def test_a_pod_without_capacity_has_its_reason(elastic: Elastic) -> None:
    elastic.stop()
    elastic.faults.write_text(json.dumps({"refuse": "gpu[001-002]"}))
    elastic.start()
    elastic.live.apply(pod("late", gpus=8))

    def message() -> str:
        found = elastic.live.get("pod", "late", "--namespace=physics")
        return str(found["metadata"].get("annotations", {}).get(MESSAGE, ""))

    elastic.until(lambda: "its nodes don't come" in message(), within_s=60)
    assert "there is no capacity" in message()
    assert elastic.rented() == []


def test_nothing_is_left_and_the_ledger_is_closed(
    elastic: Elastic, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    elastic.close(monkeypatch, capsys)
