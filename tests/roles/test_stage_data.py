"""Staging copies all of a tree, goes on where it ended, and never leaves a wrong copy."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "roles/staging/files/libexec/stage-data.py"
BIG = os.urandom(3 << 20)


def stage(source: Path, destination: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(PROGRAM), *options, str(source), str(destination)],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "warm"
    (folder / "train/shard 0").mkdir(parents=True)
    (folder / "train/shard 0/data.bin").write_bytes(BIG)
    (folder / "readme").write_text("small")
    (folder / "link").symlink_to("/etc/hostname")
    return folder


def test_every_file_arrives_with_its_content_time_and_mode(source: Path, tmp_path: Path) -> None:
    (source / "readme").chmod(0o640)
    run = stage(source, tmp_path / "hot")

    assert run.returncode == 0, run.stderr
    copy = tmp_path / "hot/train/shard 0/data.bin"
    assert copy.read_bytes() == BIG
    assert (tmp_path / "hot/readme").stat().st_mode & 0o777 == 0o640
    assert int(copy.stat().st_mtime) == int((source / "train/shard 0/data.bin").stat().st_mtime)
    assert not (tmp_path / "hot/link").exists()


def test_a_second_run_copies_nothing(source: Path, tmp_path: Path) -> None:
    stage(source, tmp_path / "hot")
    assert "copied 0, bytes 0, same 2" in stage(source, tmp_path / "hot").stdout


def test_an_interrupted_copy_continues_where_it_ended(source: Path, tmp_path: Path) -> None:
    part = tmp_path / "hot/train/shard 0/data.bin.gcluster-part"
    part.parent.mkdir(parents=True)
    part.write_bytes(BIG[: 1 << 20])

    run = stage(source, tmp_path / "hot")

    assert f"bytes {len(BIG) - (1 << 20) + 5}" in run.stdout
    assert part.with_name("data.bin").read_bytes() == BIG
    assert not part.exists()


def test_a_beginning_of_another_version_is_copied_again(source: Path, tmp_path: Path) -> None:
    part = tmp_path / "hot/train/shard 0/data.bin.gcluster-part"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"x" * 1000)

    assert stage(source, tmp_path / "hot").returncode == 0
    assert part.with_name("data.bin").read_bytes() == BIG


def test_when_the_time_is_over_it_reports_it_and_leaves_no_file_half(
    source: Path, tmp_path: Path
) -> None:
    run = stage(source, tmp_path / "hot", "--within", "0.000001")
    assert run.returncode == 3
    assert "run it again to go on" in run.stderr
    assert [p for p in (tmp_path / "hot").rglob("*") if p.name == "data.bin"] == []


def test_a_newer_copy_is_not_overwritten(source: Path, tmp_path: Path) -> None:
    stage(source, tmp_path / "hot")
    copy = tmp_path / "hot/readme"
    copy.write_text("results of a job")
    later = (source / "readme").stat().st_mtime + 100
    os.utime(copy, (later, later))

    run = stage(source, tmp_path / "hot")

    assert run.returncode == 1
    assert "newer than its source" in run.stderr
    assert copy.read_text() == "results of a job"


def test_content_that_differs_under_the_same_size_and_time_is_found_on_demand(
    source: Path, tmp_path: Path
) -> None:
    stage(source, tmp_path / "hot")
    copy = tmp_path / "hot/readme"
    time = copy.stat().st_mtime
    copy.write_text("SMALL")
    os.utime(copy, (time, time))

    assert "copied 0" in stage(source, tmp_path / "hot").stdout
    assert "copied 1" in stage(source, tmp_path / "hot", "--check").stdout
    assert copy.read_text() == "small"


def test_a_source_that_is_away_is_no_empty_source(tmp_path: Path) -> None:
    run = stage(tmp_path / "nowhere", tmp_path / "hot")
    assert run.returncode == 1
    assert "is no folder" in run.stderr


@pytest.mark.parametrize("place", ["train", "readme", "readme.gcluster-part"])
def test_links_at_the_destination_lead_nowhere(source: Path, tmp_path: Path, place: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir() if place == "train" else elsewhere.write_text("mine")
    (tmp_path / "hot").mkdir()
    (tmp_path / "hot" / place).symlink_to(elsewhere)

    run = stage(source, tmp_path / "hot")

    assert run.returncode == 1, run.stdout
    assert "failed 1" in run.stdout
    assert list(elsewhere.iterdir()) == [] if place == "train" else elsewhere.read_text() == "mine"


def sums(source: Path) -> None:
    """Have the real sha256sum write what the files are, names with line feeds too."""
    names = sorted(str(each.relative_to(source)) for each in source.rglob("*") if each.is_file())
    names = [name for name in names if name not in ("SHA256SUMS", "link")]
    done = subprocess.run(["sha256sum", *names], cwd=source, stdout=subprocess.PIPE, check=True)
    (source / "SHA256SUMS").write_bytes(done.stdout)


def test_files_are_held_against_the_hashes_next_to_them(source: Path, tmp_path: Path) -> None:
    (source / "two\nlines\\").write_text("x")
    sums(source)
    hot = tmp_path / "hot"

    run = stage(source, hot)
    again = stage(source, hot)

    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.endswith("failed 0, 3 as SHA256SUMS says\n")
    assert "copied 0" in again.stdout
    assert again.stdout.endswith("failed 0, 3 as SHA256SUMS says\n")
    there = subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=hot, check=False)
    assert there.returncode == 0


def test_a_file_that_is_wrong_at_its_source_is_named_and_not_copied(
    source: Path, tmp_path: Path
) -> None:
    sums(source)
    (source / "readme").write_text("SMALL")

    run = stage(source, tmp_path / "hot")

    assert run.returncode == 1
    assert run.stderr == f"{source}/readme: its content is not what SHA256SUMS says\n"
    assert run.stdout.endswith("failed 1, 1 as SHA256SUMS says\n")
    assert not (tmp_path / "hot/readme").exists()


def test_a_copy_that_went_bad_is_made_again(source: Path, tmp_path: Path) -> None:
    sums(source)
    stage(source, tmp_path / "hot")
    bad = tmp_path / "hot/readme"
    before = bad.stat()
    bad.write_text("SMALL")
    os.utime(bad, ns=(before.st_atime_ns, before.st_mtime_ns))

    run = stage(source, tmp_path / "hot")

    assert run.returncode == 0, run.stderr
    assert "copied 1" in run.stdout
    assert bad.read_text() == "small"


def test_a_file_that_is_missing_at_its_source_is_named(source: Path, tmp_path: Path) -> None:
    sums(source)
    (source / "readme").unlink()

    run = stage(source, tmp_path / "hot")

    assert run.returncode == 1
    assert run.stderr == f"{source}/readme: it is missing, and SHA256SUMS names it\n"


@pytest.mark.parametrize("line", ["no hash", f"{'0' * 64}  ../readme", f"{'0' * 64}  /etc/passwd"])
def test_hashes_that_cannot_be_read_or_lead_outside_are_an_error(
    source: Path, tmp_path: Path, line: str
) -> None:
    (source / "SHA256SUMS").write_text(line + "\n")

    run = stage(source, tmp_path / "hot")

    assert run.returncode == 1
    assert run.stderr.startswith(f"{source}: SHA256SUMS ")
    assert not (tmp_path / "hot/readme").exists()
