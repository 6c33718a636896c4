"""Slurm's daemons are started anew when their program was replaced under them, and only then."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "roles/slurm/files/libexec/slurm-version"
Ask = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that runs a program which can be replaced."""
    program = tmp_path / "daemon"
    shutil.copy(shutil.which("sleep") or "/bin/sleep", program)
    running = subprocess.Popen([program, "60"])
    yield running
    running.kill()
    running.wait()


@pytest.fixture
def ask(tmp_path: Path, daemon: subprocess.Popen[bytes]) -> Ask:
    """Give what runs the program, with doubles of systemd, dpkg and slurmctld."""

    def run(version: str, *units: str, up: bool = True) -> subprocess.CompletedProcess[str]:
        doubles = {
            "dpkg-query": "echo 24.11.5-4",
            "scontrol": f"echo 'Slurmctld(primary) at head is {'UP' if up else 'DOWN'}'",
            "sleep": "exit 0",
            "systemctl": f'[ "$1" = show ] && echo {daemon.pid} || echo "$@" >> {tmp_path}/did',
        }
        for name, does in doubles.items():
            (tmp_path / name).write_text(f"#!/bin/sh\n{does}\n")
            (tmp_path / name).chmod(0o755)
        path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
        return subprocess.run(
            [PROGRAM, version, *units],
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def test_a_daemon_of_a_replaced_program_is_started_anew(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "daemon").unlink()
    assert ask("24.11.5", "slurmd").stdout == "slurmd\n"
    assert (tmp_path / "did").read_text() == "restart slurmd\n"


def test_a_daemon_that_runs_what_is_installed_is_left_alone(ask: Ask, tmp_path: Path) -> None:
    done = ask("24.11.5-4", "slurmd")
    assert (done.returncode, done.stdout) == (0, "")
    assert not (tmp_path / "did").exists()


@pytest.mark.parametrize("version", ["24.11.6", "24.1", "25.05"])
def test_another_version_than_the_one_asked_for_is_an_error(ask: Ask, version: str) -> None:
    done = ask(version, "slurmd")
    assert (done.returncode, done.stdout) == (1, "")
    assert f"24.11.5-4 is installed here, not {version}" in done.stderr


def test_a_controller_that_does_not_answer_afterwards_is_an_error(ask: Ask) -> None:
    assert "doesn't answer" in ask("24.11.5", "slurmctld", up=False).stderr
    assert ask("24.11.5", "slurmctld").returncode == 0
