"""How long a job is held back for nodes that come (PrologSlurmctld); Slurm is played by doubles."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
from tests.shell_double import write_double

PROGRAM = Path(__file__).parents[2] / "roles/slurm/files/libexec/slurm-await-nodes.py"
COME = "7                   CONFIGURING         gcluster burst: its nodes have come"
COMING = "7                   CONFIGURING         gcluster burst: spills to spill"
OTHER = "8                   RUNNING             "


class Controller:
    """Answers of squeue and sinfo, one after the other; the last one stays. No time passes."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Have one partition whose nodes come and go."""
        self.folder = folder
        self.partitions = folder / "elastic-partitions"
        self.partitions.write_text("# Written by gcluster.\nspill\n")
        self.calls = folder / "asked"
        self.calls.touch()
        self._monkeypatch = monkeypatch

    def set_answers(self, program: str, *answers: str) -> None:
        """Have a program answer with these, one at each call; ";" begins another line of it."""
        (self.folder / f"{program}.txt").write_text("".join(f"{line}\n" for line in answers))
        file = self.folder / f"{program}.txt"
        self._program(
            program,
            f'echo "{program} $*" >> {self.calls}; head -n 1 {file} | tr ";" "\\n"\n'
            f'[ "$(wc -l < {file})" -le 1 ] || sed -i 1d {file}',
        )

    def _program(self, name: str, script: str) -> None:
        path = self.folder / name
        write_double(path, script)

    def run(self, partition: str = "spill") -> int:
        """Run the program for a job, here; return the seconds that it would have slept."""
        environment = {
            "PATH": f"{self.folder}:/usr/bin:/bin",
            "GCLUSTER_ELASTIC_PARTITIONS": str(self.partitions),
            "SLURM_JOB_ID": "7",
            "SLURM_JOB_NODELIST": "spill[001-002]",
            "SLURM_JOB_PARTITION": partition,
        }
        slept: list[float] = []
        with self._monkeypatch.context() as patch:
            for name, value in environment.items():
                patch.setenv(name, value)
            patch.setattr("time.sleep", slept.append)
            runpy.run_path(str(PROGRAM), run_name="__main__")
        return int(sum(slept))


@pytest.fixture
def controller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Controller:
    """A controller without any job."""
    return Controller(tmp_path, monkeypatch)


def test_a_job_in_a_partition_of_fixed_nodes_needs_no_requests(
    controller: Controller,
) -> None:
    controller.set_answers("squeue", COMING)
    assert controller.run("train") == 0
    assert controller.calls.read_text() == ""


def test_a_job_begins_as_soon_as_its_nodes_are_there_and_the_agent_has_reported_it(
    controller: Controller,
) -> None:
    controller.set_answers("squeue", COMING, COMING, COMING, COME)
    controller.set_answers("sinfo", "allocated#", "allocated#", "allocated")
    assert controller.run() == 3
    assert "--jobs=7" in controller.calls.read_text()
    assert "--nodes=spill[001-002]" in controller.calls.read_text()


@pytest.mark.parametrize("flag", ["*", "~", "#", "!", "%"])
def test_a_node_that_is_not_there_holds_the_job_back(controller: Controller, flag: str) -> None:
    controller.set_answers("squeue", *[COME] * 9, "7 PENDING")
    controller.set_answers("sinfo", f"mixed{flag}")
    assert controller.run() == 9


def test_nodes_without_an_agent_s_mark_count_as_ready_after_some_seconds(
    controller: Controller,
) -> None:
    controller.set_answers("squeue", COMING)
    controller.set_answers("sinfo", "allocated#", "allocated")
    assert controller.run() == 5


def test_an_array_s_last_task_waits_for_its_own_nodes_and_not_for_another_task_s(
    controller: Controller,
) -> None:
    controller.set_answers("squeue", *[f"{OTHER};{COMING}"] * 3, f"{OTHER};{COME}")
    controller.set_answers("sinfo", *["allocated#"] * 3, "allocated")
    assert controller.run() == 3


@pytest.mark.parametrize("state", ["7 PENDING", "7 CANCELLED", "7 COMPLETING", OTHER, ""])
def test_a_job_that_no_longer_waits_is_let_go(controller: Controller, state: str) -> None:
    controller.set_answers("squeue", COMING, state)
    controller.set_answers("sinfo", "allocated#")
    assert controller.run() == 1
