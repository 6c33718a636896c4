"""Another key reaches every machine, or none; those that could not be reached are named.

The machines are doubles that keep their key, and understand a credential only of their own.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.lifecycle.controller import HEAD
from tests.lifecycle.rolling.scheduler import SchedulerDouble
from tests.lifecycle.sample_cluster import SampleCluster

from gcluster.inventory.hosts import ClusterInventory, Host
from gcluster.lifecycle.cluster.outcome import Exit, LifecycleError
from gcluster.lifecycle.cluster.progress import silent
from gcluster.lifecycle.nodes.ssh import Answer, SshResult, SshSession, Unreachable
from gcluster.lifecycle.operations.rotate import munge as rotation
from gcluster.lifecycle.operations.rotate.munge import rotate_munge
from gcluster.lifecycle.secrets.vault import SecretVault

OLD = b"old" * 20
NODES = ("gpu001", "gpu002", "gpu003")
HOSTS = ClusterInventory(
    cluster="trial",
    hosts=(
        HEAD,
        *(msgspec.structs.replace(HEAD, name=n, pool="gpu", role="compute") for n in NODES),
    ),
)


SLURM = SchedulerDouble(dict.fromkeys(NODES, 0.0))
"""It gets a ping from every node at once."""


class Machines(SshSession):
    """The double of machines with a key, the next one and the one before."""

    def __init__(self, folder: Path) -> None:
        """Give all of them the old key."""
        super().__init__(folder)
        names = [host.name for host in HOSTS.hosts]
        self.key = dict.fromkeys(names, OLD)
        self.next: dict[str, bytes] = {}
        self.old: dict[str, bytes] = {}
        self.off: set[str] = set()
        self.refusing: set[str] = set()
        self.seen: list[str] = []
        self.vouches = OLD
        """Key that the controller's packages of Slurm carry a code of."""

    def run_many(
        self, hosts: Iterable[Host], command: str, *, timeout_s: float = 60
    ) -> dict[str, Answer]:
        """Run a command on each."""
        return {host.name: self.run(host, command, timeout_s=timeout_s) for host in hosts}

    def run(self, host: Host, command: str, *, stdin: str | None = None, **_: Any) -> Answer:
        """Run one of the commands of a rotation."""
        name = host.name
        self.seen.append(command)
        if name in self.off:
            return Unreachable(reason="no route to host")
        if command == rotation.STAGE:
            self.next[name] = base64.b64decode(stdin or "")
            return _result(
                hashlib.sha256(self.next[name]).hexdigest() + "  /etc/munge/munge.key.next"
            )
        if command == rotation.CHANGE:
            if name in self.refusing:
                return _result("", 1)
            self.old[name], self.key[name] = self.key[name], self.next.pop(name)
        elif command == rotation.BACK:
            self.key[name] = self.old.pop(name, self.key[name])
            self.next.pop(name, None)
        elif command == rotation.CLEAN:
            self.next.pop(name, None)
            self.old.pop(name, None)
        elif command == rotation.CREDENTIAL:
            return _result(f"MUNGE:{self.key[name].hex()}")
        elif "SHA256SUMS.hmac" in command:
            self.vouches = base64.b64decode(stdin or "")
        else:
            assert command == rotation.UNDERSTAND
            return _result("", 0 if stdin == f"MUNGE:{self.key[name].hex()}" else 14)
        return _result("")


def _result(text: str, code: int = 0) -> SshResult:
    answer = "unmunge: Error: Invalid credential" if code else ""
    return SshResult(returncode=code, stdout=text, stderr=answer)


@pytest.fixture
def machines(tmp_path: Path) -> Machines:
    """Give the machines."""
    return Machines(tmp_path)


@pytest.fixture
def vault(sample: SampleCluster) -> SecretVault:
    """Give the vault of a cluster whose key is the old one."""
    cluster = sample.open()
    cluster.identify()
    cluster.vault.keep("munge", OLD)
    return cluster.vault


