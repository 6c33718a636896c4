"""The gate and an operator's day on Kubernetes: what fails is shown, and nothing of it stays.

The tests run in order on one cluster of a control plane and two nodes.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from .conftest import until
from .kubernetes_site import PAUSE, KubernetesCluster, pod

pytestmark = [pytest.mark.local, pytest.mark.kubernetes]

NODES = ("gpu001", "gpu002")
PAYLOAD = "/usr/libexec/gcluster/allreduce"
HERE = "--namespace=gcluster-system"
KINDS = "jobs,services,configmaps,secrets"
HEALTH = "/usr/libexec/gcluster/node-health-check"
GUARD = "/usr/local/libexec/gcluster/kubernetes-guard.py"


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubernetesCluster]:
    """A cluster that is taken down whatever happens."""
    cluster = KubernetesCluster(tmp_path_factory.mktemp("gate"), nodes=2)
    smoke = "smoke: {allreduce: {sizes: 8B..1MiB, iterations: 2}}"
    cluster.write_spec(nodes=2, end=smoke)
    yield cluster
    cluster.gcluster("down", str(cluster.spec), "--yes", expect=None)


@contextmanager
def payload(live: KubernetesCluster, change: str) -> Iterator[None]:
    """Change the payload on every node by a line for sed, for as long as it takes."""
    for node in NODES:
        live.on(node, f"cp -p {PAYLOAD} /root/payload && sed -i '{change}' {PAYLOAD}")
        assert live.on(node, f"cmp {PAYLOAD} /root/payload || true"), "nothing was changed"
    yield
    for node in NODES:
        live.on(node, f"mv /root/payload {PAYLOAD}")


def smoke(live: KubernetesCluster, *, expect: int) -> Any:
    return live.json("smoke", str(live.spec), "--no-bisect", expect=expect)


def codes(result: Any) -> list[str]:
    return sorted({reason["code"] for reason in result["verdict"]["reasons"]})


def deployment(name: str) -> dict[str, Any]:
    """Return a Deployment of one pod that serves for ever."""
    labels = {"app": name}
    container = {"name": "main", "image": PAUSE, "imagePullPolicy": "Never"}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 1}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def left(live: KubernetesCluster) -> set[str]:
    """Return the objects of gcluster's own namespace, but for those that Kubernetes makes."""
    found = live.get(KINDS, HERE)["items"]
    return {one["metadata"]["name"] for one in found} - {"kube-root-ca.crt"}


def test_up_ends_with_an_allreduce_over_all_nodes_and_its_certificate(
    live: KubernetesCluster,
) -> None:
    verdict = live.up()["verdict"]
    assert (verdict["verdict"], verdict["ranks"], verdict["wrong"]) == ("pass", 2, 0)
    assert (verdict["transport"], verdict["simulated"]) == ("ethernet btl=tcp", True)
    assert left(live) == set()
    certificate = live.json("status", str(live.spec))["certificate"]
    assert certificate["runs"][0]["nodes"] == "gpu[001-002]"
    assert live.up()["changed"] is False


def test_a_corrupted_value_fails(live: KubernetesCluster) -> None:
    with payload(live, "s/self.corrupt = .*/self.corrupt = self.rank == 1/"):
        result = smoke(live, expect=4)
    assert codes(result) == ["wrong-result"]
    assert left(live) == set()


def test_a_log_without_its_transport_line_fails(live: KubernetesCluster) -> None:
    with payload(live, "s/# gcluster transport/# gcluster carrier/"):
        result = smoke(live, expect=4)
    assert codes(result) == ["no-transport"]
    assert left(live) == set()


def test_a_pod_that_goes_missing_fails_and_is_named(live: KubernetesCluster) -> None:
    second = (
        HERE,
        "--selector=gcluster.local/allreduce,batch.kubernetes.io/job-completion-index=1",
    )
    with payload(
        live, "s/^    stderr = StderrFilter()/    time.sleep(30); stderr = StderrFilter()/"
    ):
        command = [str(Path(sys.executable).with_name("gcluster")), "smoke", str(live.spec)]
        running = subprocess.Popen(
            [*command, "--no-bisect", "--format", "json"],
            stdout=subprocess.PIPE,
            text=True,
            env=live.environment,
        )
        phase = "--output=jsonpath={.items[*].status.phase}"
        until(lambda: live.kubectl("get", "pods", *second, phase) == "Running", seconds=90)
        # Its sshd has let the first pod in: mpirun has begun.
        until(lambda: "Accepted publickey" in live.kubectl("logs", *second), seconds=60)
        where = live.kubectl("get", "pods", *second, "--output=jsonpath={.items[*].spec.nodeName}")
        live.kubectl("delete", "pods", *second, "--wait=false")
        output, _ = running.communicate(timeout=200)
    result = json.loads(output)
    assert running.returncode == 4  # the gate's
    assert result["verdict"]["verdict"] == "fail"
    assert f"the pod on {where} failed" in result["verdict"]["reasons"][0]["message"]
    assert left(live) == set()


