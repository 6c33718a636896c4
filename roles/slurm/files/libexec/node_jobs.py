"""Shared by Prolog and Epilog: a job's GPUs, shared memory and scratch on this node.

/etc/slurm/job-scratch.conf names where jobs get a folder; without a name there they get none. The
GCLUSTER_ variables replace paths and root in tests.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import subprocess
import sys
import syslog
from pathlib import Path
from typing import NoReturn

# slurmd gives its programs no search path (slurm.conf: Prolog), and so would they give theirs none.
os.environ.setdefault("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")

SCRATCH_SETTINGS = Path(os.environ.get("GCLUSTER_JOB_SCRATCH", "/etc/slurm/job-scratch.conf"))
BEGUN = Path(os.environ.get("GCLUSTER_SCRATCH_BEGUN", "/run/gcluster/job-scratch"))
"""Has a mark for each job that has begun since the node's start, from its prolog on, with its user.

That is long before Slurm has a process of it here, for another job's prolog may come while this
one's is still at work.
"""
SLICES = Path(os.environ.get("GCLUSTER_MIG_SLICES", "/etc/gcluster/mig-slices.json"))
"""Says how the GPUs are cut into MIG slices, where they are (role nvidia_driver)."""
ROOT = int(os.environ.get("GCLUSTER_SCRATCH_OWNER", "0"))
SHARED_MEMORY = Path(os.environ.get("GCLUSTER_SHARED_MEMORY", "/dev/shm"))  # noqa: S108  # of jobs
GPU_LIMIT_S = 30
RESETS = (
    "--compute-mode=DEFAULT",
    "--reset-gpu-clocks",
    "--reset-memory-clocks",
    "--reset-applications-clocks",
)
"""What nvidia-smi sets back after a job: an exclusive or slowed GPU would stay so for the next."""
WELL = {"None", "N/A", "[N/A]"}
"""The driver's value for a GPU that needs no action."""


class RefusedError(Exception):
    """Why no job may run on this node now."""


def job_number() -> str:
    """Return the job's number.

    Raises:
        RefusedError: it isn't set.
    """
    number = os.environ.get("SLURM_JOB_ID", "")
    if not re.fullmatch("[0-9]+", number):
        raise RefusedError("no job says its number")
    return number


def end(program: str, what: str, why: str) -> NoReturn:
    """Fail with the reason, for slurmd's log and the node's journal: slurmd drains the node."""
    syslog.openlog(f"gcluster-{program}")
    syslog.syslog(f"{what}: {why}")
    print(why, file=sys.stderr)
    sys.exit(1)


def refuse_unwell_gpus() -> None:
    """Find a GPU that needs a reset, or its node a restart, before another job.

    Older drivers lack the field; the health check covers those.

    Raises:
        RefusedError: there is one, or the driver doesn't respond.
    """
    query = ["nvidia-smi", "--query-gpu=index,gpu_recovery_action", "--format=csv,noheader"]
    try:
        requested = subprocess.run(
            query,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=GPU_LIMIT_S,
        )
    except FileNotFoundError:
        return
    except subprocess.TimeoutExpired:
        raise RefusedError(f"nvidia-smi doesn't answer within {GPU_LIMIT_S} s") from None
    if requested.returncode != 0:
        return
    rows = (re.fullmatch(r"([0-9]+), *(.+)", line) for line in requested.stdout.splitlines())
    wanting = [row.groups() for row in rows if row and row[2] not in WELL]
    if wanting:
        lines = (f"GPU {index}: the driver asks for {action}" for index, action in wanting)
        raise RefusedError("\n".join(lines))


def scratch_folder() -> Path | None:
    """Return where jobs get their folders; None: nowhere."""
    try:
        lines = SCRATCH_SETTINGS.read_text().splitlines()
    except OSError:
        return None
    place = next((line for line in lines if line and not line.startswith("#")), "")
    return Path(place, "gcluster-jobs") if place else None


def mark_begun() -> None:
    """Leave a mark that the job has begun here, with its user.

    Raises:
        RefusedError: it can't be made.
    """
    number = job_number()
    try:
        BEGUN.mkdir(parents=True, exist_ok=True)
        (BEGUN / number).write_text(os.environ.get("SLURM_JOB_UID", ""))
    except OSError:
        raise RefusedError(f"{BEGUN / number} can't be made") from None


def mark_ended() -> None:
    """Take the job's mark away, and its user's shared memory where no other job of theirs is here.

    Whatever a job leaves in /dev/shm is memory that the next one lacks, and killed data loaders
    leave gigabytes. Jobs with a /dev/shm of their own (job_container.conf) leave nothing.
    """
    (BEGUN / job_number()).unlink(missing_ok=True)
    user = os.environ.get("SLURM_JOB_UID", "")
    others = (mark.read_text() for mark in BEGUN.iterdir())
    if not re.fullmatch("[1-9][0-9]*", user) or user in others:
        return
    for left in SHARED_MEMORY.iterdir():
        if left.lstat().st_uid == int(user):
            remove(left)


def reset_gpus() -> None:
    """Reset the job's GPUs to their default clocks and compute mode.

    Settings that a GPU or driver doesn't support are skipped: none of them is a fault. The clocks
    of a MIG slice are its GPU's, where other jobs run, and its number in Slurm is no GPU's.
    """
    gpus = os.environ.get("SLURM_JOB_GPUS", "")
    if SLICES.exists() or not re.fullmatch("[0-9]+(,[0-9]+)*", gpus):
        return
    for setting in RESETS:
        with contextlib.suppress(FileNotFoundError, subprocess.TimeoutExpired):
            subprocess.run(
                ["nvidia-smi", f"--id={gpus}", setting],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                check=False,
                timeout=GPU_LIMIT_S,
            )


def make_scratch() -> None:
    """Give the job a folder of its own, and sweep those of jobs that a node went down under.

    Raises:
        RefusedError: it can't be made.
    """
    jobs = scratch_folder()
    if jobs is None:
        return
    number = job_number()
    if not jobs.parent.is_dir():
        raise RefusedError(f"job_scratch of the spec, {jobs.parent}, is not there")
    try:
        jobs.mkdir()
        jobs.chmod(0o755)
    except OSError:  # it exists, or what follows has the error
        pass
    # Where others may write too, another user could have created it, or a link of that name.
    if jobs.is_symlink() or not jobs.is_dir() or jobs.stat().st_uid != ROOT:
        raise RefusedError(f"{jobs} is not root's own folder")
    for folder in jobs.iterdir():
        if re.fullmatch("[0-9]+", folder.name) and not (BEGUN / folder.name).exists():
            remove(folder)
    own = jobs / number
    try:
        own.mkdir(mode=0o700, exist_ok=True)
    except OSError:
        raise RefusedError(f"{own} can't be made") from None
    try:
        user = int(os.environ["SLURM_JOB_UID"])
        group = int(os.environ.get("SLURM_JOB_GID") or pwd.getpwuid(user).pw_gid)
        os.chown(own, user, group, follow_symlinks=False)
    except (OSError, KeyError, ValueError):
        raise RefusedError(f"{own} can't be given to its user") from None


def remove_scratch() -> None:
    """Take the job's folder away."""
    jobs = scratch_folder()
    if jobs is not None:
        remove(jobs / job_number())


def remove(folder: Path) -> None:
    """Remove a folder, but nothing that is mounted below it; what can't be is left."""
    subprocess.run(["rm", "-rf", "--one-file-system", folder], check=False)
