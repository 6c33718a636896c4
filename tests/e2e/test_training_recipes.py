"""Recipes of workloads on real local nodes: each framework's program runs over two of them.

PyTorch is Debian's (gloo, on processors), the rest comes from PyPI, in one environment on storage
that the nodes mount. The programs are in recipes/; what needs GPUs is not among them
(docs/recipes.md says what has not run).
"""

from __future__ import annotations

import re
import shutil
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .conftest import until
from .training_site import Lab, measured, opened

pytestmark = [pytest.mark.local, pytest.mark.training]

NODES = 2
ENVIRONMENT = "/scratch/envs/torch"
RAY = {
    "RAY_DEFAULT_OBJECT_STORE_MAX_MEMORY_BYTES": "100000000",
    # Nodes claim the processors of a machine with GPUs: Ray would start a worker for each.
    "RAY_prestart_worker_first_driver": "0",
    "RAY_enable_worker_prestart": "0",
}
FAILS_AT = 13
RECIPES: dict[str, dict[str, Any]] = {
    "accelerate": {"framework": "accelerate", "script": "tune.py"},
    "jax": {"framework": "jax", "script": "gemma.py"},
    "megatron": {
        "framework": "megatron",
        "script": "gpt.py",
        "parallel": {"tensor": 2, "global_batch": 8},
    },
    "fsdp2": {"framework": "torchrun", "script": "sharded.py"},
    "zero3": {
        "framework": "deepspeed",
        "script": "zero.py",
        "config": "zero3.json",
        "restarts": 1,
        "variables": {"DS_ACCELERATOR": "cpu", "FAILS_AT": str(FAILS_AT)},
        "checkpoint": {"to": "scratch", "every": "1h"},
    },
    "ray": {"framework": "ray", "script": "spread.py", "variables": RAY},
}
SAYS = {
    "accelerate": r"^2 processes, 4 batches each, loss 0\.000000$",
    "jax": r"^2 processes, sum 3$",
    "megatron": r"^2 processes, tensor 2, loss 3\.\d to 0\.\d$",
    "fsdp2": r"^2 processes, 353 of 706 numbers here, \d\.\de-1\d from the undivided one$",
    "zero3": r"^2 processes, ZeRO 3, 321 of 641 numbers here$",
    "ray": r"^2 workers on 2 nodes, loss 0\.000000$",
}
SENDS = (
    'folder=$GCLUSTER_CHECKPOINTS_LOCAL/step-1; mkdir "$folder"; '
    'head -c 50000000 /dev/urandom >"$folder/rank$RANK"; '
    '/usr/local/libexec/gcluster/job_launch/parts.py send "$folder"; echo "$RANK goes on"'
)
OTHERS: dict[str, dict[str, Any]] = {
    "ray-waits": {"framework": "ray", "script": "spread.py", "variables": RAY | {"WAITS": "1"}},
    "own-disks": {
        "framework": "command",
        "command": ["sh", "-c", SENDS],
        "variables": {"JOB_SCRATCH": "/tmp/own-disks"},  # noqa: S108  # of a node of its own
        "checkpoint": {"to": "scratch", "every": "1h", "local_first": True},
    },
}


@pytest.fixture(scope="module")
def lab(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, root: Path
) -> Iterator[Lab]:
    """A controller and two nodes, with what all recipes need on their storage."""
    two = {"nodes": NODES, "venv": ENVIRONMENT, "chdir": "/scratch", "account": "lab", "time": "1h"}
    workloads = {name: two | each for name, each in (RECIPES | OTHERS).items()}
    files = [root / "examples" / "first-model" / "torch-env.sh"]
    files += (each for each in (Path(__file__).parent / "recipes").iterdir() if each.is_file())
    with opened(request, tmp_path_factory.mktemp("recipes"), NODES, workloads, files) as lab:
        lab.on("gpu001", f"bash /scratch/torch-env.sh {ENVIRONMENT} 2>&1")
        _install(lab)
        yield lab


