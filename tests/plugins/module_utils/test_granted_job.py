"""A change under the job that holds the node for it spares every other job, and not that one."""

from __future__ import annotations

from pathlib import Path

import pytest
import running

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
    tmp_path: Path,
    tools: Path,
    monkeypatch: pytest.MonkeyPatch,
    steps: list[str],
    granted: str,
    *,
    busy: bool,
) -> None:
    lines = "\n".join(steps)
    answer = f"#!/bin/sh\ncat <<END\n{lines}\nEND\n" if steps else "#!/bin/sh\nexit 1\n"
    running.put_program(tools / "pgrep", answer)
    if granted:
        (tmp_path / "run/gcluster").mkdir(parents=True)
        (tmp_path / "run/gcluster/granted-job").write_text(f"{granted}\n")
    monkeypatch.setenv("GCLUSTER_NODE_ROOT", str(tmp_path))
    assert running.module_util("node").job_runs() == busy
