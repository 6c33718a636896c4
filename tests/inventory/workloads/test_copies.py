"""A workload's script copies checkpoints while it runs, and fetches one that is gone."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pytest

from gcluster.inventory.workloads import batch_scripts
from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.derived.storage import copy_place
from gcluster.schemas.load import load_text

from .test_batch import ROLE, run_script

SPEC = """\
apiVersion: gcluster/v1
name: lab
sites: {campus: {provider: bare-metal, ssh: {user: ops}}}
pools:
  head: {site: campus, role: controller, hosts: mgmt01}
  train: {site: campus, machine: dgx-h100, hosts: "dgx[101-104]"}
storage:
  scratch: {type: nfs, mount: /scratch/fast, server: 10.0.0.9}
  second: {type: nfs, mount: /scratch/second, server: 10.0.0.10}
  all: {type: object, mount: /scratch/all, bucket: "s3://acme-runs"}
  runs: {type: object, mount: /scratch/runs, bucket: "s3://acme-runs/lab/"}
scheduler: {type: slurm}
workloads:
  letters:
    framework: command
    nodes: 1
    command: ["true"]
    checkpoint: {to: scratch, every: 15m, keep: 2, copies: ["s3://acme-runs/lab/team", second]}
"""
TRAINS = """\
echo "resumes from $GCLUSTER_RESUME_FROM"
for step in 1 2 3; do
    folder=$GCLUSTER_CHECKPOINTS/step-$step
    mkdir "$folder" || exit 5
    echo weights >"$folder/weights"
    "$(dirname "$0")/gcluster/job-checkpoint.py" commit "$folder" || exit 6
done
"""
FETCHES = 'echo "resumes from $GCLUSTER_RESUME_FROM with $(cat "$GCLUSTER_RESUME_FROM/weights")"'
SAVED = "checkpoints/letters"


@pytest.fixture
def script() -> str:
    """Return the script of a workload with two copies."""
    spec = load_text(SPEC).spec
    assert spec is not None
    return batch_scripts(spec, load_catalog())["letters"]


def test_a_copy_is_in_the_storage_whose_bucket_it_is_in_at_the_workload_s_path(script: str) -> None:
    spec = load_text(SPEC).spec
    assert spec is not None

    assert f"--copy=/scratch/runs/team/{SAVED} --copy=/scratch/second/{SAVED} -- \\\n" in script
    assert copy_place(spec.storage, "s3://acme-runs/lab") == ("runs", "")
    assert copy_place(spec.storage, "s3://acme-runs/laboratory/") == ("all", "laboratory")
    assert copy_place(spec.storage, "s3://acme") is None
    assert copy_place(spec.storage, "gs://acme-runs/lab") is None


def test_the_last_checkpoint_is_copied_before_the_job_ends_and_fetched_where_it_is_gone(
    script: str, tmp_path: Path
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    first = run_script(script, one, srun=TRAINS)

    assert first.returncode == 0, first
    copies = [one / "runs/team" / SAVED, one / "second" / SAVED]
    for copy in copies:
        assert f"gcluster: step-3 is copied to {copy} in 0 s" in first.stdout.splitlines()
        assert (copy / "step-3/MANIFEST.json").exists()
    assert sorted(each.name for each in (one / "fast" / SAVED).glob("step-*")) == [
        "step-2",
        "step-3",
    ]
    assert not (one / "fast" / SAVED / ".copying").exists()

    two.mkdir()
    (one / "second").rename(two / "second")
    second = run_script(script, two, srun=FETCHES)
    at = two / "fast" / SAVED / "step-3"
    assert f"resumes from {at} with weights" in second.stdout
    fetched = f"checkpoint step-3 is fetched from {two}/second/{SAVED} in 0 s\n"
    assert second.stderr == fetched
    assert f"gcluster: step-3 is copied to {two}/runs/team/{SAVED} in 0 s" in second.stdout


def test_a_copy_that_fails_is_a_line_of_the_log_and_never_the_job_s_failure(
    script: str, tmp_path: Path
) -> None:
    (tmp_path / "runs").touch()

    done = run_script(script, tmp_path, srun=TRAINS)

    assert done.returncode == 0, done
    copy = f"{tmp_path}/runs/team/{SAVED}"
    failed = f"gcluster: step-3 is not copied to {copy}: [Errno 20] Not a directory: "
    lines = [line for line in done.stdout.splitlines() if line.startswith(failed)]
    assert len(lines) == 2  # when it failed, and last, as the job's result
    assert lines[-1] == done.stdout.splitlines()[-1]
    assert (tmp_path / "second" / SAVED / "step-3/MANIFEST.json").exists()


SLOW = """\
import pathlib, sys, time
folder = pathlib.Path(sys.argv[2])
saved = sorted(each.name for each in folder.glob("step-*"))
with (folder / "calls").open("a") as file:
    file.write(saved[-1] + "\\n")
