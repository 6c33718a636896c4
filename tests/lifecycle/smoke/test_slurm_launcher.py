"""An AllReduce that is interrupted leaves no job, also where its srun had only begun."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from tests.lifecycle.controller import HEAD, LocalShell

from gcluster.lifecycle.nodes.ssh import Answer, SshResult, Unreachable
from gcluster.lifecycle.smoke.launch import Launch
from gcluster.lifecycle.smoke.launching import slurm
from gcluster.lifecycle.smoke.launching.launcher import Ended
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
        assert f"--job-name={LAUNCH.job}" in command
        words = ["sh", "-c", "sleep 60; true", f"--job-name={LAUNCH.job}"]
        self.srun = subprocess.Popen(words)
        raise KeyboardInterrupt


def test_an_srun_that_was_starting_is_ended_before_the_job_is_cancelled(tmp_path: Path) -> None:
    shell = Interrupted(tmp_path / "bin")
    shell.has("squeue", "true")
    shell.has("scancel", f'echo "$@" > {tmp_path}/cancelled')
    with pytest.raises(KeyboardInterrupt):
        SlurmLauncher(shell, HEAD).run(LAUNCH, lambda _: None, 60)
    assert shell.srun.wait(timeout=10) == -signal.SIGTERM
    assert (tmp_path / "cancelled").read_text() == f"--name={LAUNCH.job}\n"


def test_an_allreduce_of_an_earlier_run_is_ended_and_no_other_job(tmp_path: Path) -> None:
    """A controller that was killed may go on with a job that has ended: it would hold the nodes."""
    shell = LocalShell(tmp_path / "bin")
    jobs = "   7 gcluster-smoke-a1b2c3-main-1\\n   8 training\\n  12 gcluster-smoke-0-main-1\\n"
    shell.has("squeue", f"printf '{jobs}'")
    shell.has("scancel", f'echo "$@" > {tmp_path}/cancelled')
    shell.has("sleep", "true")
    SlurmLauncher(shell, HEAD).idle(())
    assert (tmp_path / "cancelled").read_text() == "7 12\n"


class Breaking(LocalShell):
    """A controller that is lost so often in a line of a log, and once more after its end."""

    def __init__(self, programs: Path, breaks: int) -> None:
        super().__init__(programs)
        self.breaks = breaks
        self.ends = 0

    def stream(
        self, host: object, command: str, take: Callable[[str], None], *, timeout_s: float
    ) -> Answer:
        """Run it here; a connection that breaks leaves what it started alone."""
        del host
        with subprocess.Popen(
            ["sh", "-c", command], env={"PATH": f"{self._programs}:{os.environ['PATH']}"},
            stdout=subprocess.PIPE, text=True, start_new_session=True,
        ) as process:  # fmt: skip
            assert process.stdout is not None
            for line in process.stdout:
                take(line if not self.breaks else line[:-1])
                if self.breaks:
                    self.breaks -= 1
                    os.killpg(process.pid, signal.SIGKILL)
                    return Unreachable(reason="lost")
        self.ends += 1
        if self.ends == 1:
            return Unreachable(reason="lost")
        return SshResult(returncode=process.wait(timeout=timeout_s), stdout="", stderr="")


def launched(folder: Path, breaks: int) -> tuple[Ended, list[str], str]:
    """Run an AllReduce whose srun prints three lines; return its end, the log, and its starts."""
    shell = Breaking(folder / "bin", breaks)
    shell.has("squeue", "echo RUNNING None")
    shell.has("scancel", "true")
    shell.has("setpriv", 'while [ "$1" != env ]; do shift; done; exec "$@"')
    shell.has(
        "srun", f"echo x >>{folder}/starts; for n in 1 2 3; do echo $n; sleep 0.3; done; exit 7"
    )
    taken: list[str] = []
    launch = msgspec.structs.replace(LAUNCH, job=f"gcluster-test-{os.getpid()}-{breaks}")
    ended = SlurmLauncher(shell, HEAD).run(launch, taken.append, 60)
    assert not Path("/tmp", launch.job).exists()  # noqa: S108  # it may not stay there
    return ended, taken, (folder / "starts").read_text()


def test_a_connection_that_breaks_neither_ends_the_allreduce_nor_starts_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slurm, "RETRY_S", 0)
    ended, log, starts = launched(tmp_path, breaks=3)
    assert ended == Ended(status=7)
    assert "".join(log) == "1\n2\n3\n"
    assert starts == "x\n"


def test_one_that_never_comes_back_is_given_up_with_what_slurm_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slurm, "RETRY_S", 0)
    ended, _, _ = launched(tmp_path, breaks=99)
    assert ended.problem.startswith("lost; job gcluster-test-")
    assert ended.problem.endswith("was RUNNING in Slurm")
