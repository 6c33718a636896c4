"""Which job holds which GPU of this node, as dcgm-exporter reads it (`--hpc-job-mapping-dir`).

A file per GPU, called by its number, a job's number on each line; metrics of the GPU then have the
label `hpc_job`. Prolog adds a job, Epilog takes it out. The folder lies on /run: after a node's
start it isn't there, so nothing of an earlier start is left in it.

GPUs in MIG mode are left out: Slurm counts their instances, and exporters of DCGM up to 4.6 know
files of whole GPUs alone (internal/pkg/transformation/hpc.go). No job is better than a wrong one.
"""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MAPPED = Path(os.environ.get("GCLUSTER_GPU_JOBS", "/run/gcluster/gpu-jobs"))
LIMIT_S = 30
_NUMBERS = re.compile(r"[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*")
_MOST = 1024
"""GPUs of a node, at most: a range that says more is none."""


def allocated(gpus: str) -> list[int]:
    """Return the GPUs of `SLURM_JOB_GPUS`: "0,1", "4-7"; none where it holds something else."""
    found: list[int] = []
    if not _NUMBERS.fullmatch(gpus):
        return found
    for part in gpus.split(","):
        first, _, last = part.partition("-")
        if int(last or first) >= _MOST:
            return []
        found += range(int(first), int(last or first) + 1)
    return found


def map_job() -> None:
    """Write the job to the files of its GPUs."""
    job, gpus = os.environ.get("SLURM_JOB_ID", ""), allocated(os.environ.get("SLURM_JOB_GPUS", ""))
    if not re.fullmatch("[0-9]+", job) or not gpus or is_sliced():
        return
    MAPPED.mkdir(parents=True, exist_ok=True)
    with locked():
        for gpu in gpus:
            _write(MAPPED / str(gpu), [*_jobs(MAPPED / str(gpu)), job])


def unmap_job() -> None:
    """Take the job out of all files; an empty one stays, for a reader that has just listed it."""
    job = os.environ.get("SLURM_JOB_ID", "")
    if not MAPPED.is_dir():
        return
    with locked():
        for file in MAPPED.iterdir():
            if file.name.isdigit() and job in (jobs := _jobs(file)):
                _write(file, [each for each in jobs if each != job])


def is_sliced() -> bool:
    """Return whether a GPU of this node is in MIG mode."""
    query = ["nvidia-smi", "--query-gpu=mig.mode.current", "--format=csv,noheader"]
    try:
        requested = subprocess.run(
            query,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT_S,
        )
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return False
    return requested.returncode == 0 and "Enabled" in requested.stdout.split()


@contextmanager
def locked() -> Iterator[None]:
    """Hold off prologs and epilogs of other jobs."""
    with (MAPPED / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _jobs(file: Path) -> list[str]:
    try:
        return file.read_text().split()
    except OSError:
        return []


def _write(file: Path, jobs: list[str]) -> None:
    """Replace a file as a whole, each job once: twice the same series is no page of metrics."""
    new = file.with_name(f".{file.name}.new")
    new.write_text("".join(f"{job}\n" for job in dict.fromkeys(jobs)))
    new.chmod(0o644)
    new.replace(file)