print("copied", saved[-1], flush=True)
while (folder / "slow").exists():
    time.sleep(0.05)
sys.exit(int((folder / "exits").read_text()) if (folder / "exits").exists() else 0)
"""
"""A double of the program that copies: it notes what is the newest, and takes its time."""


def loaded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("copying", ROLE / "job_launch/copying.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (folder / "slow.py").write_text(SLOW, encoding="utf-8")
    monkeypatch.setattr(module, "LOOKS_S", 0.0)
    return module


def saves(folder: Path, *numbers: int) -> None:
    for number in numbers:
        (folder / f"step-{number}").mkdir()
        (folder / f"step-{number}/MANIFEST.json").touch()


def looks_until(copying: object, folder: Path, calls: Sequence[str]) -> None:
    """Look as the launcher does, until the double was started so often."""
    until = time.monotonic() + 20
    while not (folder / "calls").exists() or read(folder) != list(calls):
        copying.look()  # type: ignore[attr-defined]
        time.sleep(0.02)
        assert time.monotonic() < until


def read(folder: Path) -> list[str]:
    return (folder / "calls").read_text(encoding="utf-8").splitlines()


def test_one_copy_runs_at_a_time_and_what_was_superseded_meanwhile_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed: list[str] = []
    copying = loaded(tmp_path, monkeypatch).Copying(
        str(tmp_path / "slow.py"), str(tmp_path), ["copy"], lambda lines, _: printed.extend(lines)
    )
    (tmp_path / "slow").touch()
    saves(tmp_path, 1)
    looks_until(copying, tmp_path, ["step-1"])
    saves(tmp_path, 2, 3)
    for _ in range(20):
        copying.look()
    assert read(tmp_path) == ["step-1"]

    (tmp_path / "slow").unlink()
    looks_until(copying, tmp_path, ["step-1", "step-3"])
    copying.finish(lambda: False, lambda: None)

    assert read(tmp_path) == ["step-1", "step-3"]
    assert printed == ["copied step-1", "copied step-3"]


def test_a_copy_that_failed_is_tried_again_and_its_line_is_printed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = loaded(tmp_path, monkeypatch)
    monkeypatch.setattr(module, "AGAIN_S", 0.1)
    printed: list[tuple[list[str], str | None]] = []
    copying = module.Copying(
        str(tmp_path / "slow.py"), str(tmp_path), ["copy"], lambda *one: printed.append(one)
    )
    (tmp_path / "exits").write_text("1", encoding="utf-8")
    saves(tmp_path, 1)

    looks_until(copying, tmp_path, ["step-1"] * 3)
    copying.finish(lambda: False, lambda: None)

    assert [lines for lines, _ in printed if lines] == [["copied step-1"]]
    assert {failed for _, failed in printed} == {"copied step-1"}


def test_a_copy_without_progress_or_without_time_does_not_keep_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = loaded(tmp_path, monkeypatch)
    monkeypatch.setattr(module, "STALLS_S", 0.5)
    (tmp_path / "slow").touch()
    saves(tmp_path, 1)
    for is_over, said in (
        (False, "the copy of a checkpoint stands still for 0 s"),
        (True, "the copy of step-1 was cut off"),
    ):
        printed: list[str] = []
        copying = module.Copying(
            str(tmp_path / "slow.py"),
            str(tmp_path),
            ["copy"],
            lambda lines, _, printed=printed: printed.extend(lines),
        )
        copying.look()
        copying.finish(lambda is_over=is_over: is_over, lambda: None)
        assert said in printed
        assert printed[-1] == "the copy of step-1 was cut off"


def test_a_copy_takes_only_the_processor_time_that_is_left_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = loaded(tmp_path, monkeypatch)
    program = "import os; print('nice', os.nice(0))"
    (tmp_path / "slow.py").write_text(program, encoding="utf-8")
    printed: list[str] = []
    copying = module.Copying(
        str(tmp_path / "slow.py"), str(tmp_path), ["copy"], lambda lines, _: printed.extend(lines)
    )
    saves(tmp_path, 1)
    copying.look()
    copying.finish(lambda: False, lambda: None)

    assert printed == ["nice 19"]
