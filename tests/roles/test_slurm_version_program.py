"""Daemons that run an older program are restarted, and no others."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "roles/slurm/files/libexec/slurm-version"


class Host:
    """A host with slurmdbd; systemd, dpkg and Slurm are lines of shell."""

    def __init__(self, folder: Path) -> None:
        """Install 24.11.5."""
        self.folder = folder
        self.has("dpkg-query", 'case "$*" in *smd*) exit 1 ;; esac; printf "installed 24.11.5-1"')
        self.has("scontrol", "echo Slurmctld is UP")
        self.has("sleep", "true")
        self.daemon = self.has("slurmdbd", "")

    def has(self, name: str, script: str) -> Path:
        """Install a program."""
        path = self.folder / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path

    def runs_since(self, started: int) -> None:
        """Have slurmdbd run since a time, and no other unit."""
        self.has(
            "systemctl",
            f"""case "$*" in
              *ExecMainStartTimestamp*) echo @{started} ;;
              *ExecStart*) echo '{{ path={self.daemon} ; argv[]={self.daemon} -D -s ; }}' ;;
              is-active*slurmdbd | is-active*slurmctld) ;;
              restart*) echo "$*" >> {self.folder}/log ;;
              *) exit 3 ;;
            esac""",
        )

    def run(self, version: str, *units: str) -> subprocess.CompletedProcess[str]:
        """Ask for a version."""
        path = f"{self.folder}/bin:{os.environ['PATH']}"
        return subprocess.run(
            [PROGRAM, version, *(units or ("slurmdbd", "slurmd"))],
            env={"PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )

    def restarted(self) -> str:
        """Return what systemctl was asked to start again."""
        log = self.folder / "log"
        return log.read_text() if log.exists() else ""


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """Return a host."""
    return Host(tmp_path)


def test_a_daemon_whose_program_was_replaced_under_it_is_started_again(host: Host) -> None:
    host.runs_since(int(time.time()) - 60)
    done = host.run("24.11.5")
    assert (done.returncode, done.stdout, done.stderr) == (0, "slurmdbd\n", "")
    assert host.restarted() == "restart slurmdbd\n"


def test_a_daemon_that_runs_what_is_installed_is_left_alone(host: Host) -> None:
    host.runs_since(int(time.time()) + 60)
    done = host.run("24.11")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert host.restarted() == ""


@pytest.mark.parametrize("version", ["24.11.6", "24.1", "25.05"])
def test_another_version_than_the_one_asked_for_is_refused(host: Host, version: str) -> None:
    host.runs_since(0)
    done = host.run(version)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"Slurm 24.11.5-1 is installed here, not {version}" in done.stderr
    assert host.restarted() == ""


def test_a_controller_that_does_not_answer_afterwards_is_an_error(host: Host) -> None:
    host.runs_since(int(time.time()) + 60)
    assert host.run("24.11.5", "slurmctld").returncode == 0
    host.has("scontrol", "echo Slurmctld is DOWN")
    done = host.run("24.11.5", "slurmctld")
    assert done.returncode == 1
    assert "doesn't answer" in done.stderr


def test_a_daemon_that_packages_of_another_name_have_ended_is_started_again(host: Host) -> None:
    host.has("dpkg-query", 'case "$*" in *smd*) printf "installed 25.11.8-1" ;; *) exit 1 ;; esac')
    runs = host.folder / "runs"
    host.has(
        "systemctl",
        f"""case "$*" in
          is-active*slurmdbd) test -e {runs} ;;
          is-enabled*slurmdbd) ;;
          start*slurmdbd) touch {runs} ;;
          *) exit 3 ;;
        esac""",
    )
    done = host.run("25.11.8")
    assert (done.returncode, done.stdout, done.stderr) == (0, "slurmdbd\n", "")
