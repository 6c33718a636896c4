"""Whose jobs are on which nodes, as a plan and an expiry query before nodes go."""

from __future__ import annotations

from pathlib import Path

from tests.lifecycle.controller import HEAD, DownShell, LocalShell

from gcluster.inventory.hosts import ClusterInventory
from gcluster.lifecycle.kubernetes.workloads import Work, see_work
from gcluster.lifecycle.nodes.ssh import Answer, Unreachable
from gcluster.lifecycle.planning.changes import JobImpact
from gcluster.lifecycle.planning.job_impact import query_job_impact

from .api_double import ApiDouble
from .spec import spec_of

HOSTS = ClusterInventory(cluster="trial", hosts=(HEAD,))
JOB = {"namespace": "nlp", "queue": "main"}
POD = {"namespace": "nlp", "phase": "Running", "owner": "Job", "owner_name": "train"}
WEB = {"namespace": "web", "owner": "ReplicaSet", "owner_name": "web", "node": "gpu001"}


def seen(*pods: dict[str, str], jobs: tuple[dict[str, str], ...] = ()) -> set[tuple[str, str]]:
    found = see_work(ApiDouble({"jobs": list(jobs), "pods": list(pods)}))
    return {(one.id, ",".join(sorted(one.nodes))) for one in found}


def test_a_job_holds_the_nodes_of_all_its_pods_and_one_without_any_waits() -> None:
    pods = [
        {**POD, "name": "train-0", "node": "gpu001"},
        {**POD, "name": "train-1", "node": "gpu002"},
        {**POD, "name": "train-2"},
    ]
    jobs = (
        {**JOB, "name": "train"},
        {**JOB, "name": "next"},
        {**JOB, "name": "b", "ended": "True"},
    )
    assert seen(*pods, jobs=jobs) == {("nlp/train", "gpu001,gpu002"), ("nlp/next", "")}


def test_pods_of_no_job_count_each_and_services_only_where_they_hold_gpus() -> None:
    gpus = '{"nvidia.com/gpu":"8"}'
    found = seen(
        {"namespace": "nlp", "name": "bare", "node": "gpu001"},
        {**WEB, "name": "web-1"},
        {**WEB, "name": "chat-1", "limits": gpus},
        {**WEB, "name": "proxy", "owner": "DaemonSet", "limits": gpus},
    )
    assert found == {("nlp/bare", "gpu001"), ("web/chat-1", "gpu001")}


# Of an API server 1.35.4: a job whose pod has a node and hasn't begun, two pods of a DaemonSet.
JOBS = r"physics\037train\037\0372026-11-22T17:20:30Z\037false\037\036"
PODS = (
    r"physics\037train-fpzgm\037gpu001\037Pending\037Job\037train\037"
    r'{"nvidia.com/gpu":"4"}\037\0372026-11-22T17:20:30Z\037\037\037\036'
    r"gcluster-system\037simulated-gpu-gpu-bhtrr\037gpu001\037Pending\037DaemonSet\037"
    r"simulated-gpu-gpu\037\037\0372026-11-22T17:13:32Z\037\037\037\036"
)


def test_a_plan_is_reported_whose_jobs_it_hits(tmp_path: Path) -> None:
    shell = LocalShell(tmp_path)
    shell.has("sudo", 'shift; exec "$@"')
    shell.has("kubectl", f"case \"$3\" in jobs) printf '{JOBS}' ;; pods) printf '{PODS}' ;; esac")
    job_impact = query_job_impact(spec_of(), shell, HOSTS, {"gpu001"})
    assert job_impact == JobImpact(queue=1, jobs=("physics/train",), users=("physics",))
    assert query_job_impact(spec_of(), shell, HOSTS, {"gpu002"}) == JobImpact(queue=1)


class Off(DownShell):
    """The double of a session to a machine that is off, queried alone."""

    def run(
        self, host: object, command: str, *, stdin: str | None = None, timeout_s: float = 60
    ) -> Answer:
        """Say that it is off."""
        del host, command, stdin, timeout_s
        return Unreachable(reason="no route to host")


def test_a_plan_reports_that_a_query_failed(tmp_path: Path) -> None:
    job_impact = query_job_impact(spec_of(), Off(tmp_path), HOSTS, {"gpu001"})
    assert job_impact is not None
    assert "no route to host" in job_impact.problem


def test_work_is_named_by_its_account() -> None:
    assert Work(namespace="nlp", name="train").id == "nlp/train"
