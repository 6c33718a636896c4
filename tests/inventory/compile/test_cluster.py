"""The compiler: golden cases, and the laws that keep a cluster cheap to change."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from hypothesis import given, settings
from hypothesis import strategies as st

from gcluster.inventory.compile.steps import PHASES, Stage
from gcluster.schemas.load import load_text
from gcluster.schemas.spec import ClusterSpec, KubernetesScheduler

sys.path.insert(0, str(Path(__file__).parent))
import golden

from gcluster.inventory.compile import CompiledCluster

sys.path.pop(0)


ROLES = Path(__file__).parents[3] / "roles"


@pytest.fixture(params=golden.NAMES)
def case(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def stamps(cluster: CompiledCluster) -> dict[tuple[str, str], str]:
    """Return (host, step) -> stamp, with role files and secrets held still."""
    return {
        (host, step.key): step.digest("role", dict.fromkeys(cluster.secrets, "1"))
        for group in cluster.groups
        for host in group.hosts
        for step in group.steps
    }


def shuffled(value: Any, draw: st.DataObject) -> Any:
    """Return a YAML document with the keys of every mapping in another order."""
    if isinstance(value, dict):
        keys = draw.draw(st.permutations(list(value)))
        return {key: shuffled(value[key], draw) for key in keys}
    return [shuffled(item, draw) for item in value] if isinstance(value, list) else value


def local(count: int, **more: Any) -> ClusterSpec:
    pools = {
        "head": {"site": "here", "role": "controller"},
        "gpu": {"site": "here", "machine": "sim.h100x8", "count": count},
    }
    document = {
        "apiVersion": "gcluster/v1",
        "name": "demo",
        "sites": {"here": {"provider": "local"}},
        "pools": pools,
        "scheduler": {"type": "slurm"},
        **more,
    }
    spec = load_text(yaml.safe_dump(document)).spec
    assert spec is not None
    return spec


def test_a_case_compiles_to_what_is_written_down(case: str) -> None:
    expected = (golden.CASES / f"{case}.yaml").read_text()
    assert golden.written(golden.compiled(golden.spec_of(case))) == expected


@given(st.integers(1, 40), st.integers(1, 5))
def test_more_nodes_change_only_themselves_and_the_controller_s_configuration(
    count: int, more: int
) -> None:
    before = stamps(golden.compiled(local(count)))
    after = stamps(golden.compiled(local(count + more)))
    changed = {key for key in before if before[key] != after[key]}
    assert changed == {("head", "slurm.configure")}
    assert {host for host, _ in after.keys() - before.keys()} == {
        f"gpu{number:03d}" for number in range(count + 1, count + more + 1)
    }


def test_no_node_s_variables_name_a_compute_host(case: str) -> None:
    """But the monitoring host's, in the one step that has its scrape targets."""
    spec = golden.spec_of(case)
    names = [h.name for h in golden.inventory_of(spec).hosts if h.role == "compute"]
    for group in golden.compiled(spec).groups:
        if spec.pools[group.name].role != "controller":
            steps = [step for step in group.steps if step.key != "prometheus.join"]
            text = msgspec.json.encode([step.variables for step in steps]).decode()
            assert not [name for name in names if name in text]


@settings(max_examples=20)
@given(st.data())
@pytest.mark.parametrize("case_name", golden.NAMES)
def test_the_order_of_keys_changes_nothing(case_name: str, data: st.DataObject) -> None:
    document = yaml.safe_load((golden.CASES / "specs" / f"{case_name}.yaml").read_text())
    spec = load_text(yaml.safe_dump(shuffled(document, data), sort_keys=False)).spec
    assert spec is not None
    assert golden.written(golden.compiled(spec)) == (golden.CASES / f"{case_name}.yaml").read_text()


