"""A change under the job that holds the node for it spares every other job, and not that one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROLES = Path(__file__).parents[2] / "roles"
BATCH, EXTERN = "10 slurmstepd: [7.batch]", "11 slurmstepd: [7.extern]"
OTHER = "12 slurmstepd: [70.0]"


@pytest.mark.parametrize(
    ("steps", "granted", "busy"),
    [
        ([], "", False),
        ([BATCH], "", True),
        ([BATCH, EXTERN], "7", False),
        ([BATCH, OTHER], "7", True),
        ([OTHER], "7", True),
    ],
    ids=["idle", "a job", "the one that grants", "another beside it", "another that begins alike"],
)
def test_only_the_job_that_grants_the_change_does_not_count(
    tmp_path: Path, steps: list[str], granted: str, *, busy: bool
) -> None:
    lines = "\n".join(steps)
    pgrep = tmp_path / "pgrep"
    pgrep.write_text(f"#!/bin/sh\ncat <<END\n{lines}\nEND\n" if steps else "#!/bin/sh\nexit 1\n")
    pgrep.chmod(0o755)
    if granted:
        (tmp_path / "run/gcluster").mkdir(parents=True)
        (tmp_path / "run/gcluster/granted-job").write_text(f"{granted}\n")
    done = subprocess.run(
        [sys.executable, "-c", "import gcluster_node; print(gcluster_node.job_runs())"],
        cwd=ROLES / "package_sources/files/libexec",
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}", "GCLUSTER_NODE_ROOT": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == str(busy)
