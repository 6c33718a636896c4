"""The modules of the GPU software's roles: recorded machines, real make."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest
from recorded_machine import Machine
from running import module

MAKEFILE = """\
.RECIPEPREFIX = >
build/all_reduce_perf:
> mkdir -p build
> echo $(NVCC_GENCODE) > $@
"""
AMD: dict[str, Any] = {"rocm": "6.4.4", "gpus": 8}
DCGM: dict[str, Any] = {"version": "4.5.1", "gpus": 8}
NVIDIA: dict[str, Any] = {
    "version": "595.58.03", "gpus": 8, "mig": "disabled", "ecc": "enabled",
    "fabric_manager": "595.58.03", "fabric": "required", "services": ["nvidia-persistenced"],
}  # fmt: skip
MODULES: dict[str, tuple[str, dict[str, Any]]] = {
    "amd_gpu": ("amd_gpu", AMD | {"state": "verified"}),
    "dcgm": ("dcgm_check", DCGM),
    "nvidia_driver": ("nvidia_gpu", NVIDIA | {"state": "verified"}),
}
"""Role -> its module and what it verifies."""


@pytest.mark.parametrize(
    ("role", "case", "message"),
    [
        ("amd_gpu", "gpu-lost", "7 GPUs answer, not 8"),
        ("amd_gpu", "link-lost", "GPUs 2 and 5 are joined by PCIE ENABLED, not by XGMI"),
        ("amd_gpu", "mixed-firmware", "firmware PM differs: 00.85.121.00 on"),
        ("amd_gpu", "old-driver", "driver 6.10.5 runs, not the installed 6.12.12"),
        ("amd_gpu", "old-rocm", "ROCm is 6.4.3, not 6.4.4"),
        ("amd_gpu", "no-driver", "Unable to detect any GPU devices"),
        ("dcgm", "gpu-lost", "sees 7 GPUs, not 8"),
        ("dcgm", "old-engine", "the host engine is 4.4.2, not 4.5.1"),
        ("dcgm", "no-engine", "the host engine doesn't answer"),
        ("nvidia_driver", "gpu-lost", "7 GPUs answer, not 8"),
        ("nvidia_driver", "no-persistence", "persistence mode Disabled"),
        ("nvidia_driver", "fabric-not-ready", "the NVLink fabric is not ready"),
        ("nvidia_driver", "closed-module", "isn't the open one"),
        ("nvidia_driver", "old-driver", "runs driver 580.126.16, not 595.58.03"),
    ],
)
def test_verification_names_what_is_not_as_wanted(
    machine: Machine, role: str, case: str, message: str
) -> None:
    machine.play(role, case)
    module, requested = MODULES[role]
    result = machine.call(module, requested)
    assert result["failed"]
    assert message in result["msg"]
    assert "\n".join(result["differences"]) == result["msg"]


@pytest.mark.parametrize("role", MODULES)
def test_a_machine_that_is_as_wanted_passes_unchanged(machine: Machine, role: str) -> None:
    machine.play(role, "good")
    module, requested = MODULES[role]
    result = machine.call(module, requested)
    assert (result["failed"], result["changed"]) == (False, False), result


def test_another_driver_is_loaded_but_never_under_a_job(machine: Machine) -> None:
    machine.play("nvidia_driver", "old-driver")
    due = ["driver 595.58.03 instead of 580.126.16"]

    checked = machine.call("nvidia_gpu", NVIDIA, check=True)
    assert (checked["changed"], checked["changes"]) == (True, due)

    machine.tool("pgrep", "echo '10 slurmstepd: [7.batch]'")
    refused = machine.call("nvidia_gpu", NVIDIA)
    assert refused["msg"] == f"a job runs here: not changed: {due[0]}"

    machine.tool("pgrep", "exit 1")
    loaded = machine.call("nvidia_gpu", NVIDIA)
    assert (loaded["failed"], loaded["changes"]) == (False, due), loaded


def test_an_amd_driver_is_not_exchanged_under_a_job(machine: Machine) -> None:
    machine.play("amd_gpu", "old-driver")
    machine.tool("pgrep", "echo '10 slurmstepd: [7.batch]'")
    refused = machine.call("amd_gpu", AMD)
    assert refused["msg"] == "a job runs here: the driver was not changed"
    assert machine.call("amd_gpu", AMD, check=True)["changes"] == [
        "amdgpu 6.12.12 instead of 6.10.5"
    ]


def test_an_amd_driver_is_exchanged_while_the_exporter_of_its_gpus_is_stopped(
    machine: Machine, tmp_path: Path
) -> None:
    log = tmp_path / "calls"
    machine.play("amd_gpu", "old-driver")
    machine.tool("pgrep", "exit 1")
    machine.tool("systemctl", f'echo "systemctl $*" >> {log}')
    machine.tool("modprobe", f'echo "modprobe $*" >> {log}')
    machine.call("amd_gpu", AMD)

    made = [line for line in log.read_text().splitlines() if "is-active" not in line]
    assert made == [
        "systemctl stop amd-metrics-exporter",
        "systemctl stop gpuagent",
        "modprobe --remove amdgpu",
        "modprobe amdgpu",
        "systemctl start gpuagent",
        "systemctl start amd-metrics-exporter",
    ]


def test_gdrcopy_loads_a_missing_module_though_a_job_runs(machine: Machine) -> None:
    machine.play("gdrcopy", "good")
    machine.tool("pgrep", "echo '10 slurmstepd: [7.batch]'")
    result = machine.call("gdrcopy", {"version": "2.5.2"})
    assert result["changes"] == ["gdrdrv 2.5.2 instead of none"], result

    machine.file("sys/module/gdrdrv/version", "2.4.1\n")
    refused = machine.call("gdrcopy", {"version": "2.5.2"})
    assert refused["msg"] == "gdrdrv 2.4.1 runs and a job may use it: not changed"


def sources_for(tmp_path: Path, code: str) -> dict[str, Any]:
    """Return the builder's calls, with a tarball of that shape."""
    source = tmp_path / "nccl-tests-2.17.6"
    source.mkdir(exist_ok=True)
    (source / "Makefile").write_text(MAKEFILE)
    with tarfile.open(tmp_path / "tests.tar.gz", "w:gz") as tarball:
        tarball.add(source, arcname=source.name)
    make = {"NVCC_GENCODE": code, "MPI_HOME": "/usr/lib/openmpi"}
    return {
        "name": "nccl-tests", "tarball": str(tmp_path / "tests.tar.gz"), "library": "nvidia",
        "into": str(tmp_path / "nccl-tests"), "make": make,
    }  # fmt: skip


