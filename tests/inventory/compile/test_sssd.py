"""What nodes get for a directory: its address, the bind account, and never a password."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from gcluster.inventory.compile import CompiledCluster
from gcluster.inventory.compile.system.access import DIRECTORY_SECRET
from gcluster.lifecycle.secrets.makers import provided_secrets
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
  gpu: {site: here, machine: sim.h100x8, count: 2}
scheduler: {type: slurm}
users:
  source: sssd
  ldap: ldaps://dir.hpc.example.edu:3269
"""
_BIND = """\
  bind_dn: cn=gcluster,dc=example,dc=edu
  bind_password: env:LDAP_PASSWORD
"""


def compiled(users: str = "", more: str = "") -> CompiledCluster:
    loaded = load_text(_SPEC + users + more)
    assert loaded.spec is not None, loaded.diagnostics
    return golden.compiled(loaded.spec)


def answer(cluster: CompiledCluster, phase: str) -> dict[str, Any]:
    """Return the variables of a phase, which are the same on every pool."""
    (variables,) = [
        step.variables
        for step in cluster.groups[0].steps
        if (step.role, step.phase) == ("sssd", phase)
    ]
    return variables


def test_every_node_queries_the_directory_before_slurm_needs_its_users() -> None:
    for group in compiled().groups:
        roles = [step.role for step in group.steps]
        assert roles.index("base") < roles.index("sssd") < roles.index("slurm"), group.name


def test_a_list_of_users_queries_no_directory() -> None:
    loaded = load_text(_SPEC[: _SPEC.index("users:")])
    assert loaded.spec is not None
    roles = {step.role for group in golden.compiled(loaded.spec).groups for step in group.steps}
    assert "sssd" not in roles


def test_the_base_is_the_domain_of_the_host_by_default() -> None:
    assert answer(compiled(), "configure")["sssd_base"] == "dc=hpc,dc=example,dc=edu"
    result = answer(compiled("  base: ou=people,dc=org\n"), "configure")
    assert result["sssd_base"] == "ou=people,dc=org"


def test_the_password_is_a_secret_and_its_reference_is_never_printed() -> None:
    cluster = compiled(_BIND)
    secrets = {
        (step.phase, name, secret)
        for group in cluster.groups
        for step in group.steps
        if step.role == "sssd"
        for name, secret in step.secrets.items()
    }
    assert secrets == {("configure", "sssd_bind_password_file", DIRECTORY_SECRET)}
    assert "LDAP_PASSWORD" not in str(cluster)
    spec = load_text(_SPEC + _BIND).spec
    assert spec is not None
    assert provided_secrets(spec) == {DIRECTORY_SECRET: "env:LDAP_PASSWORD"}


def test_who_queries_anonymously_needs_no_secret() -> None:
    steps = [step for group in compiled().groups for step in group.steps if step.role == "sssd"]
    assert not any(step.secrets for step in steps)


def test_ids_and_probe_are_what_verify_requests() -> None:
    cluster = compiled("  ids: {min: 2000, max: 60000}\n  probe: ada\n")
    assert answer(cluster, "verify") == {
        "sssd_min_id": 2000,
        "sssd_max_id": 60000,
        "sssd_probe": "ada",
    }


@pytest.mark.parametrize(("mount", "makes"), [("/home", False), ("/data", True)])
def test_homes_that_are_served_are_not_made(mount: str, makes: bool) -> None:
    storage = f"storage: {{shared: {{type: nfs, mount: {mount}, server: head}}}}\n"
    assert answer(compiled(more=storage), "configure")["sssd_make_homes"] is makes
