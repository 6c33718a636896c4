"""Copies of checkpoints: complete, in their order, and fetched when they are newer."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

FILES = Path(__file__).parents[2] / "roles/slurm/files"
BIG = 64 << 20
"""Bytes of a file that takes long enough to copy that one can look at it."""


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """Return a folder for checkpoints, next to the programs as nodes have them."""
    (tmp_path / "job-checkpoint.py").symlink_to(FILES / "libexec/job-checkpoint.py")
    programs = tmp_path / "job_launch"
    programs.mkdir()
    for file in (FILES / "job_launch").glob("*.py"):
        (programs / file.name).write_text(file.read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "checkpoints").mkdir()
    return tmp_path / "checkpoints"


def call(saved: Path, program: str, *words: object) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, str(saved.parent / program), *map(str, words)]
    return subprocess.run(line, capture_output=True, text=True, check=False, timeout=60)


def commit(saved: Path, number: int, keep: int = 9) -> Path:
    folder = saved / f"step-{number}"
    done = call(saved, "job-checkpoint.py", "commit", folder, "--keep", keep)
    assert done.returncode == 0, done.stderr
    return folder


def written(saved: Path, number: int, text: str = "weights", keep: int = 9) -> Path:
    folder = saved / f"step-{number}"
    (folder / "rank0").mkdir(parents=True)
    (folder / "rank0" / "a.distcp").write_text(f"{text} {number}" * 100, encoding="utf-8")
    (folder / ".metadata").write_text(text, encoding="utf-8")
    (folder / "empty").touch()
    return commit(saved, number, keep)


def send(saved: Path, *copies: Path, keep: int = 3) -> subprocess.CompletedProcess[str]:
    return call(saved, "job_launch/copies.py", "send", saved, *copies, "--keep", keep)


def newest(saved: Path, *copies: Path) -> subprocess.CompletedProcess[str]:
    return call(saved, "job_launch/copies.py", "newest", saved, *copies)


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def verified(saved: Path, folder: Path) -> bool:
    return call(saved, "job-checkpoint.py", "verify", folder).returncode == 0


def test_the_newest_complete_checkpoint_is_copied_to_each_copy_once(
    saved: Path, tmp_path: Path
) -> None:
    for number in (9, 100):
        written(saved, number)
    (saved / "step-200").mkdir()
    copies = [tmp_path / "one", tmp_path / "two"]

    first, second = send(saved, *copies), send(saved, *copies)

    printed = [f"step-100 is copied to {copy} in 0 s" for copy in copies]
    assert (first.returncode, first.stdout.splitlines(), first.stderr) == (0, printed, "")
    assert (second.returncode, second.stdout, second.stderr) == (0, "", "")
    for copy in copies:
        assert names(copy) == ["step-100"]
        assert verified(saved, copy / "step-100")
    assert ".copying" not in names(saved)


def test_copies_keep_as_many_as_are_kept(saved: Path, tmp_path: Path) -> None:
    for number in (1, 2, 3):
        written(saved, number)
        assert send(saved, tmp_path / "copy", keep=2).returncode == 0

    assert names(tmp_path / "copy") == ["step-2", "step-3"]


def test_another_checkpoint_of_the_same_number_replaces_its_copy(
    saved: Path, tmp_path: Path
) -> None:
    written(saved, 1, "of a run before")
    send(saved, tmp_path / "copy")
    (tmp_path / "copy/step-1/left over").touch()
    (saved / "step-1/.metadata").write_text("other", encoding="utf-8")
    commit(saved, 1)

    assert send(saved, tmp_path / "copy").returncode == 0

    assert (tmp_path / "copy/step-1/.metadata").read_text(encoding="utf-8") == "other"
    assert verified(saved, tmp_path / "copy/step-1")


@pytest.mark.parametrize("change", ["content", "gone", "more", "manifest"])
def test_a_checkpoint_that_differs_from_its_manifest_is_not_copied(
    saved: Path, tmp_path: Path, change: str
) -> None:
    folder = written(saved, 2)
    if change == "content":
        (folder / ".metadata").write_text("Weights", encoding="utf-8")
    elif change == "gone":
        (folder / ".metadata").unlink()
    elif change == "more":
        (folder / "more").touch()
    else:
        (folder / "MANIFEST.json").write_text('{"files": 3}', encoding="utf-8")

    done = send(saved, tmp_path / "copy")

    assert done.returncode == 1
    assert done.stderr.startswith(f"step-2 is not copied to {tmp_path}/copy: ")
    assert not (tmp_path / "copy/step-2").exists()


def test_a_copy_that_cannot_be_made_keeps_no_other_from_being_made(
    saved: Path, tmp_path: Path
) -> None:
    written(saved, 2)
    (tmp_path / "file").touch()

    done = send(saved, tmp_path / "file/copy", tmp_path / "copy")

    assert done.returncode == 1
    assert done.stderr == (
        f"step-2 is not copied to {tmp_path}/file/copy: "
        f"[Errno 20] Not a directory: '{tmp_path}/file/copy/step-2/MANIFEST.json'\n"
    )
    assert verified(saved, tmp_path / "copy/step-2")


def test_a_copy_that_was_killed_is_torn_and_is_made_again(saved: Path, tmp_path: Path) -> None:
    written(saved, 1)
    send(saved, tmp_path / "copy")
    (saved / "step-2").mkdir()
    (saved / "step-2/weights").write_bytes(os.urandom(1 << 20) * (BIG >> 20))
    commit(saved, 2)
    started = subprocess.Popen(
        [sys.executable, tmp_path / "job_launch/copies.py", "send", saved, tmp_path / "copy"]
    )
    while not (tmp_path / "copy/step-2/weights").exists():
        assert started.poll() is None
    started.kill()
    started.wait()
    assert not (tmp_path / "copy/step-2/MANIFEST.json").exists()
    assert (saved / ".copying").read_text(encoding="utf-8") == "step-2\n"

    other = tmp_path / "other"
    other.mkdir()
    fetched = newest(other, tmp_path / "copy")
    assert fetched.stdout == f"{other}/step-1\n"
    assert f"copy {tmp_path}/copy/step-2 is skipped: it was cut off\n" in fetched.stderr

    assert send(saved, tmp_path / "copy").returncode == 0
    assert verified(saved, tmp_path / "copy/step-2")
    assert ".copying" not in names(saved)


def test_a_checkpoint_that_is_being_copied_is_not_removed(saved: Path) -> None:
    for number in (1, 2):
        written(saved, number)
    (saved / ".copying").write_text("step-1\n", encoding="utf-8")

    written(saved, 3, keep=1)
    assert names(saved) == [".copying", "step-1", "step-3"]

    opened = call(saved, "job-checkpoint.py", "open", saved)  # the next job: nothing is copied
    assert opened.returncode == 0
    written(saved, 4, keep=1)
    assert names(saved) == ["step-4"]


def test_a_disk_without_room_keeps_the_copies_that_are_there(saved: Path, tmp_path: Path) -> None:
    """RLIMIT_FSIZE takes the place of the full disk: the write fails in the same call."""
    written(saved, 1)
    send(saved, tmp_path / "copy")
    written(saved, 2, "more than there is room for")
    limited = "import resource, runpy, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
    limited += "resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500)); sys.argv = sys.argv[1:]; "
    limited += "runpy.run_path(sys.argv[0], run_name='__main__')"
    program = tmp_path / "job_launch/copies.py"
    done = subprocess.run(
        [sys.executable, "-c", limited, program, "send", saved, tmp_path / "copy"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1
    assert done.stderr == f"step-2 is not copied to {tmp_path}/copy: [Errno 27] File too large\n"
    assert names(tmp_path / "copy") == ["step-1"]
    assert verified(saved, tmp_path / "copy/step-1")


def test_a_newer_copy_is_fetched_and_an_older_one_is_not(saved: Path, tmp_path: Path) -> None:
    written(saved, 10)
    copy = tmp_path / "copy"
    send(saved, copy)
    assert newest(saved, copy).stdout == f"{saved}/step-10\n"

    (saved / "step-10/.metadata").unlink()  # torn here
    written(saved, 9)
    done = newest(saved, copy)
    assert done.stdout == f"{saved}/step-10\n"
    assert done.stderr.splitlines() == [
        "checkpoint step-10 is skipped: .metadata is missing",
        f"checkpoint step-10 is fetched from {copy} in 0 s",
    ]
    assert verified(saved, saved / "step-10")

    written(saved, 11)
    assert newest(saved, copy).stdout == f"{saved}/step-11\n"


def test_a_copy_that_has_changed_is_skipped_for_an_older_one(saved: Path, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for number in (1, 2):
        written(saved, number)
        send(saved, one)
    written(saved, 3)
    send(saved, two)
    (two / "step-3/.metadata").write_text("Weights", encoding="utf-8")
    (one / "step-2/more").touch()
    for each in (1, 2, 3):
        (saved / f"step-{each}/.metadata").unlink()

    done = newest(saved, one, two, tmp_path / "none")

    assert done.stdout == f"{saved}/step-1\n"
    assert f"copy {two}/step-3 is skipped: the content of .metadata has changed" in done.stderr
    assert f"copy {one}/step-2 is skipped: more is not in its manifest" in done.stderr
    assert not (saved / "step-3").exists()


def test_a_manifest_that_names_files_outside_is_not_followed(saved: Path, tmp_path: Path) -> None:
    folder = tmp_path / "copy/step-5"
    folder.mkdir(parents=True)
    (tmp_path / "copy/outside").write_text("x", encoding="utf-8")
    entry = {
        "bytes": 1,
        "sha256": "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881",
    }
    manifest = {"files": {"../outside": entry}}
    (folder / "MANIFEST.json").write_text(json.dumps(manifest), encoding="utf-8")

    done = newest(saved, tmp_path / "copy")

    assert done.stdout == "\n"
    assert names(saved) == []


def test_the_notice_before_the_end_ends_no_copy(saved: Path, tmp_path: Path) -> None:
    (saved / "step-2").mkdir()
    (saved / "step-2/weights").write_bytes(bytes(BIG))
    commit(saved, 2)
    started = subprocess.Popen(
        [sys.executable, tmp_path / "job_launch/copies.py", "send", saved, tmp_path / "copy"]
    )
    while not (tmp_path / "copy/step-2/weights").exists():
        time.sleep(0.01)
    started.send_signal(signal.SIGUSR1)

    assert started.wait(timeout=60) == 0
    assert verified(saved, tmp_path / "copy/step-2")
