"""Jobs that a node's restart ended are reported to slurmctld; Slurm is played by doubles."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest
from tests.shell_double import write_double

PROGRAM = Path(__file__).parents[2] / "roles/slurm/files/libexec/slurm-report-reboot.py"
NODE = platform.node().partition(".")[0]
BOOTED = 1_790_000_000
UP_S = 40
"""From the kernel's boot to the first process: what counts for a container is the latter."""
STARTED = BOOTED + UP_S
SLURMD = 612
"""Its process."""
AHEAD_S = 3600
"""slurmctld's clock is ahead of the node's."""


class Controller:
    """What slurmctld prints of the node and its jobs, and the calls to it."""

    def __init__(self, folder: Path) -> None:
        """The node is idle, slurmd began 20 s after the machine, and no job runs."""
        self.folder = folder
        (folder / "stat").write_text(f"cpu 1 2\nbtime {BOOTED}\n")
        self.process(1, UP_S)
        self.told = folder / "told"
        self.told.touch()
        self.node(STARTED + 20)
        self.jobs()

    def process(self, number: int, up_s: int) -> None:
        """Have a process that began so many seconds after the kernel."""
        ticks = up_s * os.sysconf("SC_CLK_TCK")
        (self.folder / str(number)).mkdir(exist_ok=True)
        line = f"{number} (init (8)) S {'0 ' * 18}{ticks} 0\n"
        (self.folder / f"{number}/stat").write_text(line)

    def node(
        self,
        slurmd_started: int,
        state: str = "MIXED",
        reason: str = "",
        *,
        boot_time: int = 0,
        loads_s: int = 0,
    ) -> None:
        """Have slurmctld know a start of slurmd's process.

        `boot_time` is by slurmctld's clock, 0: to the second. slurmd sets its own start `loads_s`
        later.
        """
        boot_time = boot_time or slurmd_started + AHEAD_S
        self.process(SLURMD, slurmd_started - BOOTED)
        told = f"Reason={reason} [root@1790000900]" if reason else ""
        line = (
            f"NodeName={NODE} State={state} BootTime={boot_time} "
            f"SlurmdStartTime={slurmd_started + loads_s} {told}"
        )
        (self.folder / "node").write_text(f"{line}\n")
        self.program(
            "scontrol",
            f'[ "$1" = update ] || {{ [ "$SLURM_TIME_FORMAT" = %s ] && cat {self.folder}/node; '
            f'exit; }}\necho "$*" >> {self.told}',
        )

        self.program("systemctl", f"echo {SLURMD}")

    def jobs(self, *rows: str) -> None:
        """Have jobs on the node: number, state, and start in seconds after the machine's."""
        lines = []
        for row in rows:
            number, state, after = row.split()
            lines.append(f"{state} {STARTED + AHEAD_S + int(after)} {number}\n")
        (self.folder / "jobs").write_text("".join(lines))
        self.program("squeue", f"cat {self.folder}/jobs")

    def program(self, name: str, script: str) -> None:
        """Put a double on the search path."""
        path = self.folder / name
        write_double(path, script)

    def run(self) -> tuple[int, str, list[str]]:
        """Run the program without its pauses; return its exit status, its output, and its calls."""
        unpaused = "import runpy, time; time.sleep = lambda _: None"
        run = f"runpy.run_path({str(PROGRAM)!r}, run_name='__main__')"
        done = subprocess.run(
            [sys.executable, "-c", f"{unpaused}; {run}"],
            env={"PATH": f"{self.folder}:/usr/bin:/bin", "GCLUSTER_PROC": str(self.folder)},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr, self.told.read_text().splitlines()


@pytest.fixture
def controller(tmp_path: Path) -> Controller:
    """A controller of one node."""
    return Controller(tmp_path)


def test_jobs_from_before_the_restart_have_the_node_count_as_down_for_a_moment(
    controller: Controller,
) -> None:
    controller.jobs("7 RUNNING -1", "8 SUSPENDED -900", "9 RUNNING 3")
    code, output, calls = controller.run()
    assert (code, output) == (0, f"{NODE} was started again under 7, 8\n")
    assert calls == [
        f"update NodeName={NODE} State=DOWN Reason=Node unexpectedly rebooted",
        f"update NodeName={NODE} State=RESUME",
    ]


@pytest.mark.parametrize(
    "job",
    ["7 RUNNING 3", "7 RUNNING 15", "7 RUNNING 500", "7 CONFIGURING -60", "7 COMPLETING -60"],
)
def test_a_job_that_began_since_or_has_not_begun_is_none_of_its(
    controller: Controller, job: str
) -> None:
    controller.jobs(job)
    assert controller.run() == (0, "", [])


@pytest.mark.parametrize("early_s", [0, 1, 2])
def test_a_job_that_began_just_before_is_reported_however_the_times_are_rounded(
    controller: Controller, early_s: int
) -> None:
    controller.node(STARTED + 20, boot_time=STARTED + 20 + AHEAD_S - early_s)
    controller.jobs("7 RUNNING -1", "8 RUNNING 3")
    assert controller.run()[1] == f"{NODE} was started again under 7\n"


def test_a_slurmd_that_loads_for_long_hides_no_lost_job(controller: Controller) -> None:
    """Seen on busy nodes: its start was 20 and 40 seconds after its process."""
    controller.node(STARTED + 2, loads_s=40)
    controller.jobs("7 RUNNING -3")
    assert controller.run()[1] == f"{NODE} was started again under 7\n"


def test_without_slurmd_it_is_run_again(controller: Controller) -> None:
    controller.program("systemctl", "echo 0")
    controller.jobs("7 RUNNING -60")
    assert controller.run() == (1, "Slurm gave no answer: slurmd does not run\n", [])


def test_a_job_that_began_after_slurmd_runs_on_where_slurmd_began_at_once(
    controller: Controller,
) -> None:
    controller.node(STARTED)
    controller.jobs("7 RUNNING 0")
    assert controller.run() == (0, "", [])


def test_a_restart_of_slurmd_alone_ends_no_job(controller: Controller) -> None:
    """As in the first run of a version that brings this program to nodes at work."""
    controller.node(STARTED + 86_400)
    controller.jobs("7 RUNNING 600")
    assert controller.run() == (0, "", [])


def test_a_node_that_is_drained_keeps_its_reason_and_stays_so(controller: Controller) -> None:
    controller.node(STARTED + 20, "MIXED+DRAIN", "link 3 is off")
    controller.jobs("7 RUNNING -60")
    assert controller.run()[2] == [f"update NodeName={NODE} State=DOWN Reason=link 3 is off"]


def test_a_node_that_comes_and_goes_is_left_alone(controller: Controller) -> None:
    controller.node(STARTED + 20, "ALLOCATED+CLOUD")
    controller.jobs("7 RUNNING -60")
    assert controller.run() == (0, "", [])


def test_before_slurmctld_has_registered_the_start_nothing_is_reported(
    controller: Controller,
) -> None:
    """What it has is of the machine's last life."""
    controller.node(STARTED - 5000)
    controller.process(SLURMD, UP_S + 20)
    controller.jobs("7 RUNNING -60")
    code, output, calls = controller.run()
    assert (code, calls) == (1, [])
    assert "has no record" in output


def test_a_change_that_slurmctld_refuses_is_tried_again_by_the_unit(controller: Controller) -> None:
    controller.jobs("7 RUNNING -60")
    controller.program("scontrol", f'[ "$1" = update ] && exit 1; cat {controller.folder}/node')
    code, output, _ = controller.run()
    assert (code, "not reported" in output) == (1, True)


def test_without_slurm_s_programs_it_ends_with_a_message(controller: Controller) -> None:
    (controller.folder / "scontrol").unlink()
    code, output, _ = controller.run()
    assert code == 1
    assert "Slurm gave no answer" in output
    assert "Traceback" not in output
