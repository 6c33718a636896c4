"""What sinfo and squeue print is understood, and a scheduler that is silent is said to be."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from tests.golden_files import CASES, read_cases, unpack
from tests.lifecycle.controller import HEAD, DownShell, LocalShell

from gcluster.lifecycle.status.slurm import SchedulerView, query_controller

RECORDED = read_cases(CASES / "slurm.yaml")


@pytest.fixture
def shell(tmp_path: Path) -> LocalShell:
    """Give a controller on which no program is installed."""
    return LocalShell(tmp_path / "bin")


@pytest.mark.parametrize("case", RECORDED)
def test_the_answer_is_read_as_the_case_has(shell: LocalShell, case: str, tmp_path: Path) -> None:
    for program in ("sinfo", "squeue"):
        unpack({f"{program}.txt": RECORDED[case][program]}, tmp_path)
        shell.has(program, f"cat '{tmp_path}/{program}.txt'")
    expected = msgspec.convert(RECORDED[case]["view"], SchedulerView)
    assert query_controller(shell, HEAD) == expected


def test_the_nodes_are_requested_with_their_extended_state_and_reason(shell: LocalShell) -> None:
    shell.has("sinfo", 'printf "%s\\n" "$*" | grep -q "%N|%T|%E" && echo "gpu001|idle|none"')
    shell.has("squeue", ":")
    assert query_controller(shell, HEAD).states == {"gpu001": "idle"}


def test_a_slurmctld_that_is_down_is_named_with_its_last_message(shell: LocalShell) -> None:
    words = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"
    for program in ("sinfo", "squeue"):
        shell.has(program, f"echo '{words}' >&2; exit 1")
    view = query_controller(shell, HEAD)
    assert view.problem == f"slurmctld on head does not answer: {words}"
    assert view.queue is None


def test_where_every_slurmctld_is_stopped_its_clients_do_not_wait_for_one(
    shell: LocalShell, tmp_path: Path
) -> None:
    """They retry for MessageTimeout, as long as a whole look at a node may take."""
    shell.has("systemctl", "exit 3")
    shell.has("scontrol", "echo 'Slurmctld(primary) at head is DOWN'; exit 1")
    for program in ("sinfo", "squeue"):
        shell.has(program, f"touch {tmp_path}/called")
    view = query_controller(shell, HEAD)
    assert view.problem == (
        "slurmctld on head does not answer: Unable to contact slurm controller (connect failure)"
    )
    assert not (tmp_path / "called").exists()


def test_a_backup_controller_that_is_up_is_queried(shell: LocalShell) -> None:
    shell.has("systemctl", "exit 3")
    shell.has(
        "scontrol", "printf 'Slurmctld(primary) at a is DOWN\nSlurmctld(backup) at b is UP\n'"
    )
    shell.has("sinfo", 'echo "gpu001|idle|none"')
    shell.has("squeue", ":")
    assert query_controller(shell, HEAD).states == {"gpu001": "idle"}


def test_a_scheduler_that_fails_without_output_is_named_with_its_exit_status(
    shell: LocalShell,
) -> None:
    shell.has("sinfo", ":")
    shell.has("squeue", "exit 3")
    assert query_controller(shell, HEAD).problem == "slurmctld on head does not answer: exit 3"


def test_a_controller_that_is_off_is_named_with_the_reason(tmp_path: Path) -> None:
    view = query_controller(DownShell(tmp_path), HEAD)
    assert view.problem == "controller head: no route to host"


@pytest.mark.parametrize(
    "state", ["idle", "mixed", "allocated", "completing", "idle~", "idle#", "reserved", "planned"]
)
def test_jobs_can_start_on_a_node_that_is_free_busy_or_can_be_woken(state: str) -> None:
    assert SchedulerView(states={"gpu001": state}).is_fit("gpu001")


@pytest.mark.parametrize(
    "state",
    [
        "down",
        "down*",
        "idle*",
        "drained",
        "draining",
        "fail",
        "failing",
        "inval",
        "maint",
        "powering_down",
        "reboot",
        "unknown",
    ],
)
def test_no_job_starts_on_a_node_that_is_away_or_taken_out(state: str) -> None:
    assert not SchedulerView(states={"gpu001": state}).is_fit("gpu001")


def test_a_node_that_the_scheduler_does_not_have_is_not_fit() -> None:
    assert not SchedulerView(states={}).is_fit("gpu001")
