"""An AllReduce on Kubernetes: started, followed, judged like any other, and gone afterwards."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.lifecycle.kubernetes.api_double import ApiDouble

from gcluster.inventory.compile.kubernetes_objects.facts import KubernetesFacts
from gcluster.lifecycle.cluster.progress import Finding, Progress, silent
from gcluster.lifecycle.nodes.ssh import Unreachable
from gcluster.lifecycle.smoke.launching import kubernetes as kubernetes_launcher
from gcluster.lifecycle.smoke.launching.job import JobRunner, SmokeRun
from gcluster.lifecycle.smoke.launching.kubernetes import KubernetesLauncher, dns_label, renamed

from .kubernetes_cluster import (
    DONE,
    EXPECTED,
    JOB,
    LAUNCH,
    NODES,
    RECORDED,
    RUNS,
    SCHEDULING,
    Cluster,
    failed,
    host,
    pod,
    two_nodes,
)


@pytest.fixture(scope="module")
def facts() -> KubernetesFacts:
    """Give two simulated nodes under Kubernetes."""
    return two_nodes()


@pytest.fixture
def ran(
    tmp_path: Path, facts: KubernetesFacts, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., SmokeRun]:
    """Give what runs an AllReduce on such a cluster, without waiting between looks."""
    monkeypatch.setattr(kubernetes_launcher, "POLL_S", 0.0)
    monkeypatch.setattr(kubernetes_launcher, "END_S", 0.0)
    monkeypatch.setattr(kubernetes_launcher, "NODES_S", 0.0)

    def run(cluster: Cluster, limit_s: float = 5.0) -> SmokeRun:
        runner = JobRunner(KubernetesLauncher(cluster, facts, silent), tmp_path, limit_s)
        return runner.run(LAUNCH, EXPECTED)

    return run


def codes(run: SmokeRun) -> list[str]:
    return [reason.code for reason in run.verdict.reasons]


def recorded() -> str:
    return RECORDED


def removed(cluster: Cluster) -> list[str]:
    deletes = [words for words in cluster.calls if words[0] == "delete"]
    return [word for words in deletes for word in words if word.startswith("--selector")]


def test_a_log_of_local_nodes_passes_under_the_nodes_own_names(
    ran: Callable[..., SmokeRun],
) -> None:
    cluster = Cluster(SCHEDULING | {"jobs": RUNS["jobs"]}, RUNS, DONE, log=recorded())
    run = ran(cluster)
    assert run.verdict.passed, run.verdict.reasons
    assert run.verdict.transport == "ethernet btl=tcp"
    assert run.verdict.simulated
    assert {rank.host for rank in run.log.ranks} == set(NODES)
    assert cluster.streamed == [
        ("logs", "--follow", "--namespace=gcluster-system", f"{JOB}-0-x0yz", "--container=ranks")
    ]
    kept = Path(run.log_file).read_text(encoding="utf-8")
    assert kept.startswith(f"# gcluster: {JOB}-0 runs on gpu001\n")


def test_the_job_owns_its_other_objects_and_all_of_them_are_removed(
    ran: Callable[..., SmokeRun],
) -> None:
    cluster = Cluster(RUNS, DONE, log=recorded())
    ran(cluster)
    secret = cluster.made("Secret")
    assert secret["metadata"]["ownerReferences"][0]["name"] == JOB  # type: ignore[index]  # JSON
    held = secret["stringData"]
    assert isinstance(held, dict)
    assert set(held) == {"key", "authorized_keys", "host_key", "known_hosts"}
    assert "PRIVATE KEY" in held["key"]
    assert not any("PRIVATE KEY" in word for words in cluster.calls for word in words)
    term = cluster.made("Job")["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]  # type: ignore[index]  # JSON
    assert json.dumps(term).count("gpu00") == len(NODES)
    assert removed(cluster) == [f"--selector=gcluster.local/allreduce={JOB}"]


def test_the_log_without_its_transport_line_fails(ran: Callable[..., SmokeRun]) -> None:
    lines = recorded().splitlines(keepends=True)
    text = "".join(line for line in lines if "gcluster transport" not in line)
    assert codes(ran(Cluster(RUNS, DONE, log=text))) == ["no-transport"]


def test_a_corrupted_value_fails_by_its_count_and_not_by_the_job_s_end(
    ran: Callable[..., SmokeRun],
) -> None:
    text = recorded().replace("Out of bounds values : 0 OK", "Out of bounds values : 2 FAILED")
    first = pod(0, phase="Failed", exit="7", ended="Error")
    ended = failed(first, why=f"pod gcluster-system/{first['name']} failed with exit code 7")
    cluster = Cluster(RUNS, ended, log=text)
    assert codes(ran(cluster)) == ["wrong-result"]
    assert removed(cluster)


def test_a_rank_that_is_missing_in_the_log_fails(ran: Callable[..., SmokeRun]) -> None:
    lines = recorded().splitlines(keepends=True)
    text = "".join(line for line in lines if "Rank  1 " not in line)
    assert "missing-rank" in codes(ran(Cluster(RUNS, DONE, log=text)))


def test_a_pod_that_no_node_takes_is_named_and_nothing_is_at_fault(
    ran: Callable[..., SmokeRun],
) -> None:
    answer = "0/3 nodes are available: 1 Insufficient nvidia.com/gpu."
    waits = pod(1, phase="Pending", node="", unscheduled=answer)
    cluster = Cluster({"pods": [pod(0), waits], "jobs": RUNS["jobs"]})
    run = ran(cluster, limit_s=0.0)
    assert codes(run) == ["aborted"]
    assert answer in run.verdict.reasons[0].message
    assert not run.started
    assert removed(cluster)
    assert answer in Path(run.log_file).read_text(encoding="utf-8")


def test_a_pod_that_was_never_made_is_missed(ran: Callable[..., SmokeRun]) -> None:
    run = ran(Cluster({"pods": [pod(0)], "jobs": RUNS["jobs"]}), limit_s=0.0)
    assert "1 of 2 pods do not exist" in run.verdict.reasons[0].message


def test_an_image_that_is_not_there_is_waited_for_no_longer(ran: Callable[..., SmokeRun]) -> None:
    lacks = pod(0, phase="Pending", waiting="ErrImageNeverPull")
    run = ran(Cluster({"pods": [lacks, pod(1)], "jobs": RUNS["jobs"]}), limit_s=3600.0)
    assert "ErrImageNeverPull" in run.verdict.reasons[0].message


@pytest.mark.parametrize("placed", ["gpu001", ""])
@pytest.mark.parametrize(
    ("node", "message"),
    [
        (
            {"ready": "Unknown", "not_ready": "Kubelet is silent."},
            "gpu001: not ready: Kubelet is silent",
        ),
        ({"ready": "True", "cordoned": "true", "reason": "fan"}, "gpu001: fan"),
        (None, "gpu001: it is not in the cluster"),
    ],
)
def test_a_node_that_does_not_serve_is_named_and_not_waited_for(
    ran: Callable[..., SmokeRun], placed: str, node: dict[str, str] | None, message: str
) -> None:
    """Silent under a pod that it has, or none gets there; a cordon alone ends no pod."""
    serving = [{"name": name, "ready": "True"} for name in NODES]
    away = [serving[1], *([{"name": "gpu001", **node}] if node else [])]
    first = pod(0, phase="Pending", node=placed)
    waits = {"pods": [first, pod(1)], "jobs": RUNS["jobs"], "nodes": away}
    cluster = Cluster(waits | {"nodes": serving}, *([waits] * 3), RUNS, DONE, log=recorded())
    run = ran(cluster, limit_s=3600.0)
    if node and node.get("cordoned") and placed:
        assert run.verdict.passed
    else:
        assert message in run.verdict.reasons[0].message
        assert not run.started


def test_what_a_silent_node_does_not_give_back_is_removed_by_force(
    ran: Callable[..., SmokeRun],
) -> None:
    cluster = Cluster(RUNS, DONE, log=recorded())
    cluster.refused = "timed out waiting for the condition on jobs/x"
    ran(cluster)
    deletes = [words for words in cluster.calls if words[0] == "delete"]
    every = "jobs,services,configmaps,secrets"
    assert [words[1] for words in deletes] == [every, "pods", every]
    assert {"--force", "--grace-period=0", f"--selector=gcluster.local/allreduce={JOB}"} <= {
        *deletes[1]
    }


def test_a_pod_that_ends_in_the_middle_is_named_by_its_node(ran: Callable[..., SmokeRun]) -> None:
    killed = pod(1, phase="Failed", exit="137")
    ended = failed(
        killed, why=f"Container ranks for pod x/{killed['name']} failed with exit code 137"
    )
    cut = "".join(recorded().splitlines(keepends=True)[:-4])
    run = ran(Cluster(RUNS, ended, log=cut))
    assert codes(run)[0] == "aborted"
    assert "the pod on gpu002 failed" in run.verdict.reasons[0].message
    assert run.started


def test_a_first_pod_that_fails_at_once_has_its_log_read_all_the_same(
    ran: Callable[..., SmokeRun],
) -> None:
    first = pod(0, phase="Failed", exit="127")
    cluster = Cluster(failed(first, why=f"pod x/{first['name']} failed"), log="mpirun: not found\n")
    run = ran(cluster)
    assert run.verdict.reasons[0].message == "the launcher ended with status 127"
    assert "mpirun: not found" in Path(run.log_file).read_text(encoding="utf-8")


def test_a_log_that_comes_to_no_end_is_given_up(ran: Callable[..., SmokeRun]) -> None:
    cluster = Cluster(RUNS, answer=Unreachable(reason="no end within 5 s"))
    run = ran(cluster, limit_s=0.001)
    assert run.verdict.reasons[0].message.startswith("its log came to no end: no end within 5 s")
    assert removed(cluster)


def test_a_log_of_a_pass_needs_no_end_of_the_job(
    ran: Callable[..., SmokeRun],
) -> None:
    cluster = Cluster(RUNS, log=recorded() + "# mpirun ended with 0\n")
    assert ran(cluster).verdict.passed
    assert removed(cluster)


@pytest.mark.parametrize("after", ["# mpirun ended with 1\n", "# mpirun ended with 0\nmore\n"])
def test_any_other_last_line_needs_the_end_of_the_job(
    ran: Callable[..., SmokeRun], after: str
) -> None:
    assert codes(ran(Cluster(RUNS, log=recorded() + after))) == ["aborted"]


def test_an_api_that_is_silent_is_a_failure_and_what_may_be_left_is_reported(
    tmp_path: Path, facts: KubernetesFacts
) -> None:
    cluster, answer = Cluster(), list[Progress]()
    cluster.silent = "head: connection refused"
    run = JobRunner(KubernetesLauncher(cluster, facts, answer.append), tmp_path, 5).run(
        LAUNCH, EXPECTED
    )
    assert "no API server answers" in run.verdict.reasons[0].message
    (finding,) = answer
    assert isinstance(finding, Finding)
    assert finding.diagnostic.code == "GC1030"


def test_idle_nodes_are_ready_and_have_no_job_and_no_gpus_in_use(facts: KubernetesFacts) -> None:
    pods = [
        {"node": "gpu001", "owner": "DaemonSet"},
        {"node": "gpu001", "owner": "ReplicaSet"},
        {"node": "gpu002", "owner": "ReplicaSet", "limits": '{"nvidia.com/gpu":"1"}'},
    ]
    nodes = [{"name": name, "ready": "True"} for name in NODES]
    compute = tuple(map(host, NODES))
    cluster = ApiDouble({"nodes": nodes, "pods": pods})
    idle, busy = KubernetesLauncher(cluster, facts, silent).idle(compute)
    assert ([one.name for one in idle], busy) == (["gpu001"], ("gpu002",))
    assert cluster.calls[0][0] == "delete"  # what a killed gate left holds nodes
    nodes[0]["cordoned"] = "true"
    held = KubernetesLauncher(ApiDouble({"nodes": nodes, "pods": pods}), facts, silent)
    assert held.idle(compute) == (compute, ())


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("gcluster-smoke-ab-main-1", "gcluster-smoke-ab-main-1"),
        ("smoke-rail-mlx5_0", "smoke-rail-mlx5-0"),
        ("x" * 60 + "-part-1-2", "x" * 43 + "-part-1-2"),
    ],
)
def test_jobs_have_names_that_kubernetes_takes(name: str, label: str) -> None:
    assert dns_label(name) == label


def test_only_whole_names_of_pods_become_their_nodes() -> None:
    answer: list[str] = []
    take = renamed("job-1", {"job-1-0": "gpu001", "job-1-1": "gpu002"}, answer.append)
    take("job-1-1.job-1 and job-1-0:12:34 but job-1-0-x1yz, job-1-10 and job-1-1.other")
    assert answer == ["gpu002 and gpu001:12:34 but job-1-0-x1yz, job-1-10 and job-1-1.other"]
