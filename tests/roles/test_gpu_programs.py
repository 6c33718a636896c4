"""The programs of the GPU software's roles, asked without nodes: recorded machines, real make."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SHARED = ROOT / "roles/package_sources/files/libexec"
PLAYER = (ROOT / ".config/molecule/doubles/play-recording").read_text()
MAKEFILE = """\
.RECIPEPREFIX = >
build/all_reduce_perf:
> mkdir -p build
> echo $(NVCC_GENCODE) > $@
"""
EXPECTED: dict[str, Any] = {
    "amd_gpu": {"rocm": "6.4.4", "gpus": 8},
    "dcgm": {"version": "4.5.1", "gpus": 8},
}


def program(role: str, name: str) -> Path:
    return ROOT / "roles" / role / "files/libexec" / name


def run(
    argv: list[str], tools: Path, asked: object = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a program as on a node, with these tools before its own."""
    path = {"PATH": f"{tools}:{os.environ['PATH']}", "PYTHONPATH": str(SHARED)}
    return subprocess.run(
        argv,
        input=json.dumps(asked),
        env=path | {"PYTHONDONTWRITEBYTECODE": "1"} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    return folder


def verified(tmp_path: Path, tools: Path, role: str, case: str) -> str:
    """Return what verify says where a case's recordings answer; nothing when all is well."""
    played = tmp_path / "recordings"
    played.symlink_to(ROOT / "molecule" / role / "recordings")
    player = PLAYER.replace("/usr/local/lib/recordings", str(played))
    player = player.replace('(RECORDINGS / "case").read_text().strip()', repr(case))
    for path in (played / case).iterdir():
        (tools / path.name).write_text(player)
        (tools / path.name).chmod(0o755)
    (tools / "systemctl").write_text("#!/bin/sh\n")
    (tools / "systemctl").chmod(0o755)
    state = program(role, f"{role.replace('_', '-')}-state")
    ran = run([sys.executable, str(state), "verify"], tools, EXPECTED[role])
    assert (ran.returncode == 0) == (not ran.stderr), ran.stderr
    return ran.stderr


@pytest.mark.parametrize(
    ("role", "case", "told"),
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
    ],
)
def test_a_machine_that_is_not_as_asked_is_told(
    tmp_path: Path, tools: Path, role: str, case: str, told: str
) -> None:
    assert told in verified(tmp_path, tools, role, case)


@pytest.mark.parametrize("role", EXPECTED)
def test_a_good_machine_is_left_in_peace(tmp_path: Path, tools: Path, role: str) -> None:
    assert verified(tmp_path, tools, role, "good") == ""


def source_for(tmp_path: Path, code: str) -> dict[str, Any]:
    """Return what is asked of the builder, with a tarball of that shape."""
    source = tmp_path / "nccl-tests-2.17.6"
    source.mkdir(exist_ok=True)
    (source / "Makefile").write_text(MAKEFILE)
    with tarfile.open(tmp_path / "tests.tar.gz", "w:gz") as tarball:
        tarball.add(source, arcname=source.name)
    make = {"NVCC_GENCODE": code, "MPI_HOME": "/usr/lib/openmpi"}
    return {
        "name": "nccl-tests", "tarball": str(tmp_path / "tests.tar.gz"), "library": "nvidia",
        "into": str(tmp_path / "nccl-tests"), "headers": "", "make": make,
    }  # fmt: skip


def test_the_tests_are_built_once_and_again_for_other_gpus(tmp_path: Path, tools: Path) -> None:
    build = [sys.executable, str(program("nccl", "build-collective-tests")), "build"]
    made = tmp_path / "nccl-tests/bin/all_reduce_perf"

    assert run(build, tools, source_for(tmp_path, "sm_90")).stdout
    assert made.read_text() == "sm_90\n"
    again = run(build, tools, source_for(tmp_path, "sm_90"))
    assert (again.returncode, again.stdout) == (0, "")
    assert run(build, tools, source_for(tmp_path, "sm_100")).stdout
    assert made.read_text() == "sm_100\n"


def test_tests_that_can_not_be_built_leave_the_old_ones(tmp_path: Path, tools: Path) -> None:
    build = [sys.executable, str(program("nccl", "build-collective-tests")), "build"]
    run(build, tools, source_for(tmp_path, "sm_90"))
    (tools / "make").write_text("#!/bin/sh\necho 'no nvcc here'\nexit 2\n")
    (tools / "make").chmod(0o755)

    failed = run(build, tools, source_for(tmp_path, "sm_100"))

    assert failed.returncode != 0
    assert "no nvcc here" in failed.stderr
    assert (tmp_path / "nccl-tests/bin/all_reduce_perf").read_text() == "sm_90\n"


def test_a_job_is_given_what_it_does_not_say_itself(tmp_path: Path, tools: Path) -> None:
    given = tmp_path / "given"
    given.mkdir()
    (given / "nccl").write_text("# head\nNCCL_A=1;2,3\nNCCL_B=x\nLD_LIBRARY_PATH+=/plugin\n")
    text = program("nccl", "job-environment").read_text()
    script = text.replace("/etc/gcluster/job-environment.d", str(given))

    ran = run(["sh", "-c", script], tools, NCCL_B="mine", LD_LIBRARY_PATH="/mine")

    assert ran.stdout.splitlines() == [
        "export NCCL_A=1;2,3",
        "export LD_LIBRARY_PATH=/plugin:/mine",
    ]