def test_every_machine_gets_the_key_that_the_state_keeps(
    machines: Machines, vault: SecretVault
) -> None:
    result = rotate_munge(HOSTS, machines, vault, SLURM, silent)
    assert (set(result.changed), result.left) == ({"head", *NODES}, {})
    assert result.exit_code is Exit.OK
    assert set(machines.key.values()) == {vault.reveal("munge")}
    assert vault.reveal("munge") != OLD
    assert (machines.next, machines.old) == ({}, {})
    assert machines.vouches == vault.reveal("munge")


def test_no_machine_changes_before_all_have_the_key(machines: Machines, vault: SecretVault) -> None:
    rotate_munge(HOSTS, machines, vault, SLURM, silent)
    first_change = machines.seen.index(rotation.CHANGE)
    assert machines.seen[:first_change] == [rotation.STAGE] * 4


def test_the_key_is_in_no_command(machines: Machines, vault: SecretVault) -> None:
    rotate_munge(HOSTS, machines, vault, SLURM, silent)
    key = vault.reveal("munge")
    answer = " ".join(machines.seen)
    assert base64.b64encode(key).decode()[:40] not in answer
    assert key.hex() not in answer


def test_a_machine_that_is_off_is_left_for_the_next_up(
    machines: Machines, vault: SecretVault
) -> None:
    machines.off = {"gpu002"}
    result = rotate_munge(HOSTS, machines, vault, SLURM, silent)
    assert result.left == {"gpu002": "no route to host"}
    assert result.exit_code is Exit.PENDING
    assert machines.key["gpu002"] == OLD


def test_a_rotation_ends_when_the_controller_has_registered_the_nodes_that_serve(
    machines: Machines, vault: SecretVault, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler = SchedulerDouble(dict.fromkeys(NODES, 0.0), drained={"gpu003": "link 3"})
    scheduler.answers_from = {"gpu002": 10.0, "gpu003": 1e9}
    monkeypatch.setattr(rotation, "Clock", lambda: scheduler.clock)
    assert not rotate_munge(HOSTS, machines, vault, scheduler, silent).left
    assert scheduler.time == 10.0


def test_a_scheduler_that_is_silent_after_a_rotation_does_not_undo_it(
    machines: Machines, vault: SecretVault, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler = SchedulerDouble({})
    scheduler.silent_from = 0.0
    monkeypatch.setattr(rotation, "Clock", lambda: scheduler.clock)
    assert rotate_munge(HOSTS, machines, vault, scheduler, silent).exit_code is Exit.OK


def test_a_machine_that_does_not_change_is_named(machines: Machines, vault: SecretVault) -> None:
    machines.refusing = {"gpu003"}
    result = rotate_munge(HOSTS, machines, vault, SLURM, silent)
    assert result.left == {"gpu003": "unmunge: Error: Invalid credential"}


def test_nothing_changes_while_a_controller_is_off(machines: Machines, vault: SecretVault) -> None:
    machines.off = {"head"}
    with pytest.raises(LifecycleError, match="the key of head can't be changed"):
        rotate_munge(HOSTS, machines, vault, SLURM, silent)
    assert set(machines.key.values()) == {OLD}
    assert (machines.next, vault.reveal("munge")) == ({}, OLD)


def test_a_controller_that_keeps_the_old_key_takes_all_back(
    machines: Machines, vault: SecretVault
) -> None:
    class Stubborn(Machines):
        def run(self, host: Host, command: str, **given: Any) -> Answer:
            if host.name == "head" and command == rotation.CREDENTIAL:
                return _result("", 1)
            return super().run(host, command, **given)

    stubborn = Stubborn(machines._sockets.parent)  # noqa: SLF001  # any folder does
    with pytest.raises(LifecycleError, match="does not work on head"):
        rotate_munge(HOSTS, stubborn, vault, SLURM, silent)
    assert set(stubborn.key.values()) == {OLD}
    assert vault.reveal("munge") == OLD