def test_the_tests_are_built_once_and_again_for_other_gpus(
    machine: Machine, tmp_path: Path
) -> None:
    made = tmp_path / "nccl-tests/bin/all_reduce_perf"

    assert machine.call("nccl_tests", sources_for(tmp_path, "sm_90"), check=True)["changed"]
    assert not made.exists()
    assert machine.call("nccl_tests", sources_for(tmp_path, "sm_90"))["changed"]
    assert made.read_text() == "sm_90\n"
    assert not machine.call("nccl_tests", sources_for(tmp_path, "sm_90"))["changed"]
    assert machine.call("nccl_tests", sources_for(tmp_path, "sm_100"))["changed"]
    assert made.read_text() == "sm_100\n"


def test_tests_that_can_not_be_built_leave_the_old_ones(machine: Machine, tmp_path: Path) -> None:
    machine.call("nccl_tests", sources_for(tmp_path, "sm_90"))
    machine.tool("make", "echo 'no nvcc here'; exit 2")

    result = machine.call("nccl_tests", sources_for(tmp_path, "sm_100"))

    assert result["failed"]
    assert "no nvcc here" in result["msg"]
    assert (tmp_path / "nccl-tests/bin/all_reduce_perf").read_text() == "sm_90\n"


@pytest.mark.parametrize(
    ("case", "answer"),
    [
        ("good", ""),
        ("missing-rows", "has no numbers for 16777216, 33554432 B"),
        ("wrong-numbers", "gives wrong numbers, or didn't check them"),
        ("aborted", "an AllReduce in the node fails"),
    ],
)
def test_an_allreduce_in_the_node_is_read_row_by_row(
    machine: Machine, tmp_path: Path, case: str, answer: str
) -> None:
    machine.play("nccl", case)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/bin").symlink_to(str(shutil.which("all_reduce_perf")).rpartition("/")[0])
    requested = {"vendor": "nvidia", "version": "2.30.4-1", "gpus": 8}
    result = machine.call("nccl_check", requested | {"tests": str(tmp_path / "tests")})
    assert result["failed"] == bool(answer), result
    assert answer in result.get("msg", "")


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("good", ""),
        ("umd", ""),  # "CUDA UMD version": so from driver 610 on
        ("old-driver", "the driver runs CUDA up to 12.8, so no program of CUDA 13"),
    ],
)
def test_which_cuda_a_driver_runs_is_read_of_each_generation_s_words(
    machine: Machine, case: str, message: str
) -> None:
    machine.play("cuda", case)
    assert module("cuda_toolkit").driver_differences("13") == ([message] if message else [])
