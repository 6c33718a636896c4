"""Hooks in the playbook: a play of their own, files where Ansible finds them, collections."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from gcluster.inventory.compile import CompiledCluster, Group, Step
from gcluster.inventory.compile.hooks import HookStep, UserRole
from gcluster.inventory.compile.steps import Stage
from gcluster.lifecycle.cluster.outcome import LifecycleError
from gcluster.lifecycle.nodes.converge.pending import Pending, pending_steps
from gcluster.lifecycle.nodes.converge.playbook import plays
from gcluster.lifecycle.nodes.converge.role_files import traces_of
from gcluster.lifecycle.nodes.converge.user_roles import (
    collection_folders,
    hook_steps,
    write_roles,
)
from gcluster.lifecycle.nodes.converge.watch import Watch

TASKS = """- name: Fail, and rescue it
  block: [{ansible.builtin.fail: {msg: on purpose}}]
  rescue: [{ansible.builtin.debug: {msg: rescued}}]
"""


def step(name: str, role: UserRole | None, **more: object) -> HookStep:
    given = {"variables": {}, "stage": Stage.BASE, "place": 1, "phase": "configure"} | more
    return HookStep(role=f"hook_{name}", hook=name, user_role=role, **given)  # type: ignore[arg-type]


PREP = step(
    "prep",
    UserRole(files={"tasks/main.yml": TASKS, "files/blob": "data:;base64,/wA="}),
    secrets={"key": "hook.prep.0.key"},
    variables={"motd_text": "theirs"},
)
OURS = Step(stage=Stage.BASE, role="base", phase="install", variables={"motd_text": "theirs"})
SCRIPT = step("cache", None, variables={"hooks_script": {"path": "/x"}}, place=-1)


def pending(*steps: Step) -> Pending:
    group = Group(name="gpu", hosts=("gpu001",), steps=steps)
    return pending_steps(CompiledCluster(cluster="demo", groups=(group,)), {}, {})


def test_a_hook_has_a_play_of_its_own_between_those_of_gcluster() -> None:
    later = Step(stage=Stage.SCHEDULER, role="munge", phase="install", variables={})
    found = plays(pending(OURS, PREP, later), {}, Path("/run/roles"))
    assert [play["name"] for play in found] == [
        "base.install",
        "hook_prep.configure",
        "munge.install",
    ]
    assert "motd_text" not in found[2]["vars"]


def test_a_role_of_the_user_has_facts_and_its_path_and_shows_nothing_where_it_has_secrets() -> None:
    (play,) = plays(pending(PREP), {"hook.prep.0.key": Path("/shm/key")}, Path("/run/roles"))
    assert play["gather_facts"] is True
    assert play["no_log"] is True
    assert play["vars"]["key"] == "{{ lookup('ansible.builtin.file', '/shm/key') }}"
    (imported,) = (task["ansible.builtin.import_role"] for task in play["tasks"][:1])
    assert imported == {"name": "/run/roles/hook_prep", "tasks_from": "main"}


def test_a_script_is_run_by_the_role_hooks_whose_files_are_in_its_stamp() -> None:
    (play,) = plays(pending(SCRIPT), {}, Path("/run/roles"))
    (imported,) = (task["ansible.builtin.import_role"] for task in play["tasks"][:1])
    assert imported == {"name": "gcluster.cluster.hooks", "tasks_from": "configure.yml"}
    assert "no_log" not in play
    assert traces_of(PREP).files == ()
    assert traces_of(SCRIPT).files


def test_hooks_come_before_or_after_the_roles_of_their_stage_whatever_their_phase() -> None:
    verify = Step(stage=Stage.BASE, role="base", phase="verify", variables={})
    order = [item.step.key for item in pending(SCRIPT, OURS, verify, PREP).steps]
    assert order == [
        "hook_cache.configure",
        "base.install",
        "base.verify",
        "hook_prep.configure",
    ]


def test_files_of_a_role_are_written_as_they_were(tmp_path: Path) -> None:
    write_roles(hook_steps(pending(PREP, SCRIPT)), tmp_path)
    assert (tmp_path / "hook_prep/files/blob").read_bytes() == b"\xff\0"
    assert (tmp_path / "hook_prep/tasks/main.yml").read_text() == TASKS
    assert not (tmp_path / "hook_cache").exists()


def test_a_file_that_leads_out_of_its_role_is_not_written(tmp_path: Path) -> None:
    out = step("out", UserRole(files={"../tasks/main.yml": ""}))
    with pytest.raises(ValueError, match=r"tasks/main\.yml"):
        write_roles([out], tmp_path / "roles")


def test_a_host_whose_failed_task_is_rescued_has_not_failed() -> None:
    watch = Watch(pending(PREP), lambda _: None)
    failed = {"host": "gpu001", "task": "Fail, and rescue it", "res": {"msg": "on purpose"}}
    watch.handle({"event": "runner_on_failed", "event_data": failed})
    assert set(watch.failures) == {"gpu001"}
    stamped = {"host": "gpu001", "task": "stamp hook_prep.configure", "res": {}}
    watch.handle({"event": "runner_on_ok", "event_data": stamped})
    assert watch.failures == {}
    assert watch.done == {"gpu001": ["hook_prep.configure"]}


@pytest.fixture
def galaxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a double of a Galaxy server, configured in ansible-galaxy: a folder of archives.

    The collection is built by ansible-galaxy itself; only the network between is left out.
    """
    source, archives = tmp_path / "acme/hpc", tmp_path / "archives"
    (source / "roles/metrics/tasks").mkdir(parents=True)
    (source / "roles/metrics/tasks/main.yml").write_text("- ansible.builtin.debug: {msg: here}\n")
    about = {"namespace": "acme", "name": "hpc", "version": "1.4.2", "readme": "README.md"}
    (source / "galaxy.yml").write_text(yaml.safe_dump(about | {"authors": ["acme"]}))
    (source / "README.md").write_text("# hpc\n")
    program = Path(sys.executable).with_name("ansible-galaxy")
    build = [program, "collection", "build", source, "--output-path", archives]
    subprocess.run(build, check=True, capture_output=True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    double = tmp_path / "bin/ansible-galaxy"
    double.parent.mkdir()
    archive = archives / "acme-hpc-1.4.2.tar.gz"
    double.write_text(
        f"""#!/bin/sh
echo called >>{tmp_path}/calls
for last; do :; done
[ "$last" = acme.hpc:==1.4.2 ] || {{ echo no such version >&2; exit 1; }}
exec {program} collection install --offline --no-deps -p "$5" {archive}
"""
    )
    double.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin/python"))
    return tmp_path


def test_a_collection_is_brought_once_in_its_version(galaxy: Path) -> None:
    wanted = step("metrics", UserRole(name="acme.hpc.metrics", collections={"acme.hpc": "1.4.2"}))
    for _ in range(2):
        (folder,) = collection_folders([wanted])
    assert (folder / "ansible_collections/acme/hpc/roles/metrics/tasks/main.yml").is_file()
    assert (galaxy / "calls").read_text() == "called\n"
    (play,) = plays(pending(wanted), {}, Path("/run/roles"))
    assert play["tasks"][0]["ansible.builtin.import_role"]["name"] == "acme.hpc.metrics"


@pytest.mark.usefixtures("galaxy")
def test_a_version_that_is_not_there_is_named_with_what_galaxy_reported() -> None:
    wanted = step("metrics", UserRole(name="acme.hpc.metrics", collections={"acme.hpc": "9.9.9"}))
    with pytest.raises(LifecycleError) as caught:
        collection_folders([wanted])
    (finding,) = caught.value.diagnostics
    assert finding.code == "GC1184"
    assert "acme.hpc 9.9.9" in finding.summary
    assert "no such version" in finding.detail
    assert os.environ["XDG_CACHE_HOME"] not in finding.summary
