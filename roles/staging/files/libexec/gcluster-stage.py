#!/usr/bin/python3
"""Fill storage from its source, as the cluster's spec says (stage_within).

usage: gcluster-stage.py NAME...            stage these now; for users and their job scripts
       gcluster-stage.py --mounted NAME...  only check that both sides of each are mounted
       gcluster-stage.py --job              what the job SLURM_JOB_ID needs; for Slurm's prolog

Only one node stages a storage at a time; others wait for it, inside the same limit. With --job the
first node of the job copies, and to their own disks (a copy that is `own`) all of them: the job
starts when all its nodes are through. A job whose data can't be staged, or is not what its
SHA256SUMS says, is requeued, held, with the reason as its AdminComment: the node is not to blame.
Where there is a SHA256SUMS, the first node writes there too how many files are as it says.
Ends with 0 when all is there, 1 when not.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Copy = dict[str, Any]
SETTINGS = Path(os.environ.get("GCLUSTER_STAGING", "/etc/gcluster/staging.json"))
STAGE_DATA = Path(__file__).resolve().with_name("stage-data.py")
LOCK = ".gcluster-staging"
SUMS = "SHA256SUMS"
OUT_OF_TIME = 3
"""Status of stage-data.py."""
BEAT_S = float(os.environ.get("GCLUSTER_STAGING_BEAT", "5"))
"""How often a lock's holder touches it; without a touch for twelve times as long, it is stale."""


class StagingError(Exception):
    """Why a storage isn't there."""


def settings() -> dict[str, Any]:
    """Return what the role has written."""
    try:
        found: dict[str, Any] = json.loads(SETTINGS.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise StagingError(f"nothing can be staged on this node: there is no {SETTINGS}") from None
    return found


def mounted(copy: Copy) -> None:
    """Refuse a side that isn't mounted: the node's own disk would be copied, or filled."""
    for side in ("source", "destination"):
        if not os.path.ismount(copy[side]):
            raise StagingError(f"{copy['name']}: nothing is mounted at {copy[side]}")


@contextlib.contextmanager
def alone(folder: str, end: float) -> Iterator[None]:
    """Hold the lock of a storage; wait for another holder.

    A lock is a file that is created exclusively. Its holder touches it; no clocks are compared, so
    those of two nodes may differ.
    """
    lock, seen, since = Path(folder, LOCK), None, time.monotonic()
    while True:
        try:
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
            break
        except FileExistsError:
            pass
        with contextlib.suppress(FileNotFoundError):
            if (touched := lock.lstat().st_mtime_ns) != seen:
                seen, since = touched, time.monotonic()
            elif time.monotonic() - since > 12 * BEAT_S:
                gone = lock.with_name(f"{LOCK}.{os.uname().nodename}.{os.getpid()}")
                lock.rename(gone)
                gone.unlink()
                continue
        if time.monotonic() > end:
            raise StagingError("another node has been staging it all the time")
        time.sleep(min(1.0, BEAT_S))
    ended = threading.Event()

    def beat() -> None:
        while not ended.wait(BEAT_S):
            with contextlib.suppress(FileNotFoundError):
                os.utime(lock, follow_symlinks=False)

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        with contextlib.suppress(FileNotFoundError):
            lock.unlink()


def stage(copy: Copy) -> str:
    """Bring one storage's data, inside its limit; return what was done.

    Raises StagingError: it isn't all there, or not as its SHA256SUMS says.
    """
    mounted(copy)
    end = time.monotonic() + copy["within_s"]
    try:
        with alone(copy["destination"], end):
            left = max(1.0, end - time.monotonic())
            command = [STAGE_DATA, "--within", str(left), copy["source"], copy["destination"]]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise StagingError(f"{copy['name']}: {error}") from None
    except StagingError as failed:
        raise StagingError(f"{copy['name']}: {failed}") from None
    words = done.stderr.strip().splitlines() or done.stdout.strip().splitlines() or ["no word"]
    reason = words[0] + (f" (and {len(words) - 1} more)" if len(words) > 1 else "")
    if done.returncode == OUT_OF_TIME:
        raise StagingError(
            f"{copy['name']} was not there in {copy['within_s']} s; what was copied is kept"
        )
    if done.returncode:
        raise StagingError(f"{copy['name']}: {reason}")
    return f"{copy['name']}: {done.stdout.strip()}"


def chosen(names: list[str]) -> list[Copy]:
    """Return the copies of these names.

    Raises StagingError: nothing of that name can be staged.
    """
    known = {copy["name"]: copy for copy in settings()["copies"]}
    for name in names:
        if name not in known:
            raise StagingError(
                f"{name} can't be staged here; what can: {', '.join(sorted(known)) or 'nothing'}"
            )
    return [known[name] for name in names]


def is_first_node() -> bool:
    """Return whether this is the job's first node."""
    words = ["scontrol", "show", "hostnames", os.environ.get("SLURM_JOB_NODELIST", "")]
    nodes = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    return nodes[:1] == [os.environ.get("SLURMD_NODENAME")]


def needed(answer: dict[str, Any]) -> set[str]:
    """Return the copies that the job needs: those of its comment, else those of its partition."""
    words = os.environ.get("SLURM_JOB_COMMENT", "").split()
    named = [word.removeprefix("data=") for word in words if word.startswith("data=")]
    needs = named[-1].split(",") if named else answer["needs"]
    return {answer["copies"][name] for name in needs if name in answer["copies"]}


def for_job() -> None:
    """Stage what a job needs; a job whose data can't be brought goes back in line."""
    job, partition = os.environ["SLURM_JOB_ID"], os.environ.get("SLURM_JOB_PARTITION", "")
    paths = settings()["before_jobs"].get(partition)
    names = sorted(needed(paths)) if paths else []
    if not names:
        return
    is_first = is_first_node()
    try:
        copies = [copy for copy in chosen(names) if is_first or copy.get("own")]
        said = [stage(copy) for copy in copies]
    except StagingError as failed:
        print(failed, file=sys.stderr)
        why = f"data is not there: {failed}; scontrol release {job} tries again"
        hold(job)
        remark(job, why)
    else:
        checked = [each for each in said if SUMS in each]
        if is_first and checked:
            remark(job, "; ".join(checked))


def hold(job: str) -> None:
    """Put a job back in line, held; another of its nodes may have done so already."""
    done = subprocess.run(["scontrol", "requeuehold", job], check=False)
    if done.returncode:
        words = ["squeue", "--noheader", f"--jobs={job}", "--format=%T %r"]
        state = subprocess.run(words, capture_output=True, text=True, check=False).stdout
        if not state.startswith(("PENDING", "COMPLETING", "REQUEUE")):
            done.check_returncode()


def remark(job: str, text: str) -> None:
    """Write the result on the job, where `scontrol show job` and sacct have it."""
    words = ["scontrol", "update", f"JobId={job}", f"AdminComment=gcluster: {text}"]
    subprocess.run(words, check=False)


def main() -> None:
    """Stage, or check."""
    parser = argparse.ArgumentParser(description="fill storage from what it is a copy of")
    parser.add_argument("--job", action="store_true", help="what the job in the environment needs")
    parser.add_argument("--mounted", action="store_true", help="only see that all is mounted")
    parser.add_argument("names", nargs="*", metavar="NAME")
    args = parser.parse_args()
    # Slurm gives its prologs no PATH.
    os.environ.setdefault("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
    try:
        if args.job:
            for_job()
            return
        for copy in chosen(args.names):
            if args.mounted:
                mounted(copy)
            else:
                print(stage(copy))
    except (StagingError, subprocess.CalledProcessError) as failed:
        sys.exit(str(failed))


main()
