"""The program of checkpoints: complete ones are found and kept, torn ones are skipped and named."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "roles/slurm/files/libexec/job-checkpoint.py"
SQUEUE = """\
#!/bin/sh
# A double of squeue: jobs 7 and 77 run, 3 is ending, the controller of 8 is silent, others ended.
case $* in
*--jobs=5) # it has ended, and while that is looked up job 4 takes the folder
    echo 4 > checkpoints/.job.4 && mv checkpoints/.job.4 checkpoints/.job; exit 0 ;;
*--jobs=7*) echo RUNNING ;;
*--jobs=3) [ -e ending ] || { touch ending; echo COMPLETING; } ;;
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


def test_a_job_that_is_being_ended_is_waited_for(saved: Path) -> None:
    """As one is whose node was lost: it has ended when Slurm has given that up."""
    saved.mkdir()
    (saved / ".job").write_text("3\n", encoding="utf-8")

    answer = call(saved, "open", str(saved), job="9")

    assert (answer.returncode, answer.stderr) == (
        0,
        "job-checkpoint: waiting for the end of job 3\n",
    )
    assert (saved / ".job").read_text(encoding="utf-8") == "9\n"


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


def test_a_clock_that_jumps_back_makes_no_older_checkpoint_the_newest(saved: Path) -> None:
    """Numbers decide; what is kept too, whatever the files' times and the manifests say."""
    for number, when in ((1, 4e9), (2, 1e9), (3, 0.0)):
        folder = written(saved, number)
        for path in (*folder.rglob("*"), folder):
            os.utime(path, (when, when))
        manifest = json.loads((folder / "MANIFEST.json").read_text(encoding="utf-8"))
        manifest["written"] = int(when)
        (folder / "MANIFEST.json").write_text(json.dumps(manifest), encoding="utf-8")

    assert call(saved, "newest", str(saved)).stdout == f"{saved}/step-3\n"
    assert call(saved, "commit", str(saved / "step-3"), "--keep", "2").returncode == 0
    assert sorted(each.name for each in saved.iterdir()) == ["step-2", "step-3"]


@pytest.mark.parametrize("name", ["a b\n'$(id)`\"; rm -rf x #", "--keep", "\udce4\udcff", "é" * 80])
def test_files_of_any_name_are_held_against_the_manifest(saved: Path, name: str) -> None:
    folder = written(saved, 1, complete=False)
    (folder / name).write_text("weights", encoding="utf-8")

    assert call(saved, "commit", str(folder)).returncode == 0
    assert call(saved, "newest", str(saved)).stdout == f"{folder}\n"
    (folder / name).write_text("weighty", encoding="utf-8")
    assert call(saved, "newest", str(saved)).stdout == "\n"


def test_a_disk_without_room_for_the_manifest_leaves_a_torn_checkpoint_and_reports_it(
    saved: Path,
) -> None:
    """RLIMIT_FSIZE takes the place of the full disk: the write fails in the same call."""
    first, second = written(saved, 1), written(saved, 2, complete=False)
    limited = "import resource, runpy, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
    limited += "resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10)); sys.argv = sys.argv[1:]; "
    limited += "runpy.run_path(sys.argv[0], run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", limited, PROGRAM, "commit", str(second)],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1
    assert "job-checkpoint: [Errno 27] File too large" in done.stderr
    assert call(saved, "newest", str(saved)).stdout == f"{first}\n"


def test_the_notice_before_the_end_ends_no_commit(saved: Path) -> None:
    """The signal goes to all processes of a job: here the program sends it to itself."""
    folder = written(saved, 1, complete=False)
    noticed = "import os, runpy, signal, sys; sys.argv = sys.argv[1:]; "
    noticed += "fsync = os.fsync; "
    noticed += "os.fsync = lambda fd: (os.kill(os.getpid(), signal.SIGUSR1), fsync(fd)); "
    noticed += "runpy.run_path(sys.argv[0], run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", noticed, PROGRAM, "commit", str(folder)], check=False
    )

    assert done.returncode == 0
    assert call(saved, "newest", str(saved)).stdout == f"{folder}\n"
