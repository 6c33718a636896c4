"""Queue, quotas and causes are lines that an operator reads, and nothing where there is nothing."""

from __future__ import annotations

from datetime import UTC, datetime

from gcluster.cli.console import Console
from gcluster.cli.render.inspect.status import status_text
from gcluster.cli.render.operate.operations import (
    causes_lines,
    paces_text,
    queue_lines,
    quota_lines,
    rebooted_text,
    saved_text,
    service_text,
)
from gcluster.lifecycle.cluster.outcome import Exit
from gcluster.lifecycle.operations.queue_state import SavedQueue
from gcluster.lifecycle.operations.reboot import Pace, RebootResult
from gcluster.lifecycle.operations.service import ServiceChange, ServiceResult
from gcluster.lifecycle.status.conditions import (
    Cause,
    ClusterStatus,
    NodeStatus,
    PartitionQueue,
    QueueStatus,
    QuotaUse,
    WaitingFor,
)

SURFACE = Console(width=100)


def test_partitions_are_listed_where_there_are_several() -> None:
    train = PartitionQueue(name="train", running=3, pending=9, oldest_wait_s=5400)
    debug = PartitionQueue(name="debug", running=0, pending=0)
    queue = QueueStatus(running=3, pending=9, oldest_wait_s=5400, partitions=(debug, train))
    assert list(queue_lines(queue)) == [
        "queue        3 running, 9 pending, the oldest for 90 min",
        "  debug  0 running, 0 pending",
        "  train  3 running, 9 pending, the oldest for 90 min",
    ]


def test_what_most_jobs_wait_for_is_reported_and_the_rest_counted() -> None:
    reasons = [WaitingFor(reason=f"why {number}", jobs=10 - number) for number in range(8)]
    lines = list(queue_lines(QueueStatus(running=0, pending=52, reasons=tuple(reasons))))
    assert lines[1] == "  10 wait: why 0"
    assert lines[5:] == ["  6 wait: why 4", "  12 wait for other reasons"]


def test_quotas_are_reported_with_their_limit_where_there_is_one() -> None:
    assert quota_lines(
        (
            QuotaUse(account="nlp", resource="gres/gpu", used=64, limit=512),
            QuotaUse(account="vision", resource="gres/gpu", used=8, limit=None),
        )
    ) == ["accounts", "  nlp     64 of 512 gpu", "  vision  8 gpu"]
    assert quota_lines(()) == []


def test_a_status_shows_a_drained_node_s_reason_and_since_when_and_the_cause() -> None:
    status = ClusterStatus(
        cluster="demo",
        conditions=(),
        nodes=(
            NodeStatus(
                name="gpu017",
                site="here",
                pool="gpu",
                role="compute",
                address="192.0.2.7",
                reachable=True,
                scheduler_state="drained",
                reason="NVLink inactive on GPU 3",
                out_since="2026-11-21T08:18:00Z",
            ),
        ),
        queue=None,
        certificate=None,
        causes=(Cause(kind="x", host="gpu017", summary="a link is off", next_step="reseat it"),),
    )
    text = status_text(status, SURFACE, now=datetime(2026, 11, 21, 8, 30, tzinfo=UTC))
    assert "drained  NVLink inactive on GPU 3, for 12 min" in text
    assert "cause: a link is off\n  next: reseat it" in text


def test_what_a_drain_did_is_reported_node_by_node() -> None:
    nodes = (
        ServiceChange(name="gpu001", in_service=False, changed=True, jobs=("7",), reason="RMA"),
        ServiceChange(name="gpu002", in_service=True, changed=False),
    )
    text = service_text(ServiceResult(cluster="demo", nodes=nodes, exit_code=Exit.OK))
    assert text.splitlines() == [
        "gpu001  out of service, 1 jobs run on, RMA",
        "gpu002  in service, as before",
    ]


def test_a_saved_queue_without_a_count_is_not_reported_as_empty() -> None:
    saved = SavedQueue(
        id="20261122T120000Z-abcdef", taken_at="2026-11-22T12:00:00Z", slurm="24.11",
        running=None, pending=None, size=2048, sha256="",
    )  # fmt: skip
    assert saved_text(saved) == (
        "20261122T120000Z-abcdef  unknown jobs, 2,048 bytes, accounts not in it, Slurm 24.11"
    )


def test_very_many_causes_are_reported_by_their_number() -> None:
    cause = Cause(kind="node-dead", host="gpu", summary="it is off", next_step="start it")
    lines = list(causes_lines([cause] * 500, SURFACE))
    assert len(lines) == 41
    assert lines[-1] == "and 480 causes more: --format json has them"


def test_a_reboot_is_shown_before_and_reported_after() -> None:
    pace = Pace(
        pool="gpu", nodes=("gpu001", "gpu002"), at_once=1, wait_s=3600, requeues=False, jobs=3
    )
    assert paces_text([pace]) == "gpu: gpu[001-002], 1 at a time; waits up to 60 min for 3 jobs"
    done = RebootResult(
        cluster="demo",
        rebooted=("gpu001",),
        failed={"gpu002": "no GPUs"},
        held={"gpu003": "job 7 still runs there"},
        exit_code=Exit.FAILED,
    )
    assert rebooted_text(done).splitlines() == [
        "gpu001 restarted",
        "gpu002 failed, and stays drained: no GPUs",
        "gpu003 not restarted, in service: job 7 still runs there",
    ]
