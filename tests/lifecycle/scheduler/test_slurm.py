"""What sinfo and squeue print is understood, and scontrol gets the words that it takes."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.lifecycle.controller import HEAD, DownShell, LocalShell

from gcluster.lifecycle.scheduler.base import NodeUse, SchedulerSilent
from gcluster.lifecycle.scheduler.slurm import Slurm

SINFO = """\
cat <<'END'
gpu001|idle|none
gpu002|mixed|none
gpu003|draining|gcluster up: run 1
gpu004|drained|RMA 4711
gpu005|down*|Not responding
gpu006|drained*|gcluster up: run 1
gpu007|unknown|none
END"""
SQUEUE = """\
cat <<'END'
12|gpu[002-003]
14|gpu002
15|
END"""


@pytest.fixture
def shell(tmp_path: Path) -> LocalShell:
    """Give a controller with a sinfo and a squeue that answer."""
    shell = LocalShell(tmp_path / "bin")
    shell.has("sinfo", SINFO)
    shell.has("squeue", SQUEUE)
    return shell


def test_each_node_is_seen_with_its_jobs_and_the_reason_it_is_out(shell: LocalShell) -> None:
    names = [f"gpu00{number}" for number in range(1, 8)]
    assert Slurm(shell, HEAD).nodes([*names, "gpu099"]) == {
        "gpu001": NodeUse(out=False),
        "gpu002": NodeUse(out=False, jobs=("12", "14")),
        "gpu003": NodeUse(out=True, jobs=("12",), reason="gcluster up: run 1"),
        "gpu004": NodeUse(out=True, reason="RMA 4711"),
        "gpu005": NodeUse(out=True, reason="Not responding", silent=True),
        "gpu006": NodeUse(out=True, reason="gcluster up: run 1", silent=True),
        "gpu007": NodeUse(out=True, unheard=True),
    }


def test_scontrol_is_run_as_root_with_the_nodes_folded(shell: LocalShell, tmp_path: Path) -> None:
    log = tmp_path / "log"
    shell.has("sudo", f'printf "%s|" "$@" >> {log}; echo >> {log}')
    service = Slurm(shell, HEAD)
    service.drain(["gpu001", "gpu002"], "gcluster up: run 1")
    service.resume(["gpu001"])
    service.resume([])
    service.requeue(["12", "14"])
    assert log.read_text().splitlines() == [
        "-n|scontrol|update|NodeName=gpu[001-002]|State=DRAIN|Reason=gcluster up: run 1|",
        "-n|scontrol|update|NodeName=gpu001|State=RESUME|",
        "-n|scontrol|requeue|12,14|",
    ]


def test_jobs_that_request_nodes_by_name_are_found(shell: LocalShell) -> None:
    answer = "12|RUNNING|gpu003\n13|PENDING|gpu[001-003]\n14|PENDING|\n15|PENDING|gpu001"
    shell.has("squeue", f"cat <<'END'\n{answer}\nEND")
    assert Slurm(shell, HEAD).pinned(["gpu002", "gpu003"]) == {"12": "RUNNING", "13": "PENDING"}


def test_a_slurmctld_that_does_not_answer_is_silence_with_its_last_message(
    shell: LocalShell,
) -> None:
    shell.has("squeue", "echo 'Unable to contact slurm controller' >&2; exit 1")
    with pytest.raises(SchedulerSilent, match="Unable to contact slurm controller"):
        Slurm(shell, HEAD).nodes(["gpu001"])


def test_a_controller_that_is_off_is_silence_with_the_reason(tmp_path: Path) -> None:
    service = Slurm(DownShell(tmp_path), HEAD)
    for call in (lambda: service.nodes(["a"]), lambda: service.requeue(["1"])):
        with pytest.raises(SchedulerSilent, match="no route to host"):
            call()
