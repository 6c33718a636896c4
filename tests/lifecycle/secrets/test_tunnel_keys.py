"""Keys of tunnels: a gateway's own stays secret, others know its public half, both change."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from tests.schemas.validate_cases import Case

from gcluster.lifecycle.secrets.makers import make_secrets
from gcluster.lifecycle.secrets.tunnel_keys import make_anew, public_key, tunnel_key
from gcluster.lifecycle.state import SecretVault, StateStore
from gcluster.schemas.spec import ClusterSpec

SECRETS = (
    "wireguard-key-gate",
    "wireguard-key-head",
    "wireguard-peers-gate",
    "wireguard-peers-head",
)


@pytest.fixture
def vault(tmp_path: Path) -> SecretVault:
    store = StateStore.open(f"file://{tmp_path}/state")
    return SecretVault.open(store, None, "id", tmp_path / "keys")


@pytest.fixture(scope="module")
def spec() -> ClusterSpec:
    loaded = Case("GC720", "passes").load()
    assert loaded.spec is not None, loaded.diagnostics
    return loaded.spec


def test_one_up_gives_both_ends_what_they_need_of_each_other(
    vault: SecretVault, spec: ClusterSpec
) -> None:
    make_secrets(vault, spec, SECRETS)
    for own, other in (("head", "gate"), ("gate", "head")):
        known = json.loads(vault.reveal(f"wireguard-peers-{other}"))
        assert known == {other: public_key(vault.reveal(f"wireguard-key-{other}"))}
        assert vault.reveal(f"wireguard-key-{own}").strip() not in vault.reveal(
            f"wireguard-peers-{other}"
        )


def test_keys_are_made_once(vault: SecretVault, spec: ClusterSpec) -> None:
    make_secrets(vault, spec, SECRETS)
    before = [vault.version(name) for name in SECRETS]
    make_secrets(vault, spec, SECRETS)
    assert [vault.version(name) for name in SECRETS] == before


def test_the_list_of_peers_may_come_before_their_keys(
    vault: SecretVault, spec: ClusterSpec
) -> None:
    make_secrets(vault, spec, tuple(reversed(SECRETS)))
    assert json.loads(vault.reveal("wireguard-peers-gate"))["gate"] == public_key(
        vault.reveal("wireguard-key-gate")
    )


def test_a_rotation_changes_every_key_and_every_list(vault: SecretVault, spec: ClusterSpec) -> None:
    make_secrets(vault, spec, SECRETS)
    before = {name: (vault.version(name), vault.reveal(name)) for name in SECRETS}
    make_anew(vault, SECRETS)
    for name in SECRETS:
        assert vault.version(name) != before[name][0]
        assert vault.reveal(name) != before[name][1]
    make_secrets(vault, spec, SECRETS)
    assert json.loads(vault.reveal("wireguard-peers-head"))["head"] == public_key(
        vault.reveal("wireguard-key-head")
    )


def test_no_two_keys_are_alike_and_each_is_a_line_as_wg_writes_it() -> None:
    keys = {tunnel_key() for _ in range(4)}
    assert len(keys) == 4
    assert {(len(base64.b64decode(key)), key[-1:]) for key in keys} == {(32, b"\n")}


def test_the_public_half_is_what_wg_pubkey_says() -> None:
    private = b"qA/sYZApqujaYKQHidzVw/XCgnjYRKjfWfwFts0pI1s=\n"  # wireguard-tools 1.0.20210914
    assert public_key(private) == "Ja17tqqP4MhmS33K/h8qD/PTC2HlAI8dvVVaJu4ETUQ="
