"""Pods of monitoring get their secrets from the vault; no plan and no argument shows a value."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cryptography import x509
from cryptography.exceptions import InvalidSignature

from gcluster.lifecycle.cluster.progress import silent
from gcluster.lifecycle.kubernetes.kubectl import ApiRefused, ApiSilent
from gcluster.lifecycle.kubernetes.objects import DIGEST
from gcluster.lifecycle.kubernetes.release.logins import SecretChanges
from gcluster.lifecycle.kubernetes.release.stack_secrets import (
    SETTLED_S,
    keep_stack_secrets,
    rotate_stack_secrets,
    settle_stack_secrets,
    stack_secret_changes,
)
from gcluster.lifecycle.nodes.ssh import SshResult
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


class ApiKeeping(ApiDouble):
    """An API that keeps the Secrets that are applied, and a record of all that it was given."""

    def __init__(self, *, refuses: str = "") -> None:
        """Have none; refuse a verb."""
        super().__init__({"secrets": []})
        self.refuses = refuses
        self.writes: list[dict[str, dict[str, bytes]]] = []

    def run(self, *arguments: str, stdin: str | None = None, timeout_s: float = 60) -> SshResult:
        """Answer as kubectl does."""
        if arguments[0] == self.refuses:
            return SshResult(returncode=1, stdout="", stderr="Error from server (Forbidden): no")
        answer = super().run(*arguments, stdin=stdin, timeout_s=timeout_s)
        if stdin:
            made = json.loads(stdin)["items"]
            names = {one["metadata"]["name"] for one in made}
            rows = [one for one in self.objects["secrets"] if one["name"] not in names]
            for one in made:
                about = one["metadata"]
                digest = about["annotations"][DIGEST]
                row = {"namespace": about["namespace"], "name": about["name"], "digest": digest}
                rows.append(row)
            self.objects["secrets"] = rows
            self.writes.append(
                {
                    one["metadata"]["name"]: {
                        key: base64.b64decode(value) for key, value in one["data"].items()
                    }
                    for one in made
                }
            )
        return answer


def issuers(authorities: bytes, certificate: bytes) -> int:
    """Return which of the authorities has issued a certificate: 1 is the first."""
    found = x509.load_pem_x509_certificate(certificate)
    for number, one in enumerate(x509.load_pem_x509_certificates(authorities), start=1):
        try:
            found.verify_directly_issued_by(one)
        except InvalidSignature:
            continue
        return number
    return 0


def test_exporters_change_while_both_authorities_are_trusted_and_grafana_starts_again(
    spec: ClusterSpec, vault: SecretVault
) -> None:
    keep_stack_secrets(vault, spec)
    api, waits = ApiKeeping(), list[float]()
    settle_stack_secrets(api, vault, spec, stack_secret_changes(api, vault, spec))
    old = api.writes[0]["gcluster-node-exporter"]["tls.crt"]
    password = api.writes[0]["gcluster-monitoring"]["grafana-password"]

    assert rotate_stack_secrets(api, vault, spec, silent, waits.append) == (
        "gcluster-monitoring",
        "gcluster-node-exporter",
    )

    _, both, changed, alone = api.writes
    trusted = both["gcluster-monitoring"]["authority.pem"]
    new = changed["gcluster-node-exporter"]["tls.crt"]
    assert both.keys() == {"gcluster-monitoring"}, "exporters have what they had"
    assert (issuers(trusted, old), issuers(trusted, new)) == (1, 2)
    assert changed["gcluster-monitoring"]["authority.pem"] == trusted
    assert changed["gcluster-monitoring"]["grafana-password"] != password
    last = alone["gcluster-monitoring"]["authority.pem"]
    assert (issuers(last, old), issuers(last, new)) == (0, 1)
    assert alone.keys() == {"gcluster-monitoring"}
    assert waits == [SETTLED_S] * 2
    verbs = [call[:3] for call in api.calls if call[0] == "rollout"]
    assert verbs == [
        ("rollout", "restart", "deployment/grafana"),
        ("rollout", "status", "deployment/grafana"),
    ]
    assert stack_secret_changes(api, vault, spec) == SecretChanges()


def test_without_a_grafana_no_pod_is_made_again(spec: ClusterSpec, vault: SecretVault) -> None:
    assert spec.monitoring is not None
    plain = msgspec.structs.replace(spec.monitoring, grafana=False)
    spec = msgspec.structs.replace(spec, monitoring=plain)
    keep_stack_secrets(vault, spec)
    api = ApiKeeping()
    rotate_stack_secrets(api, vault, spec, silent, lambda _: None)

    assert {call[0] for call in api.calls} == {"get", "apply"}
    assert vault.version("monitoring-password") is None


def test_nothing_is_made_again_where_no_api_server_answers(
    spec: ClusterSpec, vault: SecretVault
) -> None:
    keep_stack_secrets(vault, spec)
    before = vault.reveal("monitoring-authority")
    with pytest.raises(ApiSilent):
        rotate_stack_secrets(ApiDouble({}, silent="off"), vault, spec, silent, lambda _: None)

    assert vault.reveal("monitoring-authority") == before


def test_what_a_refusal_leaves_up_writes(spec: ClusterSpec, vault: SecretVault) -> None:
    keep_stack_secrets(vault, spec)
    api = ApiKeeping(refuses="apply")
    with pytest.raises(ApiRefused):
        rotate_stack_secrets(api, vault, spec, silent, lambda _: None)

    assert vault.reveal("monitoring-authority").count(b"BEGIN CERT") == 2
    assert set(stack_secret_changes(api, vault, spec).stale) == BOTH
