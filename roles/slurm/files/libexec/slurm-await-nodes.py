#!/usr/bin/python3
"""Hold a job back until its elastic nodes are ready, and no longer (PrologSlurmctld).

slurmctld by itself checks only every 30 s whether they are ready (Slurm 24.11: job_time_limit).

Its end is never a failure: slurmctld would requeue the job. A job whose nodes don't come is
requeued by slurmctld (ResumeTimeout) or the burst agent; it isn't CONFIGURING any more then.
"""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

# slurmctld gives its programs no search path (slurm.conf: PrologSlurmctld).
os.environ.setdefault("PATH", "/usr/local/bin:/usr/bin:/bin")

PARTITIONS = Path(os.environ.get("GCLUSTER_ELASTIC_PARTITIONS", "/etc/slurm/elastic-partitions"))
ABSENT = set("*~#!%")
"""Marks of a node that is off, on its way, not responding or going."""
HAVE_COME = "its nodes have come"
"""The burst agent sets it once slurmctld has their addresses; other creators may not."""
BELIEVED_S = 5
"""How long nodes are ready before the job starts, without the agent's mark."""


def main() -> None:
    """Wait."""
    job = os.environ["SLURM_JOB_ID"]
    there_s = 0
    while state := job_line(job):
        if not state.startswith("CONFIGURING"):
            return
        if ABSENT & set(node_states()):
            there_s = 0
        else:
            there_s += 1
            if HAVE_COME in state or there_s >= BELIEVED_S:
                return
        time.sleep(1)


def is_elastic(partition: str) -> bool:
    """Return whether nodes of a partition come and go: most jobs are for others."""
    try:
        return partition in PARTITIONS.read_text().splitlines()
    except OSError:
        return False


def job_line(job: str) -> str:
    """Return a job's state and its comment; "" where it has ended, or there is no response.

    An array's last task has the array's number: squeue lists all tasks for it, but with numbers of
    their own.
    """
    form = "--Format=JobID:20,State:20,AdminComment:80"
    listed = output_of("squeue", "--noheader", f"--jobs={job}", form, otherwise="")
    rows = (line.split(None, 1) for line in listed.splitlines())
    return next((row[1] for row in rows if row[:1] == [job] and row[1:]), "")


def node_states() -> str:
    """Return the states of the job's nodes; without a response they count as absent."""
    nodes = os.environ["SLURM_JOB_NODELIST"]
    return output_of("sinfo", "--noheader", f"--nodes={nodes}", "--format=%T", otherwise="*")


def output_of(*command: str, otherwise: str) -> str:
    """Return what a program of Slurm prints, and something else where it fails."""
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False
        )
    except OSError:
        return otherwise
    return done.stdout if done.returncode == 0 else otherwise


if __name__ == "__main__" and is_elastic(os.environ["SLURM_JOB_PARTITION"]):
    main()
