"""Logins of registries become secrets of accounts; no plan and no argument shows a password."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from gcluster.inventory.compile.kubernetes_objects.facts import KubernetesFacts
from gcluster.lifecycle.cluster.outcome import LifecycleError
from gcluster.lifecycle.kubernetes.release.logins import (
    SecretChanges,
    login_changes,
    settle_logins,
)
from gcluster.lifecycle.secrets.makers import keep_passwords
from gcluster.lifecycle.secrets.vault import SecretVault
from gcluster.lifecycle.state import StateStore

from .api_double import ApiDouble
from .spec import TEXT, wanted_of

NGC = "ngc: {server: nvcr.io, username: $oauthtoken, password: env:NGC_API_KEY}"
OWN = "own: {server: 'registry.example.edu:5000', username: ada, password: env:OWN, accounts: [b]}"
LOGINS = TEXT.replace(
    "users: [ada]}}\n", f"users: [ada]}}, b: {{users: [ada]}}}}\n  registries: {{{NGC}, {OWN}}}\n"
)
ALL = {
    ("gcluster-system", "registry-ngc"),
    ("physics", "registry-ngc"),
    ("b", "registry-ngc"),
    ("b", "registry-own"),
}


@pytest.fixture
def vault(tmp_path: Path) -> SecretVault:
    """The secrets of a cluster."""
    store = StateStore.open(f"file://{tmp_path}/state")
    return SecretVault.open(store, None, "id", tmp_path / "keys")


@pytest.fixture
def facts(monkeypatch: pytest.MonkeyPatch) -> KubernetesFacts:
    """A cluster with two logins, of which one is for one account."""
    monkeypatch.setenv("NGC_API_KEY", "nvapi-1")
    monkeypatch.setenv("OWN", 'pass:"word')
    return wanted_of(LOGINS).facts


def there(changes: SecretChanges) -> ApiDouble:
    """Return an API that has what was written."""
    found = [{"namespace": n, "name": m, "digest": d} for (n, m), d in changes.stale.items()]
    return ApiDouble({"secrets": found})


def written(api: ApiDouble) -> dict[tuple[str, str], Any]:
    [text] = [text for text in api.given if text]
    made = json.loads(text)["items"]
    return {(one["metadata"]["namespace"], one["metadata"]["name"]): one for one in made}


def test_accounts_get_the_logins_that_are_theirs_as_kubelets_read_them(
    facts: KubernetesFacts, vault: SecretVault
) -> None:
    keep_passwords(vault, facts.spec)
    api = ApiDouble({"secrets": []})
    changes = login_changes(api, vault, facts)
    settle_logins(api, vault, facts, changes)
    made = written(api)
    assert set(changes.stale) == set(made) == ALL
    own = made["b", "registry-own"]
    assert own["type"] == "kubernetes.io/dockerconfigjson"
    config = json.loads(base64.b64decode(own["data"][".dockerconfigjson"]))
    login = config["auths"]["registry.example.edu:5000"]
    assert (login["username"], login["password"]) == ("ada", 'pass:"word')
    assert base64.b64decode(login["auth"]).decode() == 'ada:pass:"word'
    shown = repr((changes, changes.lines, changes.exact, api.calls))
    assert "nvapi" not in shown
    assert "word" not in shown.replace("password", "")


def test_what_was_written_is_not_written_again_until_a_password_is_another(
    facts: KubernetesFacts, vault: SecretVault, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_passwords(vault, facts.spec)
    api = there(login_changes(ApiDouble({"secrets": []}), vault, facts))
    assert login_changes(api, vault, facts) == SecretChanges()
    monkeypatch.setenv("NGC_API_KEY", "nvapi-2")
    assert set(login_changes(api, vault, facts).stale) == {k for k in ALL if k[1] != "registry-own"}
    monkeypatch.delenv("NGC_API_KEY")  # a machine that hasn't it: what is kept is used
    assert login_changes(api, vault, facts) == SecretChanges()


def test_a_login_that_the_spec_drops_is_removed(facts: KubernetesFacts, vault: SecretVault) -> None:
    keep_passwords(vault, facts.spec)
    api = there(login_changes(ApiDouble({"secrets": []}), vault, facts))
    less = wanted_of(LOGINS.replace(f", {OWN}", "")).facts
    changes = login_changes(api, vault, less)
    assert (changes.stale, changes.gone) == ({}, (("b", "registry-own"),))
    assert changes.lines == ("remove Secret: b/registry-own",)
    settle_logins(api, vault, less, changes, prune=False)
    assert not [call for call in api.calls if call[0] == "delete"]
    settle_logins(api, vault, less, changes)
    [call] = [call for call in api.calls if call[0] == "delete"]
    assert call[:4] == ("delete", "secret", "registry-own", "--namespace=b")


def test_a_password_that_is_nowhere_ends_up_before_anything_is_made(
    facts: KubernetesFacts, vault: SecretVault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OWN")
    with pytest.raises(LifecycleError) as refused:
        keep_passwords(vault, facts.spec)
    assert {one.code for one in refused.value.diagnostics} == {"GC959"}


def test_pods_of_an_account_need_not_name_a_secret() -> None:
    objects = wanted_of(LOGINS).objects
    named = {
        key.namespace: [one["name"] for one in made.get("imagePullSecrets", [])]
        for key, made in objects.items()
        if key.kind == "ServiceAccount"
    }
    assert named == {
        "gcluster-system": ["registry-ngc"],
        "physics": ["registry-ngc"],
        "b": ["registry-ngc", "registry-own"],
    }
    assert not [key for key in objects if key.kind == "Secret"]
