"""The front door on machines that lack things, with doubles for what would change this machine.

apt-get, sudo and id are scripts in a PATH of the test's own (the boundary that can't be crossed in
a test: installing software, being another user); everything else on that PATH is real.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

REAL = (
    *("sh", "awk", "cat", "dirname", "env", "grep", "head", "sed", "sort", "timeout", "tr", "date"),
    "rm",
)


@dataclass(frozen=True)
class Machine:
    """A PATH folder that simulates a machine, and a log of its doubles' calls."""

    bin: Path
    log: Path

    def double(self, name: str, script: str) -> None:
        """Put a shell script on the PATH that logs its call, then does `script`."""
        path = self.bin / name
        path.write_text(f'#!/bin/sh\necho "{name} $*" >>{self.log}\n{script}\n', encoding="utf-8")
        path.chmod(0o755)

    def has(self, *names: str) -> None:
        """Put programs on the PATH that are there and do nothing."""
        for name in names:
            self.double(name, "exit 0")

    def calls(self) -> list[str]:
        """Return the doubles' calls, in order."""
        return self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []

    def run(self, *command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        """Run a script of .ci with this machine's PATH and no terminal."""
        return subprocess.run(
            ["/bin/sh", *command],
            cwd=cwd,
            env={"PATH": str(self.bin)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Return a machine with a shell and Python, whose user is root, and nothing else."""
    made = Machine(bin=tmp_path / "bin", log=tmp_path / "log")
    made.bin.mkdir()
    for name in REAL:
        (made.bin / name).symlink_to(shutil.which(name) or pytest.fail(f"no {name} here"))
    (made.bin / "python3").symlink_to(sys.executable)
    made.double("id", "echo 0")
    return made


def _installs(calls: list[str]) -> list[str]:
    return [call for call in calls if call.startswith(("apt-get", "sudo"))]


def test_a_machine_that_lacks_nothing_is_left_alone(root: Path, machine: Machine) -> None:
    machine.has("make", "node", "npm", "shellcheck", "rclone", "fusermount3", "apt-get")
    done = machine.run(".ci/machine", "tests", cwd=root)
    assert (done.returncode, done.stdout, machine.calls()) == (0, "", [])


def test_what_is_missing_is_named_before_it_is_installed(root: Path, machine: Machine) -> None:
    machine.has("node", "npm", "shellcheck", "rclone", "fusermount3")
    install = f'case "$*" in *install*) /bin/ln -s /bin/true {machine.bin}/make;; esac'
    machine.double("apt-get", install)
    done = machine.run(".ci/machine", "tests", cwd=root)
    assert done.returncode == 0, done.stderr
    assert done.stdout.index("lacks") < done.stdout.index("Installing: apt-get install make")
    update, installed = _installs(machine.calls())
    assert update.startswith("apt-get update")
    assert installed.endswith(" make")


def test_without_root_and_sudo_it_refuses_and_has_the_command(root: Path, machine: Machine) -> None:
    machine.has("apt-get")
    machine.double("id", "echo 1000")
    done = machine.run(".ci/machine", "tests", cwd=root)
    assert done.returncode == 1
    assert _installs(machine.calls()) == []
    assert "apt-get update && apt-get install -y" in done.stderr
    assert done.stderr.rstrip().endswith("fuse3 make nodejs npm rclone shellcheck")


def test_with_sudo_that_queries_nothing_sudo_is_used(root: Path, machine: Machine) -> None:
    machine.has("node", "npm", "shellcheck", "rclone", "fusermount3", "apt-get")
    machine.double("id", "echo 1000")
    machine.double(
        "sudo", f'case "$*" in *install*) /bin/ln -s /bin/true {machine.bin}/make;; esac'
    )
    assert machine.run(".ci/machine", "tests", cwd=root).returncode == 0
    assert any(call.startswith("sudo env") for call in machine.calls())
    assert not any(call.startswith("apt-get") for call in machine.calls())


def test_what_nodes_need_is_checked_by_doctor(root: Path, machine: Machine) -> None:
    machine.has("apt-get")
    machine.double("id", "echo 1000")
    done = machine.run(".ci/machine", "nodes", cwd=root)
    assert done.returncode == 1
    assert "runs the nodes" in done.stdout
    assert {"podman", "mmdebstrap"} <= set(done.stderr.split())


def test_on_another_distribution_it_refuses_and_names_the_packages(
    root: Path, machine: Machine
) -> None:
    done = machine.run(".ci/machine", "tests", cwd=root)
    assert done.returncode == 1
    assert "Debian 12 and 13 and Ubuntu 24.04" in done.stderr
    assert "fuse3 make nodejs npm rclone shellcheck" in done.stderr


def test_when_the_installer_fails_it_reports_what_to_run(root: Path, machine: Machine) -> None:
    machine.double("apt-get", "echo 'E: no such package' >&2; exit 100")
    done = machine.run(".ci/machine", "tests", cwd=root)
    assert done.returncode == 1
    assert "E: no such package" in done.stderr
    assert "apt-get failed" in done.stderr


def test_bootstrap_without_a_verb_prints_its_usage(root: Path, machine: Machine) -> None:
    done = machine.run(".ci/bootstrap", cwd=root)
    assert done.returncode == 64
    assert ".ci/bootstrap demo" in done.stderr


@pytest.fixture
def checkout(root: Path, tmp_path: Path, machine: Machine) -> Path:
    """Return a copy of .ci whose machine and environment are ready."""
    copy = tmp_path / "checkout"
    shutil.copytree(root / ".ci", copy / ".ci")
    for name in ("machine", "environment"):
        (copy / ".ci" / name).write_text("#!/bin/sh\nexit 0\n", encoding="utf-8")
    (copy / ".venv/bin").mkdir(parents=True)
    (copy / ".venv/bin/python").symlink_to(sys.executable)
    (machine.bin / "mkdir").symlink_to(shutil.which("mkdir") or "/bin/mkdir")
    return copy


def _write(*, failed: int) -> str:
    """Return what a stage's make does to leave a report: its last argument says where."""
    report = f'<testsuite tests="3" failures="{failed}" errors="0" skipped="0"/>'
    return f"for word; do :; done; echo '{report}' >${{word#GCLUSTER_REPORT=}}"


def test_the_table_shows_every_stage_and_the_closing_line_counts_the_tests(
    machine: Machine, checkout: Path
) -> None:
    machine.double("make", _write(failed=0))
    done = machine.run(".ci/stages", "unit", "package", cwd=checkout)
    assert done.returncode == 0, done.stderr
    rows = [line.split()[:2] for line in done.stdout.splitlines() if " s" in line]
    assert rows[:4] == [[n, "passed"] for n in ("machine", "environment", "unit", "package")]
    assert done.stdout.splitlines()[-1] == "6 passed, 0 failed"


def test_a_failed_stage_is_named_the_others_continue_and_the_run_fails(
    machine: Machine, checkout: Path
) -> None:
    machine.double("make", f'{_write(failed=1)}; case "$*" in *unit*) exit 2;; esac')
    done = machine.run(".ci/stages", "unit", "package", cwd=checkout)
    assert done.returncode == 1
    rows = {line.split()[0]: line for line in done.stdout.splitlines() if line.endswith(" s")}
    assert "FAILED (exit 2)" in rows["unit"]
    assert "passed" in rows["package"]
    assert done.stdout.splitlines()[-1] == "4 passed, 2 failed"


def test_stages_with_nodes_run_next_to_the_others_and_a_failure_of_either_counts(
    machine: Machine, checkout: Path
) -> None:
    machine.double("make", f'{_write(failed=0)}; case "$*" in *wheel*) exit 2;; esac')
    done = machine.run(".ci/stages", "unit", "local", cwd=checkout)
    rows = {line.split()[0]: line for line in done.stdout.splitlines() if line.endswith(" s")}
    assert "FAILED (exit 2)" in rows["unit"]
    assert "passed" in rows["local"]
    assert "=== unit" in done.stdout
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "6 passed, 0 failed"


def test_a_machine_that_can_not_be_made_ready_stops_the_run_with_the_table(
    machine: Machine, checkout: Path
) -> None:
    (checkout / ".ci/machine").write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    machine.has("make")
    done = machine.run(".ci/stages", cwd=checkout)
    assert done.returncode == 1
    assert "FAILED (exit 1)" in done.stdout
    assert not any(call.startswith("make") for call in machine.calls())


def test_an_unknown_stage_is_refused_with_the_known_ones(machine: Machine, checkout: Path) -> None:
    done = machine.run(".ci/stages", "unti", cwd=checkout)
    assert done.returncode == 64
    assert "lint unit editor package alerts local kubernetes slurm roles" in done.stderr
