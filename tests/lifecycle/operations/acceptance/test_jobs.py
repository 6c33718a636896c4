"""A job outlives who started it, is never started twice, and is ended when its reader gives up.

systemd and Slurm are doubles: shell scripts that do here what the controller would.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from tests.lifecycle.controller import HEAD, LocalShell

from gcluster.lifecycle.operations.acceptance import execute, jobs
from gcluster.lifecycle.operations.acceptance.execute import Left, repeat_until_done
from gcluster.lifecycle.operations.acceptance.jobs import (
    PROGRAMS,
    Job,
    by_node,
    is_there,
    job_name,
    run_job,
)
from gcluster.lifecycle.smoke.launch import Launch

LAUNCH = Launch(
    job="acceptance-main-1", label="main-1", partition="main", nodes=("gpu001", "gpu002"),
    min_bytes=8, max_bytes=64, iterations=1, qos="gcluster-smoke",
)  # fmt: skip
JOB = Job(name="gcluster-acceptance-000001-0a", launch=LAUNCH, command="echo hello", limit_s=60)


class Controller(LocalShell):
    """A controller whose unit runs at once, to its end."""

    def __init__(self, folder: Path, *, unit: str = 'sh "$script" >> "$out" 2>&1') -> None:
        """Install the doubles; `unit` is what systemd-run does with the script."""
        super().__init__(folder / "bin")
        self.folder = folder
        self.has("sudo", 'shift; exec "$@"')
        self.has(
            "systemctl", f'[ "$1" = stop ] && echo $2 >> {folder}/stopped; echo inactive; exit 3'
        )
        self.has("squeue", "true")
        self.has("scancel", f"echo $1 >> {folder}/cancelled")
        self.has("srun", f'echo "$@" >> {folder}/sruns; echo hello from srun')
        self.has(
            "systemd-run",
            'for w in "$@"; do case $w in --property=StandardOutput=append:*) out=${w#*append:};;'
            ' esac; script=$w; done; echo "$@" >> '
            f"{folder}/units; {unit}",
        )

    def lines_of(self, name: str) -> list[str]:
        """Return what a double wrote down."""
        path = self.folder / name
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "FOLDER", str(tmp_path / "outputs"))
    monkeypatch.setattr(jobs, "POLL_S", 0.01)


def test_a_job_that_has_ended_is_read_again_and_not_started_again(tmp_path: Path) -> None:
    controller = Controller(tmp_path)
    assert not is_there(controller, HEAD, JOB.name)
    outputs = [run_job(controller, HEAD, JOB, lambda: None) for _ in range(2)]
    assert is_there(controller, HEAD, JOB.name)
    assert [(one.text, one.status, one.problem) for one in outputs] == [
        ("hello from srun\n", 0, "")
    ] * 2
    assert len(controller.lines_of("sruns")) == 1


def test_a_job_whose_controller_was_restarted_is_started_again(tmp_path: Path) -> None:
    dying = Controller(tmp_path, unit='echo half a line >> "$out"')
    lost = run_job(dying, HEAD, JOB, lambda: None)
    assert lost.problem == "its unit on the controller ended without a word"
    output = run_job(Controller(tmp_path), HEAD, JOB, lambda: None)
    assert (output.text, output.problem) == ("hello from srun\n", "")


def test_a_job_is_ended_with_its_unit_when_its_reader_is_interrupted(tmp_path: Path) -> None:
    controller = Controller(tmp_path)

    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_job(controller, HEAD, JOB, interrupt)
    assert controller.lines_of("stopped") == [JOB.name]
    assert controller.lines_of("cancelled")[-1] == f"--name={JOB.name}"
    assert list((tmp_path / "outputs").iterdir()) == []


def test_a_status_that_is_not_0_is_reported(tmp_path: Path) -> None:
    controller = Controller(tmp_path)
    controller.has("srun", "echo wrong; exit 7")
    output = run_job(controller, HEAD, JOB, lambda: None)
    assert (output.text, output.status) == ("wrong\n", 7)


def test_a_job_runs_as_the_account_and_takes_the_nodes_for_itself(tmp_path: Path) -> None:
    controller = Controller(tmp_path)
    ada = Job(
        name=JOB.name, launch=LAUNCH, command="measure node", limit_s=60, user="ada", by_node=True
    )
    run_job(controller, HEAD, ada, lambda: None)
    (unit,), (srun,) = controller.lines_of("units"), controller.lines_of("sruns")
    assert "--uid=ada" in unit
    assert "--nodelist=gpu[001-002] --nodes=2 --ntasks-per-node=1 --exclusive" in srun
    assert "--kill-on-bad-exit=0" in srun
    assert "--qos" not in srun, "the QOS of the gate is not for people"


def test_a_step_of_training_runs_in_its_image_with_our_programs_and_nothing_else_of_the_node(
    tmp_path: Path,
) -> None:
    controller = Controller(tmp_path)
    job = msgspec.structs.replace(JOB, container="nvcr.io#nvidia/pytorch:25.10-py3", user="ada")
    run_job(controller, HEAD, job, lambda: None)
    (srun,) = controller.lines_of("sruns")
    assert "--mpi=none --container-image=nvcr.io#nvidia/pytorch:25.10-py3" in srun
    mounted = f"--container-mounts={PROGRAMS}:{PROGRAMS}:ro --no-container-mount-home"
    assert mounted in srun


def test_a_drill_runs_on_the_controller_as_root_and_is_no_job_of_its_own(tmp_path: Path) -> None:
    controller = Controller(tmp_path)
    lines = 'set -- service gpu001 main\necho "$1 of $2"; exit 3'
    job = msgspec.structs.replace(JOB, command=lines, on_controller=True)
    output = run_job(controller, HEAD, job, lambda: None)
    assert (output.text, output.status) == ("service of gpu001\n", 3)
    assert controller.lines_of("sruns") == []
    assert "--uid" not in controller.lines_of("units")[0]


def test_the_lines_of_many_nodes_are_separated_and_a_node_without_an_end_is_found() -> None:
    text = (
        "@gpu001 @measure {}\nsrun: noise\n@gpu002 half\n@gpu001 # gcluster node ended 0\n"
        "@gpu003 bad\n@gpu003 # gcluster node ended 7\n"
    )
    assert by_node(text, ["gpu001", "gpu002", "gpu003"]) == {
        "gpu001": ("@measure {}", 0),
        "gpu002": ("half", None),
        "gpu003": ("bad", 7),
    }


def test_the_same_test_has_the_same_name_and_another_one_another() -> None:
    assert job_name("000001", "node", "gpu001", 1) == job_name("000001", "node", "gpu001", 1)
    assert job_name("000001", "node", "gpu001", 1) != job_name("000001", "node", "gpu001", 2)


def test_what_is_missing_is_run_again_until_its_nodes_are_idle_or_the_time_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(execute, "AGAIN_S", 0)
    busy: Left = {("node", "gpu002", 1): "gpu002 is not idle"}
    answers = [busy, busy, {}]
    assert repeat_until_done(lambda: answers.pop(0), wait_s=60) == {}
    assert answers == []
    assert repeat_until_done(lambda: busy, wait_s=0) == busy
