"""Both ends of a tunnel get other keys, all prepared before the first change, or no key changes.

The gateways are doubles that answer with no stamps; Ansible's part takes the steps.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.schemas.validate_cases import Case

from gcluster.inventory.bare_metal import bare_metal_hosts
from gcluster.inventory.compile.steps import PHASES
from gcluster.inventory.hosts import ClusterInventory, Host, SshTarget
from gcluster.lifecycle.cluster.outcome import Exit, LifecycleError
from gcluster.lifecycle.cluster.progress import silent
from gcluster.lifecycle.nodes.converge.pending import Pending
from gcluster.lifecycle.nodes.converge.run import ConvergeResult
from gcluster.lifecycle.nodes.ssh import Unreachable
from gcluster.lifecycle.operations.rotate import kept as rotation
from gcluster.lifecycle.operations.rotate.kept import Rotated, rotate_tunnels
from gcluster.lifecycle.secrets.makers import public_key
from gcluster.lifecycle.secrets.vault import SecretVault
from gcluster.lifecycle.state import StateStore
from gcluster.schemas.catalog import load_catalog


class Gateways:
    """The clusters' one end of this: a run, its hosts, who is off, and what was to be done."""

    def __init__(self, folder: Path, case: str) -> None:
        """Take a spec of the cases; nothing is kept yet."""
        loaded = Case(*case.split("/")).load()
        assert loaded.spec is not None
        store = StateStore.open(f"file://{folder}/state")
        self.vault = SecretVault.open(store, None, "id", folder / "keys")
        gate = Host(
            name="gate",
            site="east",
            pool="gate",
            role="login",
            machine=None,
            address="10.40.0.4",
            ssh=SshTarget(user="ubuntu"),
        )
        made = [gate] if "gate" in loaded.spec.pools else []
        hosts = (*bare_metal_hosts(loaded.spec, "hall"), *made)
        self.hosts = ClusterInventory(cluster="demo", hosts=hosts)
        self.off: set[str] = set()
        self.steps: list[tuple[str, str]] = []
        cluster = SimpleNamespace(
            name="demo",
            spec=loaded.spec,
            catalog=load_catalog(),
            bundle=None,
            kubernetes=None,
            vault=self.vault,
            make_secrets=lambda compiled: {n: self.vault.version(n) for n in compiled.secrets},
        )
        self.run: Any = SimpleNamespace(cluster=cluster, directory=folder / "run")

    def stamps(self, _: object, hosts: Any) -> dict[str, Any]:
        """Answer with no stamps."""
        away = Unreachable(reason="no route to host")
        return {host.name: away if host.name in self.off else {} for host in hosts}

    def converge(self, pending: Pending, *_: object, **__: object) -> ConvergeResult:
        """Take the steps, in their order."""
        self.steps = [(each.step.key, host) for each in pending.steps for host in each.hosts]
        return ConvergeResult(done={}, failures=(), waiting=())

    def rotate(self) -> Rotated:
        """Rotate."""
        session: Any = None
        return rotate_tunnels(self.run, self.hosts, session, silent)


@pytest.fixture
def gateways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Gateways:
    """Give a hall and a cloud that a tunnel joins."""
    made = Gateways(tmp_path, "GC720/passes")
    monkeypatch.setattr(rotation, "read_stamps", made.stamps)
    monkeypatch.setattr(rotation, "converge", made.converge)
    return made


def test_every_gateway_is_reported_before_one_changes(gateways: Gateways) -> None:
    result = gateways.rotate()
    assert (set(result.changed), result.left, result.exit_code) == (
        {"head01", "gate"},
        {},
        Exit.OK,
    )
    phases = [step.rpartition(".")[2] for step, _ in gateways.steps]
    assert phases == sorted(phases, key=PHASES.index)
    assert {host for step, host in gateways.steps if step == "wireguard.join"} == {"head01", "gate"}


def test_the_new_keys_have_each_other(gateways: Gateways) -> None:
    gateways.rotate()
    first = gateways.vault.reveal("wireguard-key-head")
    gateways.rotate()
    second = gateways.vault.reveal("wireguard-key-head")
    assert first != second
    assert json.loads(gateways.vault.reveal("wireguard-peers-head")) == {"head": public_key(second)}


def test_no_key_is_changed_where_a_gateway_is_away(gateways: Gateways) -> None:
    gateways.rotate()
    before = gateways.vault.version("wireguard-key-head")
    gateways.off = {"gate"}
    with pytest.raises(LifecycleError, match="the key of gate can't be changed: no route to host"):
        gateways.rotate()
    assert gateways.vault.version("wireguard-key-head") == before


def test_a_cluster_without_tunnels_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = Gateways(tmp_path, "GC720/a_route_that_exists_needs_none")
    monkeypatch.setattr(rotation, "read_stamps", alone.stamps)
    with pytest.raises(LifecycleError, match="demo has no tunnels between its sites"):
        alone.rotate()