def test_install_is_the_same_for_every_pool_of_a_machine_type(case: str) -> None:
    """One image fits all nodes of a type only as long as this holds."""
    spec = golden.spec_of(case)
    installs: dict[str | None, set[tuple[bytes, ...]]] = {}
    for group in golden.compiled(spec).groups:
        if spec.pools[group.name].machine is None:
            continue  # hosts that exist, of whatever kind: no image is baked for them
        steps = tuple(msgspec.json.encode(s) for s in group.steps if s.phase == "install")
        installs.setdefault(spec.pools[group.name].machine, set()).add(steps)
    assert {len(found) for found in installs.values()} == {1}


def test_what_the_scheduler_needs_is_installed_alike_on_every_node(case: str) -> None:
    """Kubernetes runs no jobs on its control planes: there the nodes alone are alike."""
    spec = golden.spec_of(case)
    roles = (
        {"compute"}
        if isinstance(spec.scheduler, KubernetesScheduler)
        else {"compute", "controller", "login"}
    )
    installs = {
        tuple(
            msgspec.json.encode([step.key, step.variables])
            for step in group.steps
            if step.phase == "install" and step.role in {"munge", "slurm", "mpi", "allreduce"}
        )
        for group in golden.compiled(spec).groups
        if spec.pools[group.name].role in roles
    }
    assert len(installs) == 1


def test_controllers_come_before_logins_before_nodes(case: str) -> None:
    spec = golden.spec_of(case)
    order = [spec.pools[group.name].role for group in golden.compiled(spec).groups]
    assert order == sorted(order, key=["controller", "login", "compute"].index)


def test_steps_are_in_the_order_of_stages_and_of_a_role_s_phases(case: str) -> None:
    for group in golden.compiled(golden.spec_of(case)).groups:
        stages = [list(Stage).index(step.stage) for step in group.steps]
        assert stages == sorted(stages)
        for role in {step.role for step in group.steps}:
            phases = [PHASES.index(step.phase) for step in group.steps if step.role == role]
            assert phases == sorted(set(phases))


def test_every_phase_file_of_a_role_is_run_and_no_other(case: str) -> None:
    spec = golden.spec_of(case)
    for group in golden.compiled(spec).groups:
        for role in {step.role for step in group.steps}:
            files = {path.stem for path in (ROLES / role / "tasks").glob("*.yml")} & set(PHASES)
            phases = {step.phase for step in group.steps if step.role == role}
            if not spec.pools[group.name].is_compute and role == "slurm":
                files -= {"join"}  # only nodes register
            assert phases == files, role


def test_variables_are_as_the_role_s_phase_declares_them(case: str) -> None:
    """Ansible's own validator is used: `up` doesn't run it on each host."""
    for group in golden.compiled(golden.spec_of(case)).groups:
        for step in group.steps:
            declared = _options(step.role, step.phase)
            written = json.loads(json.dumps(step.variables))  # tuples are lists in a playbook
            given = {**written, **dict.fromkeys(step.secrets, "/run/secret")}
            assert given.keys() <= declared.keys(), step.key
            checked = ArgumentSpecValidator(declared).validate(given)
            assert checked.error_messages == [], step.key


def test_an_account_s_group_is_its_uid_by_default() -> None:
    users = [{"name": "ada", "uid": 2001}, {"name": "bob", "uid": 2002, "gid": 3000}]
    compiled = golden.compiled(local(1, users=users))
    verify = next(step for step in compiled.groups[0].steps if step.key == "base.verify")
    assert [user["gid"] for user in verify.variables["base_users"]] == [2001, 3000]


def test_the_only_secret_is_the_munge_key_and_it_is_a_reference() -> None:
    compiled = golden.compiled(local(1))
    assert compiled.secrets == ("munge",)


def _options(role: str, phase: str) -> dict[str, dict[str, Any]]:
    specs = yaml.safe_load((ROLES / role / "meta" / "argument_specs.yml").read_text())
    options: dict[str, dict[str, Any]] = specs["argument_specs"][phase]["options"]
    return options
