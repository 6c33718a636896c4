"""Workers of torchrun run on the cores next to their GPUs: the program that binds them, run."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from gcluster.inventory.workloads import batch_scripts
from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.load import load_text

SPEC = """\
apiVersion: gcluster/v1
name: lab
sites: {campus: {provider: bare-metal, ssh: {user: ops}}}
pools:
  head: {site: campus, role: controller, hosts: mgmt01}
  train: {site: campus, machine: %s, hosts: "gpu[01-04]"}
scheduler: {type: slurm}
workloads:
  llm: {framework: torchrun, nodes: 2, script: train.py}
"""
KFD = """\
cpu_cores_count 0
simd_count %d
location_id %d
domain %d
"""
"""What the kernel has of a node of its topology (drivers/gpu/drm/amd/amdkfd/kfd_topology.c): a
processor has no SIMDs; a GPU's location is its bus, device and function on PCI."""


def binder(machine: str, system: Path) -> str:
    """Return the lines of a machine's script that bind a worker; `system` takes the place of /sys.

    They end with a worker that prints the cores it may use.
    """
    spec = load_text(SPEC % machine).spec
    assert spec is not None
    script = batch_scripts(spec, load_catalog())["llm"]
    assert 'bash -c "$near_gpu" near_gpu python3 -u' in script
    start, end = script.index("near_gpu=$("), script.index("\nexport near_gpu")
    shown = "import os; print(sorted(os.sched_getaffinity(0)))"
    lines = script[start:end].replace("/sys/", f"{system}/")
    return f"{lines}\nexec bash -c \"$near_gpu\" near_gpu python3 -c '{shown}'\n"


def run(text: str, rank: int, folder: Path) -> str:
    """Run the lines as the worker of a rank; programs of `folder` come first."""
    environment = {"PATH": f"{folder}:{os.environ['PATH']}", "LOCAL_RANK": str(rank)}
    done = subprocess.run(
        ["bash", "-c", text], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def device(system: Path, bus: str, cores: str) -> None:
    """Write a device of PCI with the cores that are next to it."""
    folder = system / "bus/pci/devices" / bus
    folder.mkdir(parents=True)
    (folder / "local_cpulist").write_text(cores + "\n", encoding="utf-8")


CORES = sorted(os.sched_getaffinity(0))


@pytest.fixture
def system(tmp_path: Path) -> Path:
    """Return what takes the place of /sys: two GPUs, next to the first and the last core."""
    system = tmp_path / "sys"
    device(system, "0000:1b:00.0", str(CORES[0]))
    device(system, "0001:e5:00.1", str(CORES[-1]))
    nodes = system / "class/kfd/kfd/topology/nodes"
    # A processor; by its number, and not by its name, node 10 is the second GPU.
    for node, values in {0: (0, 0, 0), 2: (1216, 0x1B00, 0), 10: (1216, 0xE501, 1)}.items():
        (nodes / str(node)).mkdir(parents=True)
        (nodes / str(node) / "properties").write_text(KFD % values, encoding="utf-8")
    nvidia = tmp_path / "nvidia-smi"
    nvidia.write_text(
        "#!/bin/sh\ncase $1 in --id=0) echo 00000000:1B:00.0;; --id=1) echo 00000001:E5:00.1;; "
        "*) exit 6;; esac\n",
        encoding="utf-8",
    )
    nvidia.chmod(0o755)
    return system


@pytest.mark.parametrize("machine", ["dgx-h100", "mi300x-8"])
def test_a_worker_runs_on_the_cores_next_to_its_gpu(
    machine: str, system: Path, tmp_path: Path
) -> None:
    text = binder(machine, system)
    assert run(text, 0, tmp_path) == str(CORES[:1])
    assert run(text, 1, tmp_path) == str(CORES[-1:])


@pytest.mark.parametrize("machine", ["dgx-h100", "mi300x-8"])
def test_a_worker_whose_gpu_is_not_found_has_all_its_cores(
    machine: str, system: Path, tmp_path: Path
) -> None:
    assert run(binder(machine, system), 2, tmp_path) == str(CORES)
