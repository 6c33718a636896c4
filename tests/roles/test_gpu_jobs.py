"""Which job holds a GPU, in the files that dcgm-exporter reads: by Prolog and Epilog."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
from tests.roles.programs import load_program
from tests.shell_double import write_double

PROGRAM = Path(__file__).parents[2] / "roles/slurm/files/libexec/gpu_jobs.py"


@pytest.fixture
def gpu_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    program = load_program(PROGRAM, "gpu_jobs")
    monkeypatch.setattr(program, "MAPPED", tmp_path / "gpu-jobs")
    monkeypatch.setattr(program, "is_sliced", lambda: False)
    return program


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch) -> Job:
    return Job(monkeypatch)


class Job:
    """What slurmd sets for Prolog and Epilog of a job."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Set nothing yet."""
        self.monkeypatch = monkeypatch

    def is_(self, number: str, gpus: str) -> None:
        """Set a job's number and its GPUs."""
        self.monkeypatch.setenv("SLURM_JOB_ID", number)
        self.monkeypatch.setenv("SLURM_JOB_GPUS", gpus)


def mapped(program: ModuleType) -> dict[str, str]:
    """Return what dcgm-exporter would read: files whose name is a number."""
    return {f.name: f.read_text() for f in program.MAPPED.iterdir() if f.name.isdigit()}


def test_a_job_is_in_the_files_of_its_gpus_until_its_end(gpu_jobs: ModuleType, job: Job) -> None:
    job.is_("7", "0,2-3")
    gpu_jobs.map_job()
    assert mapped(gpu_jobs) == {"0": "7\n", "2": "7\n", "3": "7\n"}
    assert {f.stat().st_mode & 0o777 for f in gpu_jobs.MAPPED.glob("[0-9]")} == {0o644}

    gpu_jobs.unmap_job()
    # hpc.go opens what it has listed: a file that went in between would be an error of its own.
    assert mapped(gpu_jobs) == {"0": "", "2": "", "3": ""}


def test_jobs_that_share_a_gpu_are_a_line_each_and_no_job_is_there_twice(
    gpu_jobs: ModuleType, job: Job
) -> None:
    job.is_("7", "0")
    gpu_jobs.map_job()
    gpu_jobs.map_job()
    job.is_("77", "0,1")
    gpu_jobs.map_job()
    assert mapped(gpu_jobs) == {"0": "7\n77\n", "1": "77\n"}

    job.is_("7", "")
    gpu_jobs.unmap_job()
    assert mapped(gpu_jobs) == {"0": "77\n", "1": "77\n"}


@pytest.mark.parametrize(
    ("number", "gpus"),
    [("7", ""), ("7", "MIG-7f"), ("7", "../x"), ("7", "0-99999999"), ("7;", "0"), ("", "0")],
)
def test_what_names_no_job_or_no_gpu_writes_nothing(
    gpu_jobs: ModuleType, job: Job, number: str, gpus: str
) -> None:
    job.is_(number, gpus)
    gpu_jobs.map_job()
    gpu_jobs.unmap_job()

    assert not gpu_jobs.MAPPED.exists() or mapped(gpu_jobs) == {}


@pytest.mark.parametrize(
    ("script", "sliced"),
    [
        ("printf 'Disabled\nEnabled\n'", True),
        ("printf 'Disabled\n'", False),
        ("printf '[N/A]\n'", False),
        ("exit 9", False),
        (None, False),
    ],
)
def test_gpus_in_mig_mode_get_no_job_for_their_numbers_are_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str | None, sliced: bool
) -> None:
    program = load_program(PROGRAM, "gpu_jobs_of_mig")
    if script is not None:
        tool = tmp_path / "nvidia-smi"
        write_double(tool, script)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(program, "MAPPED", tmp_path / "gpu-jobs")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_JOB_GPUS", "0")

    program.map_job()

    assert program.MAPPED.exists() is not sliced
