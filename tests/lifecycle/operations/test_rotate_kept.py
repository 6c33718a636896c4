"""A secret of the vault gets another value, and just the hosts that take it are given it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gcluster.inventory.compile.system.monitoring import AUTHORITY_SECRET
from gcluster.inventory.hosts import ClusterInventory
from gcluster.lifecycle.cluster.outcome import Exit, LifecycleError
from gcluster.lifecycle.cluster.progress import silent
from gcluster.lifecycle.nodes.converge.pending import Pending
from gcluster.lifecycle.nodes.converge.run import ConvergeResult
from gcluster.lifecycle.operations.rotate import kept as rotation
from gcluster.lifecycle.operations.rotate.kept import Rotated, rotate_secret
from gcluster.lifecycle.operations.rotate.monitoring import rotate_monitoring
from gcluster.lifecycle.secrets.makers import make_secrets
from gcluster.lifecycle.secrets.vault import SecretVault
from gcluster.lifecycle.state import StateStore
from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.load import load_text
from gcluster.stacks.registry import provider

_SPEC = """\
apiVersion: gcluster/v1
name: demo
sites: {{here: {{provider: local}}}}
pools:
  head: {{site: here, role: controller}}
  gpu: {{site: here, machine: sim.h100x8, count: 2}}
scheduler: {{type: slurm, accounting: {accounting}, rest_api: true}}
monitoring: {{prometheus: {watched}}}
"""


class Cluster:
    """A cluster whose hosts answer with no stamps; Ansible's part takes the steps."""

    def __init__(
        self, folder: Path, accounting: str = "{}", *, watched: bool = False, left: int = 0
    ) -> None:
        """Make its secrets; `left`: the turn of a rotation that leaves a host."""
        written = _SPEC.format(accounting=accounting, watched="true" if watched else "false")
        spec = load_text(written).spec
        assert spec is not None
        store = StateStore.open(f"file://{folder}/state")
        self.vault = SecretVault.open(store, None, "id", folder / "keys")
        self.hosts = ClusterInventory(
            cluster="demo", hosts=provider("local").planned_hosts(spec, "here")
        )
        self.steps: list[tuple[str, str]] = []
        self.turns: list[int] = []
        self.left = left

        def made(compiled: Any) -> dict[str, str]:
            make_secrets(self.vault, spec, compiled.secrets)
            return {name: self.vault.version(name) or "" for name in compiled.secrets}

        cluster = SimpleNamespace(
            name="demo",
            spec=spec,
            spec_path=folder / "cluster.yaml",
            catalog=load_catalog(),
            bundle=None,
            kubernetes=None,
            vault=self.vault,
            make_secrets=made,
        )
        self.run: Any = SimpleNamespace(cluster=cluster, directory=folder / "run")

    def converge(self, pending: Pending, *_: object, **__: object) -> ConvergeResult:
        """Take the steps."""
        self.steps = [(each.step.key, host) for each in pending.steps for host in each.hosts]
        if self.vault.version(AUTHORITY_SECRET):
            self.turns.append(self.vault.reveal(AUTHORITY_SECRET).count(b"BEGIN CERT"))
        if self.left and len(self.turns) == self.left:
            return ConvergeResult(done={}, failures=(), waiting=("gpu001",))
        return ConvergeResult(done={}, failures=(), waiting=())

    def rotate(self, word: str) -> Rotated:
        """Rotate."""
        session: Any = None
        if word == "monitoring":
            return rotate_monitoring(self.run, self.hosts, session, silent)
        return rotate_secret(self.run, self.hosts, session, silent, word)


@pytest.fixture(autouse=True)
def _stampless(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rotation, "read_stamps", lambda _, hosts: {h.name: {} for h in hosts})


@pytest.mark.parametrize(
    ("word", "secret", "role"),
    [("jwt", "slurm-jwt", "slurm"), ("database", "slurmdbd", "slurmdbd")],
)
def test_a_secret_is_recreated_and_given_to_the_hosts_that_take_it(
    word: str, secret: str, role: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster(tmp_path)
    monkeypatch.setattr(rotation, "converge", cluster.converge)
    seen = []
    for _ in range(2):
        assert cluster.rotate(word).exit_code is Exit.OK
        seen.append(cluster.vault.reveal(secret))
    assert seen[0] != seen[1]
    assert {host for step, host in cluster.steps if step == f"{role}.configure"} >= {"head"}
    assert {step.partition(".")[0] for step, _ in cluster.steps} >= {role}


def test_a_secret_of_the_users_own_is_left_to_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DB_PASSWORD", "theirs")
    cluster = Cluster(tmp_path, "{database: db.example.edu, password: 'env:DB_PASSWORD'}")
    with pytest.raises(LifecycleError, match="is yours, at env:DB_PASSWORD"):
        cluster.rotate("database")


def test_a_secret_that_the_cluster_does_not_have_is_reported(tmp_path: Path) -> None:
    with pytest.raises(LifecycleError, match="has no secret converge-signers"):
        Cluster(tmp_path).rotate("signer")


def watched(folder: Path, *, left: int = 0) -> Cluster:
    cluster = Cluster(folder, watched=True, left=left)
    make_secrets(
        cluster.vault,
        cluster.run.cluster.spec,
        (AUTHORITY_SECRET, "monitoring-exporter", "monitoring-server", "monitoring-password"),
    )
    return cluster


def test_hosts_trust_both_authorities_while_certificates_of_monitoring_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = watched(tmp_path)
    monkeypatch.setattr(rotation, "converge", cluster.converge)
    before = cluster.vault.reveal("monitoring-server")
    result = cluster.rotate("monitoring")
    assert (set(result.changed), result.exit_code) == ({"head", "gpu001", "gpu002"}, Exit.OK)
    assert cluster.turns == [2, 2, 1]
    assert cluster.vault.reveal("monitoring-server") != before
    given = {step.partition(".")[0] for step, _ in cluster.steps}
    assert given == {"node_exporter", "prometheus", "alertmanager"}


def test_a_host_that_was_left_keeps_the_old_authority_trusted_until_another_rotation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = watched(tmp_path, left=1)
    monkeypatch.setattr(rotation, "converge", cluster.converge)
    before = cluster.vault.reveal("monitoring-server")
    result = cluster.rotate("monitoring")
    assert (set(result.left), result.exit_code) == ({"gpu001"}, Exit.PENDING)
    assert cluster.vault.reveal("monitoring-server") == before
    cluster.rotate("monitoring")
    assert cluster.turns == [2, 3, 3, 1]


def test_a_cluster_that_nothing_watches_has_no_certificates_to_rotate(tmp_path: Path) -> None:
    with pytest.raises(LifecycleError, match="demo has no monitoring"):
        Cluster(tmp_path).rotate("monitoring")


@pytest.mark.parametrize("word", ["jwt", "monitoring"])
def test_a_rotation_removes_no_role_that_it_does_not_act_on(
    word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = watched(tmp_path)
    monkeypatch.setattr(rotation, "converge", cluster.converge)
    stamps = {
        f"{role}.configure": "one" for role in ("node_exporter", "slurm_exporter", "hardening")
    }
    monkeypatch.setattr(rotation, "read_stamps", lambda _, hosts: {h.name: stamps for h in hosts})
    cluster.rotate(word)
    assert cluster.steps
    assert not any(step.endswith(".remove") for step, _ in cluster.steps)
