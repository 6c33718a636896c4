"""The program of checkpoints: complete ones are found and kept, torn ones are skipped and named."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "roles/slurm/files/libexec/job-checkpoint.py"
SQUEUE = """\
#!/bin/sh
# A double of squeue: job 7 runs, and 77, the controller of job 8 is silent, others have ended.
case $* in
*--jobs=5) # it has ended, and while that is looked up job 4 takes the folder
    echo 4 > checkpoints/.job.4 && mv checkpoints/.job.4 checkpoints/.job; exit 0 ;;
*--jobs=7*) echo RUNNING ;;
*--jobs=8) echo "slurm_load_jobs error: Unable to contact slurm controller" >&2; exit 1 ;;
*) echo "slurm_load_jobs error: Invalid job id specified" >&2; exit 1 ;;
esac
"""


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """Return a folder for checkpoints."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "squeue").write_text(SQUEUE, encoding="utf-8")
    (programs / "squeue").chmod(0o755)
    return tmp_path / "checkpoints"


def call(saved: Path, *words: str, job: str = "") -> subprocess.CompletedProcess[str]:
    path = f"{saved.parent / 'bin'}:{os.environ['PATH']}"
    environment = {"PATH": path, **({"SLURM_JOB_ID": job} if job else {})}
    return subprocess.run(
        [sys.executable, PROGRAM, *words],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        cwd=saved.parent,
    )


def written(saved: Path, number: int, *, text: str = "weights", complete: bool = True) -> Path:
    folder = saved / f"step-{number}"
    (folder / "rank0").mkdir(parents=True)
    (folder / "rank0" / "a.distcp").write_text(text * 100, encoding="utf-8")
    (folder / ".metadata").write_text(text, encoding="utf-8")
    if complete:
        assert call(saved, "commit", str(folder), "--keep", "9").returncode == 0
    return folder


def test_the_newest_complete_checkpoint_is_found_by_its_number_and_none_where_none_is(
    saved: Path,
) -> None:
    assert call(saved, "newest", str(saved)).stdout == "\n"
    for number in (9, 100, 20):
        written(saved, number)

    found = call(saved, "newest", str(saved))

    assert (found.stdout, found.stderr) == (f"{saved}/step-100\n", "")


def test_torn_checkpoints_are_skipped_with_the_reason(saved: Path) -> None:
    good = written(saved, 1)
    (written(saved, 3) / ".metadata").unlink()
    (written(saved, 4) / "rank0" / "a.distcp").write_text("short", encoding="utf-8")
    changed = written(saved, 5) / "rank0" / "a.distcp"
    changed.write_text(changed.read_text(encoding="utf-8").replace("w", "W"), encoding="utf-8")
    (written(saved, 6) / "more").write_text("", encoding="utf-8")
    (written(saved, 7) / "MANIFEST.json").write_text('{"files": [', encoding="utf-8")
    (written(saved, 8) / "link").symlink_to("/etc/passwd")

    written(saved, 2, complete=False)

    found = call(saved, "newest", str(saved))

    assert found.stdout == f"{good}\n"
    reasons = {line.split()[1]: line for line in found.stderr.splitlines()}
    assert list(reasons) == [f"step-{number}" for number in range(8, 1, -1)]
    assert "no manifest" in reasons["step-2"]
    assert ".metadata is missing" in reasons["step-3"]
    assert "5 bytes of 700" in reasons["step-4"]
    assert "content of rank0/a.distcp has changed" in reasons["step-5"]
    assert "more is not in its manifest" in reasons["step-6"]
    assert "can't be read" in reasons["step-7"]
    assert "no file of its own" in reasons["step-8"]


def test_a_commit_keeps_the_newest_and_what_is_being_written_after_them(saved: Path) -> None:
    for number in (1, 2, 3):
        written(saved, number)
    written(saved, 4, complete=False)
    written(saved, 6, complete=False)
    (saved / "notes").mkdir()

    committed = written(saved, 5, complete=False)
    assert call(saved, "commit", str(committed), "--keep", "2").returncode == 0

    assert sorted(each.name for each in saved.iterdir()) == ["notes", "step-3", "step-5", "step-6"]


@pytest.mark.parametrize(
    ("name", "reason"), [("final", "ends with its number"), ("step-1", "holds no file")]
)
def test_what_is_no_checkpoint_is_not_committed(saved: Path, name: str, reason: str) -> None:
    (saved / name).mkdir(parents=True)
    refused = call(saved, "commit", str(saved / name))
    assert refused.returncode == 1
    assert reason in refused.stderr


@pytest.mark.parametrize(
    ("owner", "status", "reason"),
    [("7", 1, "used by job 7"), ("8", 1, "unknown"), ("6", 0, ""), ("9", 0, ""), ("junk", 0, "")],
)
def test_a_folder_is_one_job_s_until_that_has_ended(
    saved: Path, owner: str, status: int, reason: str
) -> None:
    saved.mkdir()
    (saved / ".job").write_text(owner, encoding="utf-8")

    answer = call(saved, "open", str(saved), job="9")

    assert answer.returncode == status
    assert reason in answer.stderr
    assert (saved / ".job").read_text(encoding="utf-8").strip() == ("9" if status == 0 else owner)


def test_of_two_jobs_that_start_at_once_one_gets_the_folder(saved: Path) -> None:
    saved.mkdir()
    (saved / ".job").write_text("5\n", encoding="utf-8")

    answer = call(saved, "open", str(saved), job="9")

    assert answer.returncode == 1
    assert f"{saved} was taken by job 4 at this moment" in answer.stderr
    assert {file.name: file.read_text().strip() for file in saved.iterdir()} == {".job": "4"}


def test_of_jobs_that_all_start_in_a_new_folder_one_gets_it(saved: Path) -> None:
    running = [
        subprocess.Popen(
            [sys.executable, PROGRAM, "open", str(saved)],
            env={"PATH": f"{saved.parent / 'bin'}:{os.environ['PATH']}", "SLURM_JOB_ID": "7" * n},
            stderr=subprocess.DEVNULL,
        )
        for n in range(1, 5)
    ]
    assert sorted(each.wait() for each in running) == [0, 1, 1, 1]
    assert [file.name for file in saved.iterdir()] == [".job"]
