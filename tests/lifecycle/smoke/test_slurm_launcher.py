"""An AllReduce that is interrupted leaves no job, also where its srun had only begun."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.lifecycle.controller import HEAD, LocalShell

from gcluster.lifecycle.nodes.ssh import Answer
from gcluster.lifecycle.smoke.launch import Launch
from gcluster.lifecycle.smoke.launching.slurm import SlurmLauncher

LAUNCH = Launch(
    job="gcluster-test-4711-main-1", label="all", partition="main", nodes=("gpu001",), min_bytes=8,
    max_bytes=8, iterations=1,
)  # fmt: skip


class Interrupted(LocalShell):
    """A controller whose srun goes on when the session that began it is interrupted."""

    def stream(  # type: ignore[override]  # it never returns
        self, host: object, command: str, take: Callable[[str], None], *, timeout_s: float
    ) -> Answer:
        """Begin, and be interrupted."""
        del host, take, timeout_s
        words = [word for word in command.split() if word.startswith("--job-name=")]
        self.srun = subprocess.Popen(["sh", "-c", "sleep 60; true", *words])
        raise KeyboardInterrupt


def test_an_srun_that_was_starting_is_ended_before_the_job_is_cancelled(tmp_path: Path) -> None:
    shell = Interrupted(tmp_path / "bin")
    shell.has("squeue", "true")
    shell.has("scancel", f'echo "$@" > {tmp_path}/cancelled')
    with pytest.raises(KeyboardInterrupt):
        SlurmLauncher(shell, HEAD).run(LAUNCH, lambda _: None, 60)
    assert shell.srun.wait(timeout=10) == -signal.SIGTERM
    assert (tmp_path / "cancelled").read_text() == f"--name={LAUNCH.job}\n"


def test_an_allreduce_of_an_earlier_run_is_ended_and_nobody_elses_job(tmp_path: Path) -> None:
    """A controller that was killed may go on with a job that has ended: it would hold the nodes."""
    shell = LocalShell(tmp_path / "bin")
    jobs = "   7 gcluster-smoke-a1b2c3-main-1\\n   8 training\\n  12 gcluster-smoke-0-main-1\\n"
    shell.has("squeue", f"printf '{jobs}'")
    shell.has("scancel", f'echo "$@" > {tmp_path}/cancelled')
    shell.has("sleep", "true")
    SlurmLauncher(shell, HEAD).idle(())
    assert (tmp_path / "cancelled").read_text() == "7 12\n"
