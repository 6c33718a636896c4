"""The bundle of a pool: the same bytes each time, all roles that it needs, and no secret."""

from __future__ import annotations

import io
import json
import tarfile

from gcluster.inventory.compile import CompiledCluster, Group
from gcluster.inventory.compile.steps import Stage, Step
from gcluster.lifecycle.nodes.converge.pending import step_digests
from gcluster.lifecycle.operations.gitops.pull.bundle import PoolBundle, pool_bundles

VERSIONS = {"munge": "munge@1.abc"}
INSTALL = Step(stage=Stage.SCHEDULER, role="munge", phase="install", variables={})
KEY = Step(
    stage=Stage.SCHEDULER,
    role="munge",
    phase="configure",
    variables={},
    secrets={"munge_key_file": "munge"},
)
VERIFY = Step(stage=Stage.SCHEDULER, role="munge", phase="verify", variables={})
GPU = Group(name="gpu", hosts=("gpu001", "gpu002"), steps=(INSTALL, KEY, VERIFY))
CLUSTER = CompiledCluster(cluster="demo", groups=(GPU,))


def bundle(*hosts: str) -> PoolBundle:
    group = Group(name="gpu", hosts=hosts or GPU.hosts, steps=GPU.steps)
    compiled = CompiledCluster(cluster="demo", groups=(group,))
    return pool_bundles(compiled, ["gpu"], VERSIONS)[0]


def contents(made: PoolBundle) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(made.content)) as tar:
        files = [entry for entry in tar.getmembers() if entry.isfile()]
        return {entry.name: tar.extractfile(entry).read() for entry in files}  # type: ignore[union-attr]


def test_it_has_the_same_bytes_however_many_nodes_there_are() -> None:
    assert bundle().content == bundle("a", "b", "c").content


def test_its_digests_are_the_stamps_that_up_searches_for() -> None:
    wanted = {step.key: digest for step, digest in step_digests(GPU, VERSIONS)}
    assert {step["key"]: step["digest"] for step in bundle().steps} == wanted


def test_steps_with_a_secret_are_left_to_ssh() -> None:
    made = bundle()
    assert {step["key"]: step["pushed"] for step in made.steps} == {
        "munge.install": False,
        "munge.configure": True,
        "munge.verify": False,
    }
    assert set(json.loads(contents(made)["plays.json"])) == {"munge.install", "munge.verify"}


def test_it_brings_the_roles_that_it_runs_and_no_other() -> None:
    roles = {name.split("/")[4] for name in contents(bundle()) if "/roles/" in name}
    assert roles == {"munge"}


def test_it_brings_the_modules_that_its_roles_call_and_what_those_import() -> None:
    plugins = {name.split("/", 4)[4] for name in contents(bundle()) if "/plugins/modul" in name}
    assert plugins == {"modules/managed_files.py", "module_utils/files.py"}