def _install(lab: Lab) -> None:
    """Put the packages of PyPI next to PyTorch; nodes trust what this machine trusts."""
    trusted = ssl.get_default_verify_paths().cafile
    if trusted:
        shutil.copy(trusted, lab.scratch / "trusted.crt")
    began = time.monotonic()
    lab.on(
        "gpu001",
        f". {ENVIRONMENT}/bin/activate; [ ! -r /scratch/trusted.crt ] || "
        "export PIP_CERT=/scratch/trusted.crt; set -e; "
        "pip install -q accelerate jax 'ray[train]' setuptools 2>&1; "
        # It looks for PyTorch when it is built, and compiles nothing so.
        "export DS_ACCELERATOR=cpu DS_BUILD_OPS=0; "
        "pip install -q --no-build-isolation deepspeed==0.19.8 2>&1; "
        # Its wheel wants an older numpy than Debian's, and works with that one.
        "pip install -q --no-deps megatron-core==0.14.0 2>&1",
    )
    measured(f"packages of PyPI after {time.monotonic() - began:.0f} s")


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_trains_on_two_nodes_to_its_end(lab: Lab, recipe: str) -> None:
    began = time.monotonic()
    job = lab.submit(recipe)
    assert lab.ends(job) == "COMPLETED", lab.log(recipe, job)[-4000:]
    said = re.search(SAYS[recipe], lab.log(recipe, job), re.MULTILINE)
    assert said, lab.log(recipe, job)[-4000:]
    measured(f"{recipe}: {said.group()} ({time.monotonic() - began:.0f} s)")


def test_zero_resumes_from_its_newest_checkpoint_with_the_same_losses(lab: Lab) -> None:
    """The run of the test before: it crashed after step 13, and steps 11 to 13 were done again."""
    (path,) = lab.scratch.glob("zero3-*.log")
    job = path.stem.rpartition("-")[2]
    said = lab.log("zero3", job)
    assert "attempt 0 ended with exit code" in said
    assert "resuming from /scratch/checkpoints/zero3/step-10\n" in said
    curve = lab.losses("zero3", job)  # of a step that was done twice both are the same
    assert sorted(curve) == list(range(1, 21))
    assert float(curve[20]) < float(curve[1])
    assert len(re.findall(r"^step \d+ loss", said, re.MULTILINE)) == 20 + FAILS_AT - 10


def test_a_cancelled_ray_job_leaves_no_process(lab: Lab) -> None:
    job = lab.submit("ray-waits")
    until(lambda: "waits" in lab.log("ray-waits", job), 240)
    nodes = lab.nodes(job)
    left = "pgrep -a -f '[/]ray/|[r]ay::|[r]aylet|[g]cs_server' || true"
    until(lambda: all("RayTrainWorker" in lab.on(node, left) for node in nodes), 240)
    lab.on("head", f"scancel {job}")
    assert lab.ends(job) == "CANCELLED"
    began = time.monotonic()
    until(lambda: not any(lab.on(node, left) for node in nodes), 60)
    measured(f"ray: no process {time.monotonic() - began:.0f} s after the end of a cancelled job")


def test_parts_of_a_checkpoint_come_from_two_nodes_own_disks(lab: Lab) -> None:
    job = lab.submit("own-disks")
    assert lab.ends(job) == "COMPLETED", lab.log("own-disks", job)[-4000:]
    said = lab.log("own-disks", job)
    folder = "/scratch/checkpoints/own-disks"
    complete = re.search(rf"step-1 is complete in {folder} .*\n", said)
    assert complete, said
    newest = f"/usr/local/libexec/gcluster/job-checkpoint.py newest {folder}"
    assert lab.on("gpu001", newest) == f"{folder}/step-1"
    files = {each.name for each in (lab.scratch / "checkpoints/own-disks/step-1").iterdir()}
    assert files == {"rank0", "rank1", "MANIFEST.json"}
    for node in ("gpu001", "gpu002"):
        assert not lab.on(node, "ls /tmp/own-disks/checkpoints")
    measured(f"own disks: {complete.group().strip()}")
