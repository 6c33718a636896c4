"""Launch lines of the frameworks: their options are those that the authors publish."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from gcluster.inventory.workloads import batch_scripts
from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.load import load_text

RECIPES: dict[str, dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parents[2] / "cases/workloads/recipes.yaml").read_text(encoding="utf-8")
)
SPEC = """\
apiVersion: gcluster/v1
name: lab
sites: {campus: {provider: bare-metal, ssh: {user: ops}}}
pools:
  head: {site: campus, role: controller, hosts: mgmt01}
  train: {site: campus, machine: dgx-h100, hosts: "dgx[101-108]"}
storage: {scratch: {type: nfs, mount: /scratch, server: 10.0.0.9}}
scheduler: {type: slurm}
"""
_LITERAL = re.compile(r"[A-Za-z0-9_.]+\Z")


@pytest.fixture(scope="module")
def scripts() -> dict[str, str]:
    """Return the script of each recipe."""
    work = {name.replace(" ", "-"): each["workload"] for name, each in RECIPES.items()}
    loaded = load_text(SPEC + yaml.safe_dump({"workloads": work}))
    assert loaded.spec is not None, loaded.diagnostics
    return batch_scripts(loaded.spec, load_catalog())


def _options(words: list[str]) -> dict[str, str]:
    """Return option -> value ("": none); underscores and hyphens are the same to these programs."""
    found: dict[str, str] = {}
    for index, word in enumerate(words):
        if not re.match(r"--[a-z]", word):
            continue
        name, equals, value = word[2:].partition("=")
        after = words[index + 1] if index + 1 < len(words) else "-"
        found[name.replace("_", "-")] = value if equals or after.startswith("-") else after
    return found


def _line(script: str, words: list[str]) -> list[str]:
    """Return the words of the line that starts as the published one does."""
    head = next(i for i, word in enumerate(words) if i and word.startswith("-"))
    start = " ".join(words[: head + (words[0] == "ray")])
    joined = (" ".join(each.split()) for each in script.replace("\\\n", " ").splitlines())
    line = next(each for each in joined if each.removeprefix("exec ").startswith(start))
    return shlex.split(line.removesuffix("&"))


@pytest.mark.parametrize("name", RECIPES)
def test_the_options_are_the_published_ones_but_for_named_departures(
    name: str, scripts: dict[str, str]
) -> None:
    recipe = RECIPES[name]
    script = scripts[name.replace(" ", "-")]
    published = shlex.split(recipe["line"])
    wanted, given = _options(published), _options(_line(script, published))

    departs, adds = recipe["departs"], recipe["adds"]
    assert given.keys() - wanted.keys() == adds.keys() - wanted.keys()
    assert wanted.keys() - given.keys() <= departs.keys() <= wanted.keys()
    for option in wanted.keys() & given.keys() - departs.keys():
        if _LITERAL.match(wanted[option]) and "port" not in option and option != "rdzv-id":
            assert given[option] == wanted[option], option
    assert f"#SBATCH --ntasks-per-node={recipe['tasks_per_node']}\n" in script


def test_nccl_s_tests_are_started_as_published() -> None:
    """aws-samples/awsome-distributed-training, micro-benchmarks/nccl-tests/slurm at 01b6b78f."""
    published = (
        "--mpi=pmix --cpu-bind=none /opt/nccl-tests/build/all_reduce_perf -b 8 -e 16G -f 2 -g 1 "
        "-c 1 -n 100"
    )
    pmix, unbound, *words = published.split()
    work = {"n": {"framework": "mpi", "nodes": 2, "command": words}}
    loaded = load_text(SPEC + yaml.safe_dump({"workloads": work}))
    assert loaded.spec is not None, loaded.diagnostics
    script = batch_scripts(loaded.spec, load_catalog())["n"]

    assert f"exec {' '.join(words)}\n" in script
    assert f"  {pmix} \\\n" in script
    assert "#SBATCH --ntasks-per-node=8\n" in script
    # There a process has all cores; here its share of them, in the order of the GPUs.
    assert unbound not in script
    assert "--cpus-per-task=28 --distribution=block:block --cpu-bind=cores" in script


def test_ray_is_given_no_gpus_where_none_is_real() -> None:
    local = SPEC.replace("{provider: bare-metal, ssh: {user: ops}}", "{provider: local}")
    local = re.sub(r", hosts: mgmt01", "", local)
    local = re.sub(r'dgx-h100, hosts: "[^"]*"', "sim.h100x8, count: 4", local)
    work = {"r": RECIPES["ray head"]["workload"], "j": RECIPES["jax"]["workload"]}
    loaded = load_text(
        local.replace("server: 10.0.0.9", "server: head") + yaml.safe_dump({"workloads": work})
    )
    assert loaded.spec is not None, loaded.diagnostics
    scripts = batch_scripts(loaded.spec, load_catalog())

    assert "--num-gpus=0" in scripts["r"]
    assert "--num-gpus=8" not in scripts["r"]
    assert "#SBATCH --ntasks-per-node=1\n" in scripts["j"]


def test_a_process_of_jax_with_several_gpus_has_its_share_of_them() -> None:
    """By itself JAX gives a process under Slurm the one GPU of its number."""
    work = {"j": RECIPES["jax"]["workload"] | {"processes_per_node": 2}}
    loaded = load_text(SPEC + yaml.safe_dump({"workloads": work}))
    assert loaded.spec is not None, loaded.diagnostics
    script = batch_scripts(loaded.spec, load_catalog())["j"]

    assert "first=$((SLURM_LOCALID * 4))\n" in script
    assert 'JAX_LOCAL_DEVICE_IDS="$(seq -s, "$first" "$((first + 3))")"\n' in script


@pytest.mark.parametrize("sizes", [{"tensor": 2}, {"context": 2}, {"tensor": 1}])
@pytest.mark.parametrize("own", [None, "8"])
def test_megatron_has_the_variable_without_which_it_refuses_to_divide_layers(
    sizes: dict[str, int], own: str | None
) -> None:
    """megatron/training/arguments.py asserts it before Blackwell; the user's own value wins."""
    work = RECIPES["megatron"]["workload"] | {"parallel": {**sizes, "global_batch": 288}}
    work |= {"variables": {"CUDA_DEVICE_MAX_CONNECTIONS": own}} if own else {}
    loaded = load_text(SPEC + yaml.safe_dump({"workloads": {"m": work}}))
    assert loaded.spec is not None, loaded.diagnostics
    lines = batch_scripts(loaded.spec, load_catalog())["m"].splitlines()
    line = 'export CUDA_DEVICE_MAX_CONNECTIONS="${CUDA_DEVICE_MAX_CONNECTIONS:-1}"'

    assert (line in lines) == (max(sizes.values()) > 1)
    exports = [each for each in lines if each.startswith("export CUDA_DEVICE_MAX")]
    assert not own or exports[-1] == f"export CUDA_DEVICE_MAX_CONNECTIONS={own}"


@pytest.mark.parametrize("restarts", [0, 3])
def test_workers_that_torchrun_starts_again_have_a_store_of_their_own(restarts: int) -> None:
    """pytorch/pytorch issue 135712: the agents' store keeps the addresses of those before."""
    work = {"framework": "torchrun-elastic", "nodes": 2, "min_nodes": 1, "script": "train.py"}
    work |= {"worker_restarts": restarts}
    loaded = load_text(SPEC + yaml.safe_dump({"workloads": {"e": work}}))
    assert loaded.spec is not None, loaded.diagnostics
    script = batch_scripts(loaded.spec, load_catalog())["e"]

    assert ("export TORCH_DISABLE_SHARE_RDZV_TCP_STORE=" in script) == (restarts > 0)
    assert f"--max-restarts={restarts} " in script
