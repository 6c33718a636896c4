#!/usr/bin/python3
"""Slurm's Prolog: checks this node before a job's first step there.

Exit 1: the job is requeued and slurmd drains the node; the reason is in the node's journal and,
where the health check gave it, in `sinfo -R`.

Short, since it delays every job: a health report of the last minutes is used.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from pathlib import Path

from gpu_jobs import map_job
from node_jobs import RefusedError, end, make_scratch, mark_begun, refuse_unwell_gpus

HEALTH = os.environ.get("GCLUSTER_HEALTH", "/usr/libexec/gcluster/node-health")
REPORT = Path(os.environ.get("GCLUSTER_HEALTH_REPORT", "/run/gcluster/node-health.json"))
BELIEVED_S, HEALTH_LIMIT_S = 600, 60
FABRIC, FABRIC_LIMIT_S = "gcluster-rxdm.service", 180
STAGE = os.environ.get("GCLUSTER_STAGE", str(Path(__file__).with_name("gcluster-stage.py")))


def main() -> None:
    """Check everything; the first problem refuses the job."""
    try:
        refuse_unfit_node()
        refuse_unwell_gpus()
        mark_begun()
        make_scratch()
        with contextlib.suppress(OSError):  # metrics without a job refuse none
            map_job()
        start_fabric()
        stage_data()
    except (RefusedError, OSError) as why:
        end("prolog", f"job {os.environ.get('SLURM_JOB_ID', '?')} refused", str(why))


def refuse_unfit_node() -> None:
    """Run the health check, where there is one and its last report is too old."""
    if not os.access(HEALTH, os.X_OK) or is_fit():
        return
    said = run(HEALTH, "check", "--drain", limit_s=HEALTH_LIMIT_S)[1]
    if not is_fit():
        raise RefusedError(f"the health check finds the node unfit: {said}")


def is_fit() -> bool:
    """Return whether a report of the last minutes shows that the node is healthy."""
    try:
        is_new = time.time() - REPORT.stat().st_mtime < BELIEVED_S
        return is_new and '"verdict": "fit"' in REPORT.read_text()
    except OSError:
        return False


def start_fabric() -> None:
    """Have the daemon of TCPX and TCPXO run.

    Without it a job's NCCL falls back to plain sockets, or hangs.
    """
    if run("systemctl", "is-enabled", "--quiet", FABRIC)[0]:
        return
    if run("systemctl", "is-active", "--quiet", FABRIC)[0] == 0:
        return
    if run("systemctl", "start", FABRIC, limit_s=FABRIC_LIMIT_S)[0]:
        raise RefusedError(
            "the fabric's receive daemon doesn't start; journalctl -u gcluster-rxdm says why"
        )


def stage_data() -> None:
    """Bring the job's data, last, for it may take minutes.

    It puts a job whose data can't be brought back in line by itself.
    """
    if os.access(STAGE, os.X_OK):
        code, said = run(STAGE, "--job")
        if code:
            raise RefusedError(f"staging could not be tried: {said}")


def run(*command: str, limit_s: float | None = None) -> tuple[int, str]:
    """Return a program's status and output; one that is over its limit is ended (124)."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
            timeout=limit_s,
        )
    except subprocess.TimeoutExpired:
        return 124, f"{command[0]}: no answer within {limit_s:.0f} s"
    return done.returncode, done.stdout.strip()


main()
