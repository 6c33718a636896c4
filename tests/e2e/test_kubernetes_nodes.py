"""Kubernetes on two nodes: they come and go, jobs give way, and data comes back.

The tests of this file run in order and share one cluster of a control plane and two nodes.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from .conftest import until
from .kubernetes_site import SMOKE, KubernetesCluster, kernel, name_servers, pod

pytestmark = [pytest.mark.local, pytest.mark.kubernetes]

KERNEL_BEFORE = kernel()
LIBEXEC = "/usr/local/libexec/gcluster"


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubernetesCluster]:
    """A cluster that is taken down whatever happens."""
    cluster = KubernetesCluster(tmp_path_factory.mktemp("kubernetes"), nodes=2)
    yield cluster
    cluster.gcluster("down", str(cluster.spec), "--yes", expect=None)


def test_a_join_that_was_cut_off_is_taken_back_on_that_node_alone(live: KubernetesCluster) -> None:
    live.cut_off("gpu001 kubernetes.join", killing="kubeadm join", on="gpu001")
    live.up()
    assert live.ready() == {"head": True, "gpu001": True, "gpu002": True}


def test_a_second_up_changes_nothing(live: KubernetesCluster) -> None:
    assert live.up()["changed"] is False


def test_pods_of_all_nodes_are_reached_and_find_names(live: KubernetesCluster) -> None:
    live.apply(*name_servers())
    until(lambda: live.get("daemonset", "names")["status"].get("numberReady") == 3, seconds=90)
    for one in live.get("pods", "--selector=app=names")["items"]:
        live.finds_names(one)


def test_a_job_of_high_priority_takes_the_place_of_a_low_one(live: KubernetesCluster) -> None:
    live.write_spec(nodes=2, quota=32)
    live.up()
    live.apply(pod("low-1", gpus=8, qos="low"), pod("low-2", gpus=8, qos="low"))
    live.runs("low-1")
    live.runs("low-2")
    live.apply(pod("high", gpus=8, qos="high"))
    live.runs("high")
    left = [name for name in ("low-1", "low-2") if live.phase(name) == "Running"]
    assert len(left) == 1
    live.free()


def test_a_quota_is_held_over_all_nodes(live: KubernetesCluster) -> None:
    live.write_spec(nodes=2)
    live.up()
    live.apply(pod("one", gpus=8, qos="low"), pod("two", gpus=8, qos="low"))
    assert "exceeded quota" in live.apply(pod("three", gpus=8, qos="low"), expect=1)
    live.free()


def test_a_login_that_the_spec_drops_is_gone_from_the_control_plane(
    live: KubernetesCluster,
) -> None:
    setting, file = "authentication-config", "/etc/kubernetes/gcluster/authentication.yaml"
    manifest = "/etc/kubernetes/manifests/kube-apiserver.yaml"
    assert live.on("head", f"grep -c {setting} {manifest}; ls {file}").split() == ["1", file]
    live.write_spec(nodes=2, login="")
    live.up()
    assert setting not in live.on("head", f"cat {manifest}; pgrep --list-full kube-apiserver")
    assert live.on("head", f"ls {file} || true").strip() == ""
    assert live.up()["changed"] is False
    assert live.json("drift", str(live.spec))["drifts"] == []
    live.write_spec(nodes=2)
    live.up()
    assert setting in live.on("head", "pgrep --list-full kube-apiserver")


def test_a_third_node_costs_itself(live: KubernetesCluster) -> None:
    before = live.stamp_times()
    live.write_spec(nodes=3)
    live.up()
    assert live.ready()["gpu003"]
    touched = {
        node for (node, _), line in live.stamp_times().items() if before.get((node, _)) != line
    }
    assert touched == {"gpu003"}


def test_a_node_that_the_spec_drops_is_drained_and_removed(live: KubernetesCluster) -> None:
    live.write_spec(nodes=2)
    live.up()
    assert set(live.ready()) == {"head", "gpu001", "gpu002"}
    assert live.up()["changed"] is False


def test_all_that_is_scraped_answers_and_a_pod_s_gpus_are_its(live: KubernetesCluster) -> None:
    live.write_spec(nodes=2, end=f"{SMOKE}monitoring: {{prometheus: true}}\n")
    live.up()
    jobs = {"node": 3, "gpu": 2, "kubelet": 3, "apiserver": 1, "prometheus": 1}
    jobs |= {"alertmanager": 1, "probe": 1}

    def answering() -> dict[str, int]:
        return {
            one["metric"]["job"]: int(one["value"][1]) for one in live.metric("sum by (job) (up)")
        }

    until(lambda: answering() == jobs, seconds=120)
    live.apply(pod("holder", gpus=3, qos="low"))
    live.runs("holder")
    held = 'count(DCGM_FI_PROF_SM_ACTIVE{namespace="physics",pod="holder"})'
    until(lambda: [one["value"][1] for one in live.metric(held)] == ["3"], seconds=90)

    def shown() -> list[tuple[str, float]]:
        jobs = live.json("top", str(live.spec))["jobs"]
        return [(job["account"], job["gpus"]) for job in jobs]

    until(lambda: shown() == [("physics", 3)], seconds=60)  # rules are evaluated every 15 s
    live.free()


def test_a_killed_node_is_an_alert_within_90_s_and_a_cordoned_one_is_none(
    live: KubernetesCluster,
) -> None:
    firing = 'ALERTS{alertname="KubeNodeDown",alertstate="firing"}'
    live.kubectl("cordon", "gpu002")
    until(lambda: bool(live.metric("kube_node_spec_unschedulable == 1")), seconds=60)
    for node in ("gpu001", "gpu002"):
        kill = ["podman", "kill", f"gcluster-{live.name}-{node}"]
        subprocess.run(kill, check=True, capture_output=True)
    until(lambda: bool(live.metric(firing)), seconds=90)
    assert [one["metric"]["instance"] for one in live.metric(firing)] == ["gpu001"]
    live.kubectl("uncordon", "gpu002")
    live.up()
    until(lambda: all(live.ready().values()) and not live.metric(firing), seconds=120)


def test_a_control_plane_that_was_killed_comes_back(live: KubernetesCluster) -> None:
    head = f"gcluster-{live.name}-head"
    subprocess.run(["podman", "kill", head], check=True, capture_output=True)
    live.up()
    until(lambda: all(live.ready().values()), seconds=120)
    names = [one["metadata"]["name"] for one in live.get("namespaces")["items"]]
    assert "physics" in names


def test_a_snapshot_brings_back_what_was_deleted_after_it(live: KubernetesCluster) -> None:
    live.kubectl("create", "configmap", "kept")
    live.on("head", "systemctl start kubernetes-snapshot.service")
    live.kubectl("delete", "configmap", "kept")
    assert "restored" in live.on("head", f"{LIBEXEC}/kubernetes-state.py restore")
    until(lambda: "kept" in live.kubectl("get", "configmaps", expect=None), seconds=120)
    live.on("head", f"{LIBEXEC}/kubernetes-check.py controller 90")


def test_the_only_control_plane_is_lost_and_comes_back_with_the_backup(
    live: KubernetesCluster,
) -> None:
    backup = live.json("backup", str(live.spec))
    head = f"gcluster-{live.name}-head"
    subprocess.run(["podman", "rm", "--force", "--volumes", head], check=True, capture_output=True)
    assert backup["taken_at"] in live.gcluster("up", str(live.spec), "--yes", expect=4).stderr
    live.gcluster("restore", str(live.spec))
    live.up()
    until(lambda: live.ready() == {"head": True, "gpu001": True, "gpu002": True}, seconds=120)
    assert "kept" in live.kubectl("get", "configmaps")
    live.on("head", f"{LIBEXEC}/kubernetes-check.py controller 90")


def test_down_leaves_nothing_and_the_kernel_as_it_was(live: KubernetesCluster) -> None:
    live.gcluster("down", str(live.spec), "--yes")
    assert not any(live.left_behind().values()), live.left_behind()
    assert kernel() == KERNEL_BEFORE