def test_a_waiting_job_has_its_reason_and_quotas_show_their_use(
    live: KubernetesCluster,
) -> None:
    live.apply(pod("eight", gpus=8, qos="low"))
    live.runs("eight")
    live.kubectl("cordon", *NODES)
    live.apply(pod("waits", gpus=8, qos="low"))
    until(lambda: live.phase("waits") == "Pending", seconds=30)
    status = live.json("status", str(live.spec), expect=1)
    live.kubectl("uncordon", *NODES)
    assert (status["queue"]["running"], status["queue"]["pending"]) == (1, 1)
    assert "unschedulable" in status["queue"]["reasons"][0]["reason"]
    assert {"account": "physics", "resource": "nvidia.com/gpu", "used": 16, "limit": 16} in status[
        "quotas"
    ]
    assert {node["name"]: node["scheduler_state"] for node in status["nodes"]} == {
        "head": "",
        "gpu001": "cordoned",
        "gpu002": "cordoned",
    }
    names = {condition["name"] for condition in status["conditions"]}
    assert {"CertificatesHold", "EtcdSnapshots"} <= names
    live.kubectl("delete", "pod", "eight", "waits", "--namespace=physics")


def test_a_drained_node_is_reported_with_its_reason_and_comes_back(live: KubernetesCluster) -> None:
    spec = str(live.spec)
    (node,) = live.json("drain", spec, "gpu002", "--reason", "link 3 is off")["nodes"]
    assert (node["in_service"], node["reason"]) == (False, "link 3 is off")
    (again,) = live.json("drain", spec, "gpu002", "--reason", "mine")["nodes"]
    assert (again["changed"], again["reason"]) == (False, "link 3 is off")
    (seen,) = [n for n in live.json("status", spec, expect=1)["nodes"] if n["name"] == "gpu002"]
    assert seen["reason"] == "link 3 is off"
    assert seen["out_since"].endswith("Z")
    assert live.json("resume", spec, "gpu002")["nodes"][0]["in_service"]


def test_what_never_ends_is_moved_from_a_drained_node(live: KubernetesCluster) -> None:
    where = "--output=jsonpath={.items[?(@.status.phase=='Running')].spec.nodeName}"

    def runs_on() -> str:
        return live.kubectl("get", "pods", "--selector=app=serves", where)

    live.kubectl("cordon", "gpu001")
    live.apply(deployment("serves"))
    until(lambda: runs_on() == "gpu002", seconds=60)
    live.kubectl("uncordon", "gpu001")
    live.gcluster("drain", str(live.spec), "gpu002", "--reason", "link 3 is off")
    until(lambda: runs_on() == "gpu001", seconds=90)
    live.gcluster("resume", str(live.spec), "gpu002")
    live.kubectl("delete", "deployment", "serves")


def test_a_node_that_finds_itself_unfit_takes_no_more_pods(live: KubernetesCluster) -> None:
    state = "/var/lib/gcluster/node-health/state.json"
    live.on("gpu001", "node-health state set rma --reason 'fan 3 is dead' >/dev/null")
    live.on("gpu001", HEALTH)
    spec = str(live.spec)

    def why() -> str:
        nodes = live.json("status", spec, expect=1)["nodes"]
        return str(next(node["reason"] for node in nodes if node["name"] == "gpu001"))

    until(lambda: why() == "gcluster-health: rma: fan 3 is dead", seconds=150)
    live.kubectl("uncordon", "gpu001")  # a user who doesn't know of it
    assert "cordoned gpu001: rma: fan 3 is dead" in live.on("head", GUARD)
    live.on("gpu001", f"rm {state} && {HEALTH}")
    assert live.json("resume", spec, "gpu001")["nodes"][0]["in_service"]
    assert live.on("head", GUARD) == ""


def test_a_node_whose_health_check_is_silent_takes_no_more_pods(live: KubernetesCluster) -> None:
    live.on("gpu002", "systemctl stop gcluster-node-health.timer")
    stale = {
        "type": "GclusterUnfit",
        "status": "False",
        "lastHeartbeatTime": "2026-01-01T00:00:00Z",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    change = json.dumps({"status": {"conditions": [stale, ready]}})
    live.kubectl("patch", "node", "gpu002", "--subresource=status", f"--patch={change}")
    assert "cordoned gpu002: its health check has not reported" in live.on("head", GUARD)
    live.on("gpu002", f"systemctl start gcluster-node-health.timer && {HEALTH}")
    spec = str(live.spec)
    assert live.json("resume", spec, "gpu002")["nodes"][0]["in_service"]
