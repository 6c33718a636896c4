"""One exec on the controller returns nodes, queue, quotas and what is wrong with the controller."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.lifecycle.controller import HEAD, DownShell, LocalShell

from gcluster.lifecycle.status.conditions import PartitionQueue, QuotaUse, WaitingFor
from gcluster.lifecycle.status.slurm import queue_of, quotas_of, report_of, tasks_of

ASSOCIATIONS = """\
Current Association Manager state

Association Records

ClusterName=demo Account=root UserName= Partition= Priority=0 ID=1
    SharesRaw/Norm/Level/Factor=1/0.00/1/0.00
    UsageRaw/Norm/Efctv=1646501252.24/1.00/1.00
    ParentAccount= Lft=1 DefAssoc=No
    GrpJobs=N(700) GrpJobsAccrue=N(0)
    GrpSubmitJobs=N(700) GrpWall=N(10556027.97)
    GrpTRES=cpu=N(1434),mem=N(2709980),energy=N(0),node=N(66),billing=N(1434),gres/gpu=N(80)
    GrpTRESMins=cpu=N(27642627),gres/gpu=N(1093678)
ClusterName=demo Account=nlp UserName= Partition= Priority=0 ID=10
    ParentAccount=root(1) Lft=1620 DefAssoc=No
    GrpTRES=cpu=N(96),mem=N(589824),gres/gpu=512(64)
ClusterName=demo Account=nlp UserName=ada(2001) Partition= Priority=0 ID=11
    GrpTRES=cpu=N(96),mem=N(589824),gres/gpu=8(64)
ClusterName=demo Account=idle UserName= Partition= Priority=0 ID=12
    GrpTRES=cpu=1000(0),gres/gpu=N(0)
"""
"""As scontrol prints it; shortened."""


def test_gpus_in_use_and_limits_are_reported_by_account_and_not_by_user() -> None:
    assert quotas_of(ASSOCIATIONS) == (
        QuotaUse(account="root", resource="gres/gpu", used=80, limit=None),
        QuotaUse(account="nlp", resource="gres/gpu", used=64, limit=512),
        QuotaUse(account="idle", resource="cpu", used=0, limit=1000),
    )


def test_without_accounting_there_are_no_quotas() -> None:
    assert quotas_of("Current Association Manager state\n\nNo association records\n") == ()


@pytest.mark.parametrize(
    ("job", "tasks"),
    [("12", 1), ("12_4", 1), ("12_[1-100]", 100), ("12_[1-100:2,200%5]", 51), ("12_[3,5,9]", 3),
     ("", 1)],
)  # fmt: skip
def test_each_task_of_an_array_is_a_job(job: str, tasks: int) -> None:
    assert tasks_of(job) == tasks


def test_what_pending_jobs_wait_for_is_counted_by_the_tasks_of_arrays() -> None:
    queue = queue_of(
        [
            "RUNNING|train|100|7|None",
            "PENDING|train|400|8_[1-10]|Resources",
            "PENDING|train|400|9|Priority",
        ],
        now=1000,
    )
    assert queue.reasons == (
        WaitingFor(reason="Resources", jobs=10),
        WaitingFor(reason="Priority", jobs=1),
    )


def test_the_queue_is_counted_by_partition_with_its_oldest_wait() -> None:
    queue = queue_of(
        ["RUNNING|train|100|7", "PENDING|train|400|8_[1-10]", "PENDING|train,debug|700|9"],
        now=1000,
    )
    assert (queue.running, queue.pending, queue.oldest_wait_s) == (1, 11, 600.0)
    assert queue.partitions == (
        PartitionQueue(name="debug", running=0, pending=1, oldest_wait_s=300.0),
        PartitionQueue(name="train", running=1, pending=11, oldest_wait_s=600.0),
    )


@pytest.fixture
def shell(tmp_path: Path) -> LocalShell:
    """Give a controller on which all programs answer."""
    shell = LocalShell(tmp_path / "bin")
    shell.has(
        "sinfo",
        """case "$*" in
*--list-reasons*) [ "$SLURM_TIME_FORMAT" = %s ] && echo 'gpu002|1795321119' ;;
*) echo 'gpu001|mixed|none'; echo 'gpu002|drained|RMA 4711' ;;
esac""",
    )
    shell.has("squeue", 'echo "RUNNING|main|$(($(date +%s) - 60))|12"')
    shell.has("scontrol", f"cat <<'END'\n{ASSOCIATIONS}END")
    shell.has("sudo", 'shift; exec "$@"')
    shell.has("systemctl", "echo active")
    shell.has("df", "echo 'Use% Mounted on'; echo ' 41% /var'")
    return shell


def test_one_exec_shows_everything(shell: LocalShell) -> None:
    report = report_of(shell, HEAD)
    assert report.view.problem == ""
    assert report.view.states == {"gpu001": "mixed", "gpu002": "drained"}
    assert report.view.reasons == {"gpu002": "RMA 4711"}
    assert report.since == {"gpu002": "2026-11-22T04:18:39Z"}
    assert [quota.account for quota in report.quotas] == ["root", "nlp", "idle"]
    assert report.view.queue is not None
    assert report.view.queue.running == 1
    assert report.facts is not None
    assert report.facts.units == {"slurmctld": "active", "munge": "active"}
    assert report.facts.disks == {"/var": 41}
    assert report.facts.dbd == ""


def test_a_failed_slurmctld_leaves_the_controller_s_own_message(shell: LocalShell) -> None:
    shell.has("squeue", "echo 'slurm_load_jobs error: Connection refused' >&2; exit 1")
    shell.has("systemctl", '[ "$2" = munge ] && echo active || echo failed')
    report = report_of(shell, HEAD)
    assert report.view.problem.endswith(
        "does not answer: slurm_load_jobs error: Connection refused"
    )
    assert report.facts is not None
    assert report.facts.units == {"slurmctld": "failed", "munge": "active"}


def test_a_controller_that_is_off_reports_nothing(tmp_path: Path) -> None:
    report = report_of(DownShell(tmp_path), HEAD)
    assert report.view.problem == "controller head: no route to host"
    assert report.facts is None
