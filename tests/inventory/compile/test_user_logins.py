"""People log in where the spec lets them, with keys or certificates."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from gcluster.schemas.load import load_text

sys.path.insert(0, str(Path(__file__).parent))
import golden

sys.path.pop(0)

_SPEC = """\
apiVersion: gcluster/v1
name: demo
sites: {here: {provider: local}}
pools:
  head: {site: here, role: controller}
  door: {site: here, role: login, count: 1}
  gpu: {site: here, machine: sim.h100x8, count: 2}
scheduler: {type: slurm}
users:
  - {name: ada, uid: 2001, login: [login]}
  - {name: bob, uid: 2002}
  - {name: eve, uid: 2003, login: []}
"""
_AUTHORITY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0u ca@example.edu"


def answer(text: str = _SPEC) -> dict[str, dict[str, Any]]:
    """Return pool -> variables of base.configure."""
    spec = load_text(text).spec
    assert spec is not None
    return {
        group.name: step.variables
        for group in golden.compiled(spec).groups
        for step in group.steps
        if step.key == "base.configure"
    }


def test_who_may_not_log_in_is_denied_where_that_is_reported() -> None:
    denied = {pool: result.get("base_denied_users") for pool, result in answer().items()}
    assert denied == {"head": ["ada", "eve"], "door": ["eve"], "gpu": ["ada", "eve"]}


def test_every_node_has_every_account_all_the_same() -> None:
    for result in answer().values():
        assert [user["name"] for user in result["base_users"]] == ["ada", "bob", "eve"]
        assert all("login" not in user for user in result["base_users"])


def test_an_authority_is_trusted_on_every_node() -> None:
    result = answer(f"{_SPEC}ssh_authorities: ['{_AUTHORITY}']\n")
    assert {str(one["base_ssh_authorities"]) for one in result.values()} == {str([_AUTHORITY])}


def test_without_rules_nothing_is_reported_of_them() -> None:
    result = answer(_SPEC.replace(", login: [login]", "").replace(", login: []", ""))
    for one in result.values():
        assert not {"base_denied_users", "base_ssh_authorities"} & one.keys()


def test_a_key_that_is_no_public_one_is_refused() -> None:
    loaded = load_text(f"{_SPEC}ssh_authorities: ['-----BEGIN OPENSSH PRIVATE KEY-----']\n")
    assert loaded.spec is None
