"""Storage is staged by one node at a time, before a job or on command; what fails holds the job."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import pytest
from tests.shell_double import write_double

LIBEXEC = Path(__file__).parents[2] / "roles/staging/files/libexec"
PROLOG = Path(__file__).parents[2] / "roles/slurm/files/libexec/job-prolog.py"
FAST_BEAT = "0.05"


class Node:
    """A node on which two folders replace mounts, and Slurm's command is a line of shell."""

    def __init__(self, folder: Path) -> None:
        """Give it a bucket with one file, and an empty file system that is a copy of it."""
        self.folder = folder
        self.bucket, self.warm = folder / "bucket", folder / "warm"
        self.programs = folder / "bin"
        for each in (self.bucket, self.warm, self.programs):
            each.mkdir()
        (self.bucket / "shard").write_text("data")
        self.settings = folder / "staging.json"
        self.write_settings(within_s=20)
        self.has("scontrol", f'[ "$2" = hostnames ] && echo gpu1 || echo "$@" >> {folder}/told')
        self.mounts(self.bucket, self.warm)

    def write_settings(self, within_s: int, **more: bool) -> None:
        """Write what the role writes."""
        copy = {
            "name": "warm",
            "source": str(self.bucket),
            "destination": str(self.warm),
            "within_s": within_s,
            **more,
        }
        before = {"burst": {"needs": ["data"], "copies": {"data": "warm", "warm": "warm"}}}
        self.settings.write_text(json.dumps({"copies": [copy], "before_jobs": before}))

    def mounts(self, *folders: Path) -> None:
        """Let Python on this node take these folders for mounted."""
        (self.programs / "sitecustomize.py").write_text(
            "import os.path\n"
            f"os.path.ismount = lambda path: path in {[str(each) for each in folders]}\n"
        )

    def has(self, name: str, script: str) -> None:
        """Install a program."""
        path = self.programs / name
        write_double(path, script)

    def environment(self, node: str) -> dict[str, str]:
        """Return what Slurm's prolog has, and this test's settings."""
        return {
            "PATH": f"{self.programs}:{os.environ['PATH']}",
            "PYTHONPATH": str(self.programs),
            "GCLUSTER_STAGING": str(self.settings),
            "GCLUSTER_STAGING_BEAT": FAST_BEAT,
            "GCLUSTER_STAGE": str(LIBEXEC / "gcluster-stage.py"),
            "SLURM_JOB_ID": "7",
            "SLURM_JOB_PARTITION": "burst",
            "SLURM_JOB_NODELIST": "gpu[1-2]",
            "SLURMD_NODENAME": node,
        }

    def run(self, *words: str, node: str = "gpu1", **more: str) -> subprocess.CompletedProcess[str]:
        """Run the program."""
        return subprocess.run(
            [LIBEXEC / "gcluster-stage.py", *words],
            env=self.environment(node) | more,
            capture_output=True,
            text=True,
            check=False,
        )

    @property
    def answer(self) -> str:
        """Slurm's calls."""
        path = self.folder / "told"
        return path.read_text() if path.exists() else ""


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_a_person_stages_by_name(node: Node) -> None:
    run = node.run("warm")
    assert run.returncode == 0, run.stderr
    assert (node.warm / "shard").read_text() == "data"
    assert "copied 1" in run.stdout


def test_a_name_that_cannot_be_staged_is_reported_with_those_that_can(node: Node) -> None:
    run = node.run("cold")
    assert run.returncode == 1
    assert "cold can't be staged here; what can: warm" in run.stderr


def test_the_first_node_of_a_job_stages_what_its_partition_needs(node: Node) -> None:
    assert node.run("--job", node="gpu2").returncode == 0
    assert not (node.warm / "shard").exists()
    assert node.run("--job").returncode == 0
    assert (node.warm / "shard").exists()
    assert node.answer == ""


@pytest.mark.parametrize(
    ("comment", "staged"), [("data=home spill=no", False), ("data=warm", True)]
)
def test_a_job_that_names_its_data_gets_that_and_no_other(
    node: Node, comment: str, *, staged: bool
) -> None:
    assert node.run("--job", SLURM_JOB_COMMENT=comment).returncode == 0
    assert (node.warm / "shard").exists() is staged


def test_jobs_of_other_partitions_wait_for_nothing(node: Node) -> None:
    assert node.run("--job", SLURM_JOB_PARTITION="train").returncode == 0
    assert not (node.warm / "shard").exists()


