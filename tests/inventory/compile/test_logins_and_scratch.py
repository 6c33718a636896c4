"""Who logs in to machines, and where jobs have scratch: people with a job, and admins."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from gcluster.inventory.compile.steps import Step
from gcluster.schemas.load import load_text

sys.path.insert(0, str(Path(__file__).parent))
import golden

sys.path.pop(0)

_SPEC = """\
apiVersion: gcluster/v1
name: demo
sites: {dc: {provider: bare-metal, ssh: {user: ops}}}
pools:
  head: {site: dc, role: controller, hosts: head}
  gpu: {site: dc, machine: dgx-h100, hosts: "gpu[1-2]"}
"""
_LOCAL = """\
apiVersion: gcluster/v1
name: demo
sites: {here: {provider: local}}
pools:
  head: {site: here, role: controller}
  gpu: {site: here, machine: sim.h100x8, count: 2}
"""


def steps(scheduler: str = "", more: str = "", spec: str = _SPEC) -> dict[str, list[Step]]:
    """Return pool -> its steps."""
    loaded = load_text(f"{spec}scheduler: {{type: slurm{scheduler}}}\n{more}")
    assert loaded.spec is not None, loaded.diagnostics
    return {group.name: list(group.steps) for group in golden.compiled(loaded.spec).groups}


def phases(of: list[Step]) -> dict[str, Any]:
    return {step.phase: step.variables for step in of if step.role == "pam_slurm_adopt"}


def test_compute_machines_request_jobs_and_controllers_don_t() -> None:
    found = steps()
    assert phases(found["gpu"]) == {
        "install": {"pam_slurm_adopt_slurm_version": "25.11.8"},
        "configure": {},
        "verify": {},
    }
    assert phases(found["head"]) == {}


def test_containers_request_none() -> None:
    assert phases(steps(spec=_LOCAL)["gpu"]) == {}


def test_administrators_of_the_list_and_of_a_directory_need_no_job() -> None:
    listed = "users: [{name: ada, uid: 2001}, {name: grace, uid: 2002, sudo: true}]\n"
    assert phases(steps(more=listed)["gpu"])["configure"] == {"pam_slurm_adopt_users": ["grace"]}
    directory = "users: {source: sssd, ldap: ldaps://d.example.edu, admin_groups: [hpc-admins]}\n"
    assert phases(steps(more=directory)["gpu"])["configure"] == {
        "pam_slurm_adopt_groups": ["hpc-admins"]
    }


def test_removing_the_rule_of_logins_restores_the_stack() -> None:
    nobody = {"pam_slurm_adopt_jobs_only": False}
    found = phases(steps(", node_logins: any")["gpu"])
    assert found == {"configure": nobody, "verify": nobody}


def slurm(of: list[Step]) -> dict[str, Any]:
    (found,) = [s.variables for s in of if (s.role, s.phase) == ("slurm", "configure")]
    return found


def test_nodes_have_the_scratch_and_controllers_its_task_prolog() -> None:
    found = steps(", job_scratch: /local")
    assert slurm(found["gpu"])["slurm_scratch"] == "/local"
    assert slurm(found["head"])["slurm_task_prolog"].endswith("/task-prolog.sh")
    assert "slurm_scratch" not in slurm(found["head"])


def test_without_scratch_and_on_containers_there_is_none() -> None:
    assert "slurm_scratch" not in slurm(steps()["gpu"])
    local = steps(", job_scratch: /local", spec=_LOCAL)
    assert "slurm_scratch" not in slurm(local["gpu"])
    assert "slurm_task_prolog" not in slurm(local["head"])


def controller(more: str = "", **of: str) -> dict[str, Any]:
    """Return the variables of role slurm's controller."""
    (step,) = (s for s in steps(more=more, **of)["head"] if s.key == "slurm.configure")
    return step.variables


@pytest.mark.parametrize(
    ("slurm", "private_tmp", "flags"),
    [
        (
            "distribution, distribution: el-9, driver: preinstalled",
            None,
            ["Alloc", "Contain", "DeferBatch"],
        ),
        (
            '"24.11.5"',
            "JobContainerType=job_container/tmpfs",
            ["Alloc", "Contain", "DeferBatch", "ForceRequeueOnFail"],
        ),
        (
            '"25.11.8"',
            "NamespaceType=namespace/tmpfs",
            ["Alloc", "Contain", "DeferBatch", "ForceRequeueOnFail"],
        ),
    ],
)
def test_jobs_get_folders_of_their_own_as_their_slurm_calls_it(
    slurm: str, private_tmp: str | None, flags: list[str]
) -> None:
    answer = controller(f"software: {{slurm: {slurm}}}\n")
    assert (answer.get("slurm_private_tmp"), answer["slurm_prolog_flags"]) == (private_tmp, flags)


def test_the_folders_of_jobs_lie_on_local_disks_where_a_pool_has_them() -> None:
    slurm = 'software: {slurm: "24.11.5"}\n'
    scratch = (
        "storage: {scratch: {type: local-nvme, mount: /scratch, pools: [gpu], format: true}}\n"
    )
    assert "slurm_job_tmp_folders" not in controller(slurm)
    folders = controller(slurm + scratch)["slurm_job_tmp_folders"]
    assert folders == {"gpu": "/scratch/job-tmp"}


def test_jobs_of_pyxis_share_the_node_s_tmp() -> None:
    assert "slurm_private_tmp" not in controller("software: {containers: pyxis}\n")


def test_containers_are_reported_neither_to_mount_nor_to_restart() -> None:
    answer = controller(spec=_LOCAL)
    assert not {"slurm_private_tmp", "slurm_reboot_timeout"} & answer.keys()
