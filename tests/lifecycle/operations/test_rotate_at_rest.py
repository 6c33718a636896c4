"""Kubernetes encrypts secrets by another key: no API server meets one that it can't read."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gcluster.inventory.compile.kubernetes import ENCRYPTION_SECRET
from gcluster.inventory.hosts import ClusterInventory
from gcluster.lifecycle.cluster.outcome import Exit, LifecycleError
from gcluster.lifecycle.cluster.progress import silent
from gcluster.lifecycle.nodes.converge.pending import Pending
from gcluster.lifecycle.nodes.converge.run import ConvergeResult
from gcluster.lifecycle.nodes.ssh import SshResult, SshSession
from gcluster.lifecycle.operations.rotate import at_rest, kept
from gcluster.lifecycle.operations.rotate.at_rest import REWRITE, keys_of, rotate_at_rest
from gcluster.lifecycle.secrets.makers import make_secrets
from gcluster.lifecycle.secrets.vault import SecretVault
from gcluster.lifecycle.state import StateStore
from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.load import load_text
from gcluster.stacks.registry import provider

SPEC = """\
apiVersion: gcluster/v1
name: demo
sites: {here: {provider: local}}
pools:
  head: {site: here, role: controller, count: 3}
  gpu: {site: here, machine: sim.h100x8, count: 1}
scheduler: {type: SCHEDULER}
"""
HEADS = ("head", "head002", "head003")


class Killed(Exception):  # noqa: N818  # what happens, not an error of ours
    """The command ends here."""


class Planes(SshSession):
    """Three control planes that have whatever keys they were given, in the order of turns."""

    def __init__(self, folder: Path, scheduler: str = "kubernetes") -> None:
        """Make the cluster with its first key, alone on its line."""
        super().__init__(folder)
        address = ", virtual_address: {address: 10.22.0.250, by: keepalived}"
        if scheduler == "slurm":
            spec = load_text(SPEC.replace("SCHEDULER", "slurm").replace(", count: 3", "")).spec
        else:
            spec = load_text(SPEC.replace("SCHEDULER", f"kubernetes{address}")).spec
        assert spec is not None
        store = StateStore.open(f"file://{folder}/state")
        self.vault = SecretVault.open(store, None, "id", folder / "keys")
        planned = provider("local").planned_hosts(spec, "here")
        self.hosts = ClusterInventory(cluster="demo", hosts=planned)
        self.turns: list[list[str]] = []
        self.kill, self.left = "", 0

        def made(compiled: Any) -> dict[str, str]:
            make_secrets(self.vault, spec, compiled.secrets)
            return {name: self.vault.version(name) or "" for name in compiled.secrets}

        self.cluster = SimpleNamespace(
            name="demo",
            spec=spec,
            catalog=load_catalog(),
            bundle=None,
            kubernetes=None,
            vault=self.vault,
            make_secrets=made,
        )
        if scheduler == "kubernetes":
            make_secrets(self.vault, spec, (ENCRYPTION_SECRET,))

    def names(self) -> list[str]:
        """Return the names of the keys, the one that encrypts first."""
        return [key.name for key in keys_of(self.vault.reveal(ENCRYPTION_SECRET))]

    def converge(self, pending: Pending, *_: object, **__: object) -> ConvergeResult:
        """Give the keys to the control planes, or end before that."""
        taken = [each for each in pending.steps if each.step.key == "kubernetes.configure"]
        assert {host for each in taken for host in each.hosts} == set(HEADS)
        if self.kill == f"turn {len(self.turns) + 1}":
            raise Killed
        self.turns.append(self.names())
        waiting = ("head002",) if self.left == len(self.turns) else ()
        return ConvergeResult(done={}, failures=(), waiting=waiting)

    def run(self, host: Any, command: str, **_: Any) -> SshResult:
        """Write secrets again, or end before that."""
        assert host.name in HEADS
        assert command == REWRITE
        if self.kill == "rewrite":
            raise Killed
        self.turns.append(["rewritten"])
        return SshResult(returncode=0, stdout="wrote 7 secrets again\n", stderr="")

    def rotate(self) -> Any:
        """Rotate."""
        run: Any = SimpleNamespace(cluster=self.cluster, directory=Path("/nowhere"))
        return rotate_at_rest(run, self.hosts, self, silent)


@pytest.fixture
def planes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Planes:
    made = Planes(tmp_path)
    monkeypatch.setattr(kept, "read_stamps", lambda _, hosts: {h.name: {} for h in hosts})
    monkeypatch.setattr(kept, "converge", made.converge)
    monkeypatch.setattr(at_rest, "controller_of", lambda hosts, _: hosts.with_role("controller")[0])
    return made


def test_each_reads_by_the_new_key_before_one_encrypts_by_it(planes: Planes) -> None:
    first = planes.vault.reveal(ENCRYPTION_SECRET)
    assert planes.names() == ["gcluster"]
    assert planes.rotate().exit_code is Exit.OK
    assert planes.turns == [
        ["gcluster", "gcluster-2"],
        ["gcluster-2", "gcluster"],
        ["rewritten"],
    ]
    values = {key.name: key.value for key in keys_of(planes.vault.reveal(ENCRYPTION_SECRET))}
    assert values["gcluster"] == first.decode() != values["gcluster-2"]


def test_the_key_before_stays_until_the_next_rotation(planes: Planes) -> None:
    planes.rotate()
    planes.turns.clear()
    planes.rotate()
    assert planes.turns == [
        ["gcluster-2", "gcluster", "gcluster-3"],
        ["gcluster-3", "gcluster-2", "gcluster"],
        ["rewritten"],
        ["gcluster-3", "gcluster-2"],
    ]


@pytest.mark.parametrize("kill", ["turn 1", "turn 2", "rewrite", "turn 4"])
def test_a_rotation_that_was_killed_is_taken_up(planes: Planes, kill: str) -> None:
    planes.vault.keep(ENCRYPTION_SECRET, b"gcluster-2:bmV3\ngcluster:b2xk")
    planes.kill = kill
    with pytest.raises(Killed):
        planes.rotate()
    planes.turns, planes.kill = [], ""
    planes.rotate()
    used = [turn for turn in planes.turns if turn != ["rewritten"]]
    for before, after in pairwise(used):
        assert after[0] in before  # each could read it when the first one encrypted by it
    assert planes.turns.index(["rewritten"]) > 0
    kept = planes.names()
    assert len(kept) == 2
    assert sorted(kept, reverse=True) == kept
    # What is dropped goes after the secrets were written again.
    assert all(len(turn) >= 3 for turn in planes.turns[: planes.turns.index(["rewritten"])])


@pytest.mark.parametrize("turn", [1, 2])
def test_no_secret_is_encrypted_by_what_one_can_not_read(planes: Planes, turn: int) -> None:
    planes.left = turn
    result = planes.rotate()
    assert (result.exit_code, list(result.left)) == (Exit.PENDING, ["head002"])
    assert ["rewritten"] not in planes.turns
    assert len(planes.turns) == turn


def test_a_cluster_of_slurm_has_no_such_key(tmp_path: Path) -> None:
    with pytest.raises(LifecycleError, match="demo has no key of secrets at rest"):
        Planes(tmp_path, "slurm").rotate()
