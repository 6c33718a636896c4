"""A controller without a machine: the shell of this one, with sinfo and squeue that are files."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

from tests.shell_double import write_double

from gcluster.inventory.hosts import Host, SshTarget
from gcluster.lifecycle.nodes.ssh import Answer, SshResult, SshSession, Unreachable

HEAD = Host(
    name="head",
    site="lab",
    pool="head",
    role="controller",
    machine=None,
    address="192.0.2.1",
    ssh=SshTarget(user="ops"),
)


class LocalShell(SshSession):
    """The double of an SSH session: a command runs here, and finds the programs of one folder."""

    def __init__(self, programs: Path) -> None:
        """Put programs of this folder before those of the machine."""
        programs.mkdir(exist_ok=True)
        super().__init__(programs)
        self._programs = programs
        self.has("systemctl", "exit 0")  # slurmctld runs

    def has(self, name: str, script: str) -> None:
        """Install a program: the lines of a shell script."""
        path = self._programs / name
        write_double(path, script)

    def run_many(
        self, hosts: Iterable[Host], command: str, *, timeout_s: float = 60
    ) -> dict[str, Answer]:
        """Run the command here, once for each host."""
        return {host.name: self._here(command, timeout_s) for host in hosts}

    def run(
        self, host: Host, command: str, *, stdin: str | None = None, timeout_s: float = 60
    ) -> Answer:
        """Run the command here."""
        del host
        return self._here(command, timeout_s, stdin or "")

    def _here(self, command: str, timeout_s: float, stdin: str = "") -> Answer:
        done = subprocess.run(
            ["sh", "-c", command],
            input=stdin,
            env={"PATH": f"{self._programs}{os.pathsep}{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        return SshResult(returncode=done.returncode, stdout=done.stdout, stderr=done.stderr)


class DownShell(SshSession):
    """The double of an SSH session to a machine that is off."""

    def run_many(
        self, hosts: Iterable[Host], command: str, *, timeout_s: float = 60
    ) -> dict[str, Answer]:
        """Say of each host that it is off."""
        del command, timeout_s
        return {host.name: Unreachable(reason="no route to host") for host in hosts}