@pytest.mark.parametrize("side", ["source", "destination"])
def test_a_side_that_is_not_mounted_is_never_copied_or_filled(node: Node, side: str) -> None:
    there = node.warm if side == "source" else node.bucket
    missing = node.bucket if side == "source" else node.warm
    node.mounts(there)
    run = node.run("--job")
    assert run.returncode == 0
    assert f"nothing is mounted at {missing}" in node.answer
    assert not (node.warm / "shard").exists()
    assert node.run("--mounted", "warm").returncode == 1


def test_a_job_whose_data_cannot_be_brought_is_held_with_the_reason(node: Node) -> None:
    (node.warm / "shard").mkdir()
    run = node.run("--job")
    assert run.returncode == 0
    first, second = node.answer.splitlines()
    assert first == "requeuehold 7"
    assert "update JobId=7 AdminComment=gcluster: data is not there: warm: " in second
    assert "scontrol release 7 tries again" in second


def test_a_job_that_cannot_be_held_does_not_start(node: Node) -> None:
    (node.warm / "shard").mkdir()
    node.has("scontrol", '[ "$2" = hostnames ] && echo gpu1 && exit; exit 1')
    assert node.run("--job").returncode == 1


def test_a_lock_whose_holder_is_gone_is_taken_over(node: Node) -> None:
    (node.warm / ".gcluster-staging").touch()
    run = node.run("warm")
    assert run.returncode == 0, run.stderr
    assert [each.name for each in node.warm.iterdir()] == ["shard"]


def test_a_lock_whose_holder_is_alive_is_waited_for_as_long_as_staging_may_take(
    node: Node,
) -> None:
    node.write_settings(within_s=2)
    lock = node.warm / ".gcluster-staging"
    lock.touch()
    touches = subprocess.Popen(["sh", "-c", f"while touch {lock}; do sleep 0.02; done"])
    try:
        began = time.monotonic()
        run = node.run("warm")
        waited = time.monotonic() - began
    finally:
        touches.kill()
        touches.wait()
    assert run.returncode == 1
    assert waited >= 2
    assert "another node has been staging it all the time" in run.stderr
    assert not (node.warm / "shard").exists()


def test_slurm_s_prolog_stages_and_lets_the_job_be_held(node: Node) -> None:
    node.has("nvidia-smi", "true")
    node.has("systemctl", "exit 1")
    node.has("logger", "true")
    run = subprocess.run(
        [PROLOG], env=node.environment("gpu1"), capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert (node.warm / "shard").exists()


def test_each_node_of_a_job_fills_its_own_disks(node: Node) -> None:
    node.write_settings(within_s=20, own=True)
    assert node.run("--job", node="gpu2").returncode == 0
    assert (node.warm / "shard").read_text() == "data"


WRONG = f"{'0' * 64}  shard\n"
RIGHT = "3a6eb0790f39ac87c94f3856b2dd2c5d110e6811602261a9a923d3bb23adc8b7  shard\n"
"""SHA-256 of "data"."""


def test_a_job_whose_data_has_other_hashes_is_held_with_the_file_s_name(node: Node) -> None:
    (node.bucket / "SHA256SUMS").write_text(WRONG)
    assert node.run("--job").returncode == 0
    first, second = node.answer.splitlines()
    assert first == "requeuehold 7"
    assert f"warm: {node.bucket}/shard: its content is not what SHA256SUMS says;" in second
    assert not (node.warm / "shard").exists()


def test_a_job_has_the_number_of_files_that_were_checked(node: Node) -> None:
    (node.bucket / "SHA256SUMS").write_text(RIGHT)
    assert node.run("--job").returncode == 0
    assert node.answer.startswith("update JobId=7 AdminComment=gcluster: warm: copied 2, ")
    assert node.answer.endswith("failed 0, 1 as SHA256SUMS says\n")


@pytest.mark.parametrize(("state", "code"), [("PENDING JobHeldUser", 0), ("RUNNING None", 1)])
def test_a_job_that_another_of_its_nodes_has_held_blames_no_node(
    node: Node, state: str, code: int
) -> None:
    node.write_settings(within_s=20, own=True)
    (node.bucket / "SHA256SUMS").write_text(WRONG)
    node.has("scontrol", '[ "$2" = hostnames ] && echo gpu1 || [ "$1" != requeuehold ]')
    node.has("squeue", f"echo {state}")
    assert node.run("--job", node="gpu2").returncode == code
