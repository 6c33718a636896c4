"""Secrets of a cluster: made where none exists, read where the spec says where they are."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from cryptography import x509
from tests.schemas.validate_cases import Case

from gcluster.lifecycle.cluster.outcome import LifecycleError
from gcluster.lifecycle.secrets.makers import (
    make_secrets,
    public_key,
    rotate_tunnel_keys,
    secret_versions,
    tunnel_key,
)
from gcluster.lifecycle.secrets.vault import SecretVault
from gcluster.lifecycle.state import StateStore
from gcluster.schemas.load import load_text
from gcluster.schemas.spec import ClusterSpec

_SPEC = """\
apiVersion: gcluster/v1
name: demo
sites: {{here: {{provider: local}}}}
pools:
  head: {{site: here, role: controller}}
  gpu: {{site: here, machine: sim.h100x8, count: 2}}
scheduler: {{type: slurm, accounting: {accounting}}}
"""
MADE = "{}"
GIVEN = "{database: db.example.edu, password: 'env:DB_PASSWORD'}"


def spec(accounting: str) -> ClusterSpec:
    loaded = load_text(_SPEC.format(accounting=accounting))
    assert loaded.spec is not None, loaded.diagnostics
    return loaded.spec


@pytest.fixture
def vault(tmp_path: Path) -> SecretVault:
    store = StateStore.open(f"file://{tmp_path}/state")
    return SecretVault.open(store, None, "id", tmp_path / "keys")


def test_the_password_of_a_database_that_is_made_is_made_once(vault: SecretVault) -> None:
    make_secrets(vault, spec(MADE), ("slurmdbd",))
    first = vault.reveal("slurmdbd")
    make_secrets(vault, spec(MADE), ("slurmdbd",))
    assert vault.reveal("slurmdbd") == first
    assert int(first, 16) > 2**128


def test_a_password_that_the_spec_refers_to_is_read(
    vault: SecretVault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DB_PASSWORD", "theirs\n")
    make_secrets(vault, spec(GIVEN), ("slurmdbd",))
    assert vault.reveal("slurmdbd") == b"theirs"


def test_a_password_that_changed_is_a_version_more_and_one_that_did_not_is_none(
    vault: SecretVault, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    for value in ("first", "first", "second"):
        monkeypatch.setenv("DB_PASSWORD", value)
        make_secrets(vault, spec(GIVEN), ("slurmdbd",))
        seen.append((vault.reveal("slurmdbd"), vault.version("slurmdbd")))
    assert seen[0] == seen[1]
    assert seen[2][0] == b"second"
    assert seen[2][1] != seen[0][1]


def test_a_password_that_is_kept_is_not_requested_again(
    vault: SecretVault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DB_PASSWORD", "theirs")
    make_secrets(vault, spec(GIVEN), ("slurmdbd",))
    monkeypatch.delenv("DB_PASSWORD")
    make_secrets(vault, spec(GIVEN), ("slurmdbd",))
    assert vault.reveal("slurmdbd") == b"theirs"


@pytest.mark.parametrize("value", [None, "", "  \n"])
def test_a_password_that_is_nowhere_is_named_and_none_is_made_up(
    vault: SecretVault, monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    monkeypatch.delenv("DB_PASSWORD", raising=False)
    if value is not None:
        monkeypatch.setenv("DB_PASSWORD", value)
    with pytest.raises(LifecycleError) as refused:
        make_secrets(vault, spec(GIVEN), ("slurmdbd",))
    (message,) = refused.value.diagnostics
    assert (message.code, "env:DB_PASSWORD" in message.summary) == ("GC959", True)
    assert vault.version("slurmdbd") is None


def test_a_file_that_can_t_be_read_is_no_traceback(vault: SecretVault, tmp_path: Path) -> None:
    given = GIVEN.replace("env:DB_PASSWORD", f"file:{tmp_path}/missing")
    with pytest.raises(LifecycleError) as refused:
        make_secrets(vault, spec(given), ("slurmdbd",))
    assert "No such file" in refused.value.diagnostics[0].summary


def test_a_password_that_changed_is_seen_before_anything_is_done(
    vault: SecretVault, monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = []
    for value, makes in (("first", True), ("first", False), ("second", False)):
        monkeypatch.setenv("DB_PASSWORD", value)
        if makes:
            make_secrets(vault, spec(GIVEN), ("slurmdbd",))
        versions.append(secret_versions(vault, spec(GIVEN), ("slurmdbd",))["slurmdbd"])
    assert versions == [versions[0], versions[0], "new"]


SECRETS = (
    "wireguard-key-gate",
    "wireguard-key-head",
    "wireguard-peers-gate",
    "wireguard-peers-head",
)


@pytest.fixture(scope="module")
def tunnel_spec() -> ClusterSpec:
    loaded = Case("GC720", "passes").load()
    assert loaded.spec is not None, loaded.diagnostics
    return loaded.spec


def test_one_up_gives_both_ends_what_they_need_of_each_other(
    vault: SecretVault, tunnel_spec: ClusterSpec
) -> None:
    make_secrets(vault, tunnel_spec, SECRETS)
    for own, other in (("head", "gate"), ("gate", "head")):
        known = json.loads(vault.reveal(f"wireguard-peers-{other}"))
        assert known == {other: public_key(vault.reveal(f"wireguard-key-{other}"))}
        assert vault.reveal(f"wireguard-key-{own}").strip() not in vault.reveal(
            f"wireguard-peers-{other}"
        )


def test_keys_are_made_once(vault: SecretVault, tunnel_spec: ClusterSpec) -> None:
    make_secrets(vault, tunnel_spec, SECRETS)
    before = [vault.version(name) for name in SECRETS]
    make_secrets(vault, tunnel_spec, SECRETS)
    assert [vault.version(name) for name in SECRETS] == before


def test_the_list_of_peers_may_come_before_their_keys(
    vault: SecretVault, tunnel_spec: ClusterSpec
) -> None:
    make_secrets(vault, tunnel_spec, tuple(reversed(SECRETS)))
    assert json.loads(vault.reveal("wireguard-peers-gate"))["gate"] == public_key(
        vault.reveal("wireguard-key-gate")
    )


def test_a_rotation_changes_every_key_and_every_list(
    vault: SecretVault, tunnel_spec: ClusterSpec
) -> None:
    make_secrets(vault, tunnel_spec, SECRETS)
    before = {name: (vault.version(name), vault.reveal(name)) for name in SECRETS}
    rotate_tunnel_keys(vault, SECRETS)
    for name in SECRETS:
        assert vault.version(name) != before[name][0]
        assert vault.reveal(name) != before[name][1]
    make_secrets(vault, tunnel_spec, SECRETS)
    assert json.loads(vault.reveal("wireguard-peers-head"))["head"] == public_key(
        vault.reveal("wireguard-key-head")
    )


def test_no_two_keys_are_alike_and_each_is_a_line_as_wg_writes_it() -> None:
    keys = {tunnel_key() for _ in range(4)}
    assert len(keys) == 4
    assert {(len(base64.b64decode(key)), key[-1:]) for key in keys} == {(32, b"\n")}


def test_the_public_half_is_what_wg_pubkey_has() -> None:
    private = b"qA/sYZApqujaYKQHidzVw/XCgnjYRKjfWfwFts0pI1s=\n"  # wireguard-tools 1.0.20210914
    assert public_key(private) == "Ja17tqqP4MhmS33K/h8qD/PTC2HlAI8dvVVaJu4ETUQ="


_OF_MONITORING = (
    "monitoring-authority",
    "monitoring-exporter",
    "monitoring-password",
    "monitoring-server",
)


def test_certificates_of_monitoring_are_made_once_and_by_one_authority(vault: SecretVault) -> None:
    make_secrets(vault, spec(MADE), _OF_MONITORING)
    first = {name: vault.reveal(name) for name in _OF_MONITORING}
    authority = x509.load_pem_x509_certificate(first["monitoring-authority"])
    for name in ("monitoring-exporter", "monitoring-server"):
        x509.load_pem_x509_certificate(first[name]).verify_directly_issued_by(authority)
    make_secrets(vault, spec(MADE), _OF_MONITORING)
    assert {name: vault.reveal(name) for name in _OF_MONITORING} == first


def test_the_key_of_the_authority_is_in_nothing_that_a_node_gets(vault: SecretVault) -> None:
    make_secrets(vault, spec(MADE), _OF_MONITORING)
    kept = vault.reveal("monitoring-ca").decode()
    key = kept[kept.index("-----BEGIN PRIVATE KEY-----") :]
    assert not any(key in vault.reveal(name).decode() for name in _OF_MONITORING)
