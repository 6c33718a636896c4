"""Machines are waited for before any role runs: a shell runs the probe, with doubles there."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import msgspec
import pytest

from gcluster.inventory.hosts import Host, SshTarget
from gcluster.lifecycle.nodes.readiness import Readiness, await_ready
from gcluster.lifecycle.nodes.ssh import Answer, SshResult, SshSession, Unreachable

HOST = Host(
    name="gpu001",
    site="east",
    pool="gpu",
    role="compute",
    machine=None,
    address="192.0.2.1",
    ssh=SshTarget(user="root", host_keys=("ssh-ed25519 AAAA",)),
)
REFUSED = Unreachable(reason="login refused for user ubuntu with /key")


class Machine(SshSession):
    """Runs the node's commands in a shell of this machine, below a folder of its own."""

    def __init__(self, folder: Path) -> None:
        """Have cloud-init that is done, and no process."""
        super().__init__(folder)
        self.folder = folder
        self.before: list[Answer] = []
        """Answers of the first looks, before anybody can log in."""
        self.looks = 0
        for name in ("bin", "proc", "log"):
            (folder / name).mkdir()
        self.cloud_init("status: done")

    def cloud_init(self, *says: str) -> None:
        """Have it say this at each look, the last for ever; "" is at work until it is killed."""
        cases = "".join(
            f"{n}) {f'echo {word!r}' if word else 'sleep 60'} ;;\n" for n, word in enumerate(says)
        )
        path = self.folder / "bin" / "cloud-init"
        path.write_text(f'#!/bin/sh\ncase "$LOOK" in\n{cases}*) echo "{says[-1]}" ;;\nesac\n')
        path.chmod(0o755)

    def process(self, number: int, name: str, line: str = "") -> Path:
        """Have a process."""
        folder = self.folder / "proc" / str(number)
        folder.mkdir()
        (folder / "comm").write_text(f"{name}\n")
        (folder / "cmdline").write_text((line or name).replace(" ", "\0"))
        return folder

    def run(
        self, host: Host, command: str, *, stdin: str | None = None, timeout_s: float = 60
    ) -> Answer:
        """Answer as the node does."""
        del host, stdin
        self.looks += 1
        if self.before:
            return self.before.pop(0)
        command = command.replace("/proc/", f"{self.folder}/proc/").replace(
            "timeout 20", "timeout 1"
        )
        command = command.replace("/var/log/", f"{self.folder}/log/")
        done = subprocess.run(
            ["sh", "-c", command],
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
            env={
                "PATH": f"{self.folder}/bin{os.pathsep}{os.environ['PATH']}",
                "LOOK": str(self.looks - 1),
            },
        )
        return SshResult(returncode=done.returncode, stdout=done.stdout, stderr=done.stderr)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def wait(machine: Machine, limit_s: float = 60.0, host: Host = HOST) -> tuple[Readiness, list[str]]:
    answer: list[str] = []
    found = await_ready(
        [host],
        machine,
        limit_s=lambda _: limit_s,
        progress=lambda _, what: answer.append(what),
        pause_s=0.0,
    )
    return found[host.name], [what for what in answer if what]


def test_a_machine_whose_user_is_still_made_and_whose_cloud_init_runs_is_waited_for(
    machine: Machine,
) -> None:
    machine.before = [Unreachable(reason="192.0.2.1 port 22: connection refused"), REFUSED]
    machine.cloud_init("", "", "", "status: done")
    found, answer = wait(machine)
    assert found == Readiness()
    assert answer == [
        "gpu001: 192.0.2.1 port 22: connection refused",
        f"gpu001: {REFUSED.reason}",
        "gpu001: still at work there: cloud-init",
    ]


def test_updates_that_hold_the_package_manager_are_waited_for_and_named(machine: Machine) -> None:
    machine.process(31, "unattended-upgr", "/usr/bin/python3 /usr/bin/unattended-upgrade")
    (machine.folder / "log" / "cloud-init-output.log").write_text("one\ntwo\n")
    found, _ = wait(machine, limit_s=0.0)
    assert found.reason == "still at work there: unattended-upgr"
    assert found.last_lines == ("one", "two")


def test_a_unit_that_waits_for_the_shutdown_delays_nothing(machine: Machine) -> None:
    line = "/usr/bin/python3 /usr/share/unattended-upgrades/unattended-upgrade-shutdown --wait"
    machine.process(7, "unattended-upgr", line)
    assert wait(machine, limit_s=0.0)[0] == Readiness()


def test_a_node_that_never_allows_logins_is_given_up_with_its_reason(machine: Machine) -> None:
    machine.before = [REFUSED] * 9
    assert wait(machine, limit_s=0.0)[0].reason == REFUSED.reason
    assert machine.looks == 1


def test_a_changed_host_key_is_not_waited_for(machine: Machine) -> None:
    machine.before = [Unreachable(reason="its host key changed: expected X")] * 2
    assert wait(machine)[0].reason.startswith("its host key changed")
    assert machine.looks == 1


def test_a_silent_machine_is_queried_once(machine: Machine) -> None:
    machine.before = [Unreachable(reason="it showed no host key")] * 2
    silent = msgspec.structs.replace(HOST, silent="it showed no host key", last_lines=("panic",))
    found, _ = wait(machine, host=silent)
    assert (found.reason, found.last_lines) == ("it showed no host key", ("panic",))
    assert machine.looks == 1


def test_a_cloud_init_that_failed_is_reported_with_the_end_of_its_log(machine: Machine) -> None:
    machine.cloud_init("status: error")
    (machine.folder / "log" / "cloud-init-output.log").write_text("runcmd failed\n")
    found, _ = wait(machine)
    assert (found.reason, found.failed, found.last_lines) == ("", True, ("runcmd failed",))
