"""What a job does at its end: it measures its nodes, and waits for its last copy on one of them."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from . import test_job_launch
from .test_job_launch import FOLDER, PAIRS, measured, run, slurm

__all__ = ["slurm"]  # a fixture

AFTER = ("--nodes=3", "--gate-after=60")


@pytest.fixture
def reports(slurm: Path) -> Path:
    """Return the folder for words to the health check."""
    folder = slurm / "slow-nodes"
    folder.mkdir()
    return folder


def test_a_node_that_became_slow_is_named_and_reported_to_its_health_check(
    slurm: Path, reports: Path
) -> None:
    reads = (
        f"(while ! cp {reports}/7 {slurm}/read 2>/dev/null; do sleep 0.1; done; rm {reports}/7) &\n"
    )
    code, log, _ = run(
        slurm,
        f"{reads} echo trained",
        *AFTER,
        gate=measured(PAIRS),
        GCLUSTER_SLOW_NODES=str(reports),
    )

    assert code == 0
    assert log.index("trained") < log.index("gate: gpu002 is slow: 1.20 GB/s, 10.00 in the middle")
    assert log.count("3 nodes two by two") == 1, "what is confirmed is said once"
    assert "is reported to its health check\n" in log
    assert json.loads((slurm / "read").read_text()) == {"best": 1.2, "middle": 10.0}
    assert (slurm / "requeued").read_text() == (
        "update JobId=7 Comment=data=warm gate-before=old gate-after=gpu002\n"
    )


def test_a_node_that_is_slow_only_once_is_not_reported(slurm: Path, reports: Path) -> None:
    well = dict.fromkeys(PAIRS, 10.0)
    first = measured(PAIRS).replace("gate()", "first()")
    second = measured(well).replace("gate()", "second()")
    gate = (
        f"{first}\n{second}\n"
        "gate() { if [ -e looked ]; then second; else touch looked; first; fi; }"
    )
    code, log, _ = run(slurm, "echo trained", *AFTER, gate=gate, GCLUSTER_SLOW_NODES=str(reports))

    assert code == 0
    assert (slurm / "looked").exists()
    assert "is slow" not in log
    assert "gate-after=ok" in (slurm / "requeued").read_text()
    assert list(reports.iterdir()) == []


def test_a_program_that_fails_is_measured_after_and_its_exit_code_is_kept(slurm: Path) -> None:
    code, log, _ = run(slurm, "exit 3", *AFTER, gate="gate() { exit 4; }")

    assert code == 3
    assert log.splitlines()[-1] == "gcluster: gate: no result after 0 s (exit code 4)"
    assert "gate-after=none" in (slurm / "requeued").read_text()


def test_with_two_nodes_left_none_is_called_slow(slurm: Path) -> None:
    loses = "echo gpu001,gpu003 >nodes\necho trained"
    code, log, _ = run(
        slurm, loses, "--nodes=2", "--spares=1", "--gate-after=60", gate=measured(PAIRS)
    )

    assert code == 0
    assert "gate: 2 nodes are left: none can be called the slow one" in log


def test_where_no_health_check_reads_it_the_log_has_that(slurm: Path) -> None:
    missing = slurm / "is-not-there"
    _, log, _ = run(slurm, "true", *AFTER, gate=measured(PAIRS), GCLUSTER_SLOW_NODES=str(missing))

    assert "is not reported to its health check: [Errno 2] No such file or directory" in log


SAVES = f"""\
mkdir -p saved/step-1
head -c 3000000 /dev/zero >saved/step-1/weights
{sys.executable} libexec/job-checkpoint.py commit saved/step-1
echo trained
"""


@pytest.fixture
def installed(slurm: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the doubles' folder, with the programs laid out as on a node."""
    shutil.copytree(FOLDER, slurm / "libexec/job_launch")
    shutil.copy(FOLDER.parent / "libexec/job-checkpoint.py", slurm / "libexec")
    monkeypatch.setattr(test_job_launch, "FOLDER", slurm / "libexec/job_launch")
    return slurm


def test_only_one_node_waits_for_the_last_copy_and_the_others_stop_being_paid(
    installed: Path,
) -> None:
    slurm = installed
    code, log, _ = run(
        slurm,
        SAVES,
        "--nodes=3",
        f"--copy={slurm}/copies",
        GCLUSTER_CHECKPOINTS=str(slurm / "saved"),
    )

    assert code == 0, log
    assert "until the last checkpoint is copied the job keeps gpu001" in log
    assert (slurm / "copies/step-1/MANIFEST.json").exists()
    assert (slurm / "requeued").read_text() == "update JobId=7 NodeList=gpu001\n"
    journal = [json.loads(line) for line in (slurm / "saved/.journal-7").open()]
    kinds = [event["event"] for event in journal]
    assert kinds[-3:] == ["shrink", "copy", "leave"]
    assert journal[-3]["nodes"] == 1


def test_a_job_that_has_nothing_to_copy_keeps_its_nodes_to_its_end(installed: Path) -> None:
    slurm = installed
    (slurm / "saved").mkdir()
    code, log, _ = run(
        slurm,
        "echo trained",
        "--nodes=3",
        f"--copy={slurm}/copies",
        GCLUSTER_CHECKPOINTS=str(slurm / "saved"),
    )

    assert code == 0, log
    assert not (slurm / "requeued").exists()
