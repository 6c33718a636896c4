"""Pods of monitoring get their secrets from the vault; no plan and no argument shows a value."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gcluster.lifecycle.kubernetes.release.logins import SecretChanges
from gcluster.lifecycle.kubernetes.release.stack_secrets import (
    keep_stack_secrets,
    settle_stack_secrets,
    stack_secret_changes,
)
from gcluster.lifecycle.secrets.vault import SecretVault
from gcluster.lifecycle.state import StateStore
from gcluster.schemas.spec import ClusterSpec
from gcluster.schemas.spec.cluster import Monitoring

from .api_double import ApiDouble
from .spec import spec_of

WATCHED = {
    "prometheus": True,
    "grafana": True,
    "alerts": {"webhook": {"url": "env:PAGER"}},
    "remote_write": {"url": "https://m.example/api", "user": "lab", "password": "env:METRICS"},
}
BARE = """\
apiVersion: gcluster/v1
name: trial
sites: {hall: {provider: bare-metal, ssh: {user: ops}, network: {cidr: 10.22.0.0/16}}}
pools:
  head: {site: hall, role: controller, hosts: [{name: head, address: 10.22.0.1}]}
  gpu: {site: hall, machine: hgx-h100-8, hosts: [{name: gpu1, address: 10.22.0.2}]}
scheduler: {type: kubernetes, cni: cilium}
"""
BOTH = {("gcluster-monitoring", name) for name in ("gcluster-monitoring", "gcluster-node-exporter")}


@pytest.fixture
def vault(tmp_path: Path) -> SecretVault:
    """The secrets of a cluster."""
    store = StateStore.open(f"file://{tmp_path}/state")
    return SecretVault.open(store, None, "id", tmp_path / "keys")


@pytest.fixture
def spec(monkeypatch: pytest.MonkeyPatch) -> ClusterSpec:
    """A cluster that is watched."""
    monkeypatch.setenv("PAGER", "https://pager.example/plover")
    monkeypatch.setenv("METRICS", "xyzzy-2207")
    loaded = spec_of(BARE)
    return msgspec.structs.replace(loaded, monitoring=msgspec.convert(WATCHED, Monitoring))


def there(changes: SecretChanges) -> ApiDouble:
    """Return an API that has what was written."""
    found = [{"namespace": n, "name": m, "digest": d} for (n, m), d in changes.stale.items()]
    return ApiDouble({"secrets": found})


def written(api: ApiDouble) -> dict[str, dict[str, bytes]]:
    """Return Secret -> key -> content of what was applied."""
    [text] = [text for text in api.given if text]
    made: list[dict[str, Any]] = json.loads(text)["items"]
    return {
        one["metadata"]["name"]: {k: base64.b64decode(v) for k, v in one["data"].items()}
        for one in made
    }


def test_each_pod_gets_what_it_reads_and_exporters_their_certificate_alone(
    spec: ClusterSpec, vault: SecretVault
) -> None:
    keep_stack_secrets(vault, spec)
    api = ApiDouble({"secrets": []})
    changes = stack_secret_changes(api, vault, spec)
    settle_stack_secrets(api, vault, spec, changes)
    stack, exporter = (written(api)[name] for name in sorted(name for _, name in BOTH))

    assert set(changes.stale) == BOTH
    assert exporter.keys() == {"tls.crt", "tls.key"}
    assert b"PRIVATE KEY" in exporter["tls.key"]
    assert b"PRIVATE KEY" not in stack["authority.pem"]
    assert (stack["webhook"], stack["remote-password"]) == (
        b"https://pager.example/plover",
        b"xyzzy-2207",
    )
    assert (stack["remote-user"], stack["grafana-user"]) == (b"lab", b"gcluster")
    assert len(stack["grafana-password"]) > 10
    shown = repr((changes, changes.lines, changes.exact, api.calls))
    assert "plover" not in shown
    assert "xyzzy" not in shown


def test_what_was_written_is_not_written_again_until_a_secret_is_another(
    spec: ClusterSpec, vault: SecretVault, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_stack_secrets(vault, spec)
    api = there(stack_secret_changes(ApiDouble({"secrets": []}), vault, spec))

    assert stack_secret_changes(api, vault, spec) == SecretChanges()
    monkeypatch.setenv("METRICS", "another")
    changed = stack_secret_changes(api, vault, spec)
    assert {name for _, name in changed.stale} == {"gcluster-monitoring"}


def test_a_cluster_that_is_not_watched_is_not_queried(vault: SecretVault) -> None:
    api = ApiDouble({})
    keep_stack_secrets(vault, spec_of())

    assert stack_secret_changes(api, vault, spec_of()) == SecretChanges()
    assert api.calls == []
