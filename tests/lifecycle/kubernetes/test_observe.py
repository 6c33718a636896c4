"""What kubectl's template printed is read into nodes and pods, and into a status."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from gcluster.lifecycle.kubernetes import observe as look
from gcluster.lifecycle.kubernetes.kubectl import read_rows
from gcluster.lifecycle.kubernetes.observe import NodeSeen, PodSeen, holding, see_nodes, see_pods
from gcluster.lifecycle.status import kubernetes as report
from gcluster.lifecycle.status.conditions import PartitionQueue, QuotaUse, WaitingFor
from gcluster.lifecycle.status.kubernetes import in_short, jobs_of, kubernetes_report

from .api_double import ApiDouble

READY = {"name": "gpu001", "ready": "True", "not_ready": "kubelet is posting ready status"}
CORDONED = {
    "name": "gpu002",
    "ready": "True",
    "cordoned": "true",
    "reason": "NVLink of GPU 3",
    "since": "2026-11-22T10:00:00Z",
}
SILENT = {
    "name": "gpu003",
    "ready": "Unknown",
    "not_ready": "Kubelet stopped posting node status.",
    "not_ready_since": "2026-11-22T11:00:00Z",
}
POD = {"namespace": "nlp", "name": "train-0", "node": "gpu001", "phase": "Running", "owner": "Job"}


def seen(*nodes: Mapping[str, str]) -> dict[str, NodeSeen]:
    return see_nodes(ApiDouble({"nodes": nodes}))


def test_a_record_that_was_cut_short_is_left_out() -> None:
    assert read_rows("a\x1fb\x1ec\x1fd\x1ee", ["x", "y"]) == [
        {"x": "a", "y": "b"},
        {"x": "c", "y": "d"},
    ]


def test_nodes_are_in_service_cordoned_with_a_reason_or_not_ready_with_the_kubelet_s() -> None:
    found = seen(READY, CORDONED, SILENT)
    assert {name: node.why for name, node in found.items()} == {
        "gpu001": "",
        "gpu002": "NVLink of GPU 3",
        "gpu003": "not ready: Kubelet stopped posting node status.",
    }
    assert [node.out for node in found.values()] == [False, True, True]


def test_a_cordon_without_a_reason_is_reported_with_the_node_s_own_message() -> None:
    bare = {**READY, "cordoned": "true"}
    assert seen(bare)["gpu001"].why == "cordoned without a reason"
    assert seen({**SILENT, "cordoned": "true"})["gpu003"].why == (
        "cordoned without a reason; not ready: Kubelet stopped posting node status."
    )
    unfit = {**bare, "unfit": "True", "finding": "gpu-count: 7 of 8 GPUs"}
    assert seen(unfit)["gpu001"].why == "gpu-count: 7 of 8 GPUs"


def test_a_node_that_waits_for_its_device_plugin_reports_for_which() -> None:
    labels = {"gcluster.local/pool": "gpu", "awaits.gcluster.local/nvidia.com_gpu": "true"}
    labels["awaits.gcluster.local/rdma_ib"] = "true"
    starts = {
        **READY,
        "starts": "gcluster.local/startup",
        "labels": json.dumps(labels),
        "allocatable": '{"cpu":"8","rdma/ib":"63","nvidia.com/gpu":"0"}',
    }
    assert seen(starts)["gpu001"].awaits == ("nvidia.com/gpu",)
    assert seen({**starts, "starts": ""})["gpu001"].awaits == ()
    view = kubernetes_report(ApiDouble({"nodes": [starts]})).view
    assert view.states == {"gpu001": "starting"}
    assert view.reasons == {"gpu001": "no device plugin has registered nvidia.com/gpu yet"}
    assert not view.is_fit("gpu001")


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ([("AcceleratedHardwareReady", "False", "XID 79 on GPU 3")], "XID 79 on GPU 3"),
        ([("KernelDeadlock", "True", "task hung")], "KernelDeadlock: task hung"),
        ([("DiskPressure", "True", "")], "DiskPressure"),
        ([("Ready", "True", ""), ("KernelReady", "True", ""), ("KernelDeadlock", "False", "")], ""),
        ([("StorageReady", "Unknown", "")], ""),
    ],
)
def test_what_a_clouds_problem_detector_has_makes_a_node_unfit(
    conditions: list[tuple[str, str, str]], message: str
) -> None:
    text = "".join("\t".join(one) + "\x1c" for one in conditions)
    node = seen({**READY, "conditions": text})["gpu001"]
    assert (node.out, bool(node.unfit)) == (False, bool(message))
    assert message in node.unfit
    view = kubernetes_report(ApiDouble({"nodes": [{**READY, "conditions": text}]})).view
    assert view.is_fit("gpu001") is not bool(message)


def test_a_job_that_runs_in_part_reports_what_the_rest_waits_for() -> None:
    job = dict.fromkeys(report.JOB_FIELDS, "") | {
        "namespace": "nlp",
        "name": "train",
        "created": "2026-11-22T12:00:00Z",
        "wanted": "4",
        "completions": "6",
        "succeeded": "3",
    }
    pod = look.PodSeen(namespace="nlp", name="x", phase="Running", owner="Job", owner_name="train")
    held = {("nlp", "train"): 'pods "y" is forbidden: exceeded quota: gpus'}
    (answer,) = jobs_of([job], [pod], held)
    assert answer.runs
    assert answer.why == "only 1 of 3 pods run: exceeded quota: gpus"
    assert report.queue_of([answer], now=datetime.now(UTC)).reasons[0].reason == answer.why
    (whole,) = jobs_of([job | {"succeeded": "5"}], [pod], held)
    assert whole.why == ""


def test_a_node_that_is_unfit_and_serves_is_reported_with_what_is_wrong() -> None:
    double = ApiDouble({"nodes": [{**READY, "unfit": "True", "finding": "gpu-count: 7 of 8 GPUs"}]})
    view = kubernetes_report(double).view
    assert view.states == {"gpu001": "ready, unfit"}
    assert not view.is_fit("gpu001")
    assert view.reasons == {"gpu001": "unfit and left in service: gpu-count: 7 of 8 GPUs"}


def test_a_node_is_held_by_its_pods_but_not_by_those_that_belong_to_it() -> None:
    pods = see_pods(
        ApiDouble(
            {
                "pods": [
                    POD,
                    {**POD, "name": "proxy", "owner": "DaemonSet"},
                    {**POD, "name": "etcd", "owner": "Node"},
                    {**POD, "name": "waits", "node": ""},
                ]
            }
        )
    )
    assert {node: [pod.id for pod in held] for node, held in holding(pods).items()} == {
        "gpu001": ["nlp/train-0"]
    }


def test_gpus_are_seen_as_resources_and_as_claims() -> None:
    limits = [{"limits": '{"nvidia.com/gpu":"8"}'}, {"claims": "gpus"}, {"limits": '{"cpu":"1"}'}]
    pods = see_pods(ApiDouble({"pods": [POD | more for more in limits]}))
    assert [pod.gpus for pod in pods] == [True, True, False]


def test_a_template_requests_every_field_of_each_object() -> None:
    double = ApiDouble({"nodes": [READY]})
    see_nodes(double)
    (calls,) = double.calls
    assert calls[:2] == ("get", "nodes")
    assert calls[2].count("\\u001f") == len(look.NODE_FIELDS) - 1


def test_the_reason_is_what_is_between_the_scheduler_s_other_words() -> None:
    assert (
        in_short(
            "0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient nvidia.com/gpu."
            " preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
        )
        == "1 node(s) were unschedulable, 2 Insufficient nvidia.com/gpu"
    )
    assert in_short(
        'Error creating: pods "x-" is forbidden: exceeded quota: gpus, requested: 8, used: 8'
    ).startswith("exceeded quota: gpus")


JOB = {"namespace": "nlp", "name": "train", "queue": "main", "created": "2026-11-22T12:00:00Z"}


def test_jobs_are_counted_once_and_wait_for_the_reason_of_their_pods_or_refusal() -> None:
    pods = [
        PodSeen(namespace="nlp", name="a-0", owner="Job", owner_name="a", phase="Running"),
        PodSeen(namespace="nlp", name="a-1", owner="Job", owner_name="a", phase="Running"),
        PodSeen(
            namespace="nlp",
            name="b-0",
            owner="Job",
            owner_name="b",
            phase="Pending",
            pending="0/2 nodes are available: 2 Insufficient nvidia.com/gpu.",
        ),
        PodSeen(namespace="kube-system", name="dns", owner="ReplicaSet", phase="Pending"),
        PodSeen(namespace="nlp", name="bare", phase="Running", created=JOB["created"]),
    ]
    rows = [{**JOB, "name": name, "suspended": "", "ended": ""} for name in "abc"]
    rows.append({**JOB, "name": "done", "suspended": "", "ended": "True"})
    work = jobs_of(rows, pods, {("nlp", "c"): "exceeded quota: gpus"})
    queue = report.queue_of(work, now=datetime(2026, 11, 22, 12, 10, tzinfo=UTC))
    assert (queue.running, queue.pending, queue.oldest_wait_s) == (2, 2, 600.0)
    assert queue.partitions == (
        PartitionQueue(name="main", running=1, pending=2, oldest_wait_s=600.0),
    )
    assert set(queue.reasons) == {
        WaitingFor(reason="2 Insufficient nvidia.com/gpu", jobs=1),
        WaitingFor(reason="exceeded quota: gpus", jobs=1),
    }


def test_one_report_shows_nodes_queue_and_quotas() -> None:
    quota = {"account": "nlp", "hard": '{"requests.nvidia.com/gpu":"16"}'}
    double = ApiDouble(
        {
            "nodes": [READY, CORDONED],
            "jobs": [JOB],
            "resourcequotas": [
                {**quota, "name": "gpus", "used": '{"requests.nvidia.com/gpu":"8"}'},
                {**quota, "name": "qos-high", "used": "{}"},
            ],
            "events": [
                {"namespace": "nlp", "job": "train", "message": "x is forbidden: exceeded quota: g"}
            ],
        }
    )
    answer = kubernetes_report(double)
    assert answer.view.problem == ""
    assert answer.view.states == {"gpu001": "ready", "gpu002": "cordoned"}
    assert [answer.view.is_fit(name) for name in answer.view.states] == [True, False]
    assert answer.since == {"gpu002": "2026-11-22T10:00:00Z"}
    assert answer.view.queue is not None
    assert answer.view.queue.reasons == (WaitingFor(reason="exceeded quota: g", jobs=1),)
    assert answer.quotas == (
        QuotaUse(account="nlp", resource="nvidia.com/gpu", used=8, limit=16),
        QuotaUse(account="nlp (QOS high)", resource="nvidia.com/gpu", used=0, limit=16),
    )


def test_a_suspended_job_waits_for_its_queue_with_kueue_s_message_where_it_is_installed() -> None:
    held = {"nodes": [READY], "jobs": [{**JOB, "suspended": "true"}]}
    bare = kubernetes_report(ApiDouble(held)).view.queue
    assert bare is not None
    assert bare.reasons == (WaitingFor(reason="suspended", jobs=1),)
    workload = {"namespace": "nlp", "job": "train", "why": "insufficient unused quota"}
    queued = ApiDouble({**held, "workloads.kueue.x-k8s.io": [workload]})
    answer = kubernetes_report(queued).view.queue
    assert answer is not None
    assert answer.reasons == (WaitingFor(reason="insufficient unused quota", jobs=1),)


def test_an_api_that_is_silent_is_reported() -> None:
    answer = kubernetes_report(ApiDouble({}, silent="head: connection refused"))
    assert answer.view.problem == "the API does not answer: head: connection refused"
    assert answer.view.queue is None
