"""What slurm-check says of a node whose kernel can't keep jobs to what they were given."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

CHECK = Path(__file__).parents[2] / "roles/slurm/files/libexec/slurm-check"


def check(folder: Path, conf: str, controllers: str | None) -> subprocess.CompletedProcess[str]:
    """Check a node whose slurmd runs and that the controller counts as idle."""
    for name, script in {
        "systemctl": "echo active",
        "scontrol": "echo NodeName=n1 State=IDLE Reason=none",
    }.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    (folder / "cgroup.conf").write_text(conf)
    if controllers is not None:
        (folder / "cgroup.controllers").write_text(controllers)
    environment = {
        "PATH": f"{folder}:{os.environ['PATH']}",
        "GCLUSTER_SLURM_CACHE": str(folder),
        "GCLUSTER_CGROUPS": str(folder),
    }
    return subprocess.run(
        [CHECK, "node"], env=environment, capture_output=True, text=True, check=False
    )


def test_a_node_whose_kernel_has_the_controllers_is_fit(tmp_path: Path) -> None:
    assert check(tmp_path, "ConstrainCores=yes\n", "cpuset cpu io memory pids\n").returncode == 0


@pytest.mark.parametrize(
    ("controllers", "missing"), [("cpu io memory pids", "cpuset"), ("cpuset cpu io", "memory")]
)
def test_a_controller_that_is_missing_is_named(
    tmp_path: Path, controllers: str, missing: str
) -> None:
    done = check(tmp_path, "ConstrainCores=yes\n", controllers)
    assert (done.returncode, f"no cgroup controller {missing}" in done.stderr) == (1, True)


def test_a_container_is_not_asked_for_controllers(tmp_path: Path) -> None:
    assert check(tmp_path, "CgroupPlugin=disabled\n", "cpu").returncode == 0
