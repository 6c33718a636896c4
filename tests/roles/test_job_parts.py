"""Checkpoints that nodes write to their own disks first: complete when all parts are moved."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROLE = Path(__file__).parents[2] / "roles/slurm/files"
NODES = 3
STEP = "step-100"


class Job:
    """A job whose nodes are folders: each has a disk of its own, and all see `shared`."""

    def __init__(self, folder: Path) -> None:
        """Put the programs in one folder, as nodes have them."""
        self.programs = folder / "gcluster"
        self.programs.mkdir()
        shutil.copytree(ROLE / "job_launch", self.programs / "job_launch")
        (self.programs / "job-checkpoint.py").symlink_to(ROLE / "libexec/job-checkpoint.py")
        self.shared, self.folder = folder / "shared", folder
        self.shared.mkdir()

    def disk(self, node: int) -> Path:
        """Return the folder of a node's own disks."""
        disk = self.folder / f"disk{node}"
        disk.mkdir(exist_ok=True)
        return disk

    def write(self, node: int, step: str = STEP, text: str = "weights") -> Path:
        """Write a node's part; the first node writes what is of all too."""
        part = self.disk(node) / step
        part.mkdir()
        (part / f"rank{node}.distcp").write_text(f"{text} of {node}" * 1000, encoding="utf-8")
        if node == 0:
            (part / ".metadata").write_text(text, encoding="utf-8")
        return part

    def call(self, node: int, *words: str, attempt: int = 0) -> subprocess.CompletedProcess[str]:
        """Run the program on a node."""
        program = self.programs / "job_launch" / "parts.py"
        with (self.folder / "log").open("a") as log:
            return subprocess.run(
                [sys.executable, program, *words],
                stdout=log,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
                timeout=60,
                env={
                    "PATH": os.environ["PATH"],
                    "SLURM_JOB_ID": "7",
                    "SLURM_NODEID": str(node),
                    "GCLUSTER_NODES": str(NODES),
                    "GCLUSTER_CHECKPOINTS": str(self.shared),
                    "GCLUSTER_CHECKPOINT_KEEP": "2",
                    "attempt": str(attempt),
                },
            )

    def send(self, node: int, step: str = STEP, *, attempt: int = 0) -> None:
        """Send a node's part, which is moved in the background."""
        part = str(self.disk(node) / step)
        assert self.call(node, "send", part, attempt=attempt).returncode == 0, self.log()

    def wait(self) -> None:
        """Return when nothing is left on the disks."""
        for node in range(NODES):
            assert self.call(node, "wait", str(self.disk(node))).returncode == 0

    def log(self) -> str:
        """Return what all have printed."""
        return (self.folder / "log").read_text(encoding="utf-8")

    def newest(self) -> str:
        """Return the name of the checkpoint that would be resumed from, "" for none."""
        words = [sys.executable, self.programs / "job-checkpoint.py", "newest", self.shared]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        return done.stdout.strip().rpartition("/")[2]


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """Return a job of three nodes."""
    return Job(tmp_path)


def test_a_checkpoint_is_complete_when_the_parts_of_all_nodes_are_there(job: Job) -> None:
    for node in range(NODES):
        job.write(node)
    job.send(0)
    job.send(1)
    assert job.call(1, "wait", str(job.disk(1))).returncode == 0
    assert job.newest() == ""
    job.send(2)
    job.wait()

    assert job.newest() == STEP
    names = set(json.loads((job.shared / STEP / "MANIFEST.json").read_text())["files"])
    assert names == {".metadata", "rank0.distcp", "rank1.distcp", "rank2.distcp"}
    assert [each.name for node in range(NODES) for each in job.disk(node).glob("step-*")] == []
    assert f"gcluster: {STEP} is complete in {job.shared}" in job.log()


def test_the_training_goes_on_while_parts_are_moved_and_none_is_left_out(job: Job) -> None:
    steps = [f"step-{number}" for number in (100, 200, 300)]
    for node in range(NODES):
        for step in steps:
            job.write(node, step)
    began = time.monotonic()
    job.send(0, steps[0])  # it waits for the parts of the others, and
    job.send(0, steps[1])  # this one for it
    assert time.monotonic() - began < 10
    for step in steps[:2]:
        job.send(1, step)
        job.send(2, step)
    for node in range(NODES):
        job.send(node, steps[2])
    job.wait()

    assert job.newest() == steps[2]
    assert sorted(each.name for each in job.shared.glob("step-*")) == steps[1:]
    assert list(job.shared.glob(".*.parts")) == []
    assert job.log().count("is complete in") == len(steps)


def test_a_part_that_can_not_be_moved_leaves_the_checkpoint_before_it(job: Job) -> None:
    for node in range(NODES):
        job.write(node)
        job.send(node)
    job.wait()
    for node in range(NODES):
        part = job.write(node, "step-200")
        if node == 1:
            (part / "link").symlink_to("/etc/passwd")
        job.send(node, "step-200")
    job.wait()

    assert job.newest() == STEP
    assert f"step-200 is not moved to {job.shared}" in job.log()
    assert "link is no file of its own" in job.log()
    assert "the part of node 1 of this job is missing" in job.log()


def test_parts_of_an_attempt_that_was_cut_off_are_not_taken_for_those_of_the_next(
    job: Job,
) -> None:
    """Two of its three nodes had moved theirs; the next attempt writes the same step again."""
    for node in (1, 2):
        part = job.write(node, text="old")
        (part / "too-much").write_text("of the attempt before", encoding="utf-8")
        job.send(node)
        assert job.call(node, "wait", str(job.disk(node))).returncode == 0
    job.write(0)
    job.send(0, attempt=1)
    for node in (1, 2):
        job.write(node)
        time.sleep(1.5)
        assert job.newest() == ""
        job.send(node, attempt=1)
    job.wait()

    assert job.newest() == STEP
    assert not (job.shared / STEP / "too-much").exists()
    assert (job.shared / STEP / "rank1.distcp").read_text().startswith("weights of 1")


@pytest.mark.parametrize("name", ["latest", "step-100/none"])
def test_what_is_no_checkpoint_is_not_sent(job: Job, name: str) -> None:
    (job.disk(0) / "latest").mkdir()
    assert job.call(0, "send", str(job.disk(0) / name)).returncode == 1
    assert "is no folder whose name ends with a number" in job.log()
