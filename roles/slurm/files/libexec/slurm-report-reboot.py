#!/usr/bin/python3
"""Requeue the jobs that this node's restart ended, where slurmctld didn't notice it.

With ReturnToService=2 slurmctld treats a node that is back before it was marked down as if it had
never been away (validate_node_specs, Slurm 24.11). Of its jobs it ends those alone whose script ran
there, and not what began within BatchStartTimeout. A job whose step has lost one node of several
runs on for ever: srun takes the end of that node's connection for an end of its output.

So the node counts as down for a moment, as it does where slurmctld noticed it: batch jobs are
requeued, others end as NODE_FAIL. A node that is drained keeps its reason and stays so. Nodes that
come and go (CLOUD) are left alone: a job may have begun elsewhere while this one was still booting.

Exit code 1: slurmctld has not registered this start yet, or did not respond; to be run again.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
import time
from pathlib import Path

PROC = Path(os.environ.get("GCLUSTER_PROC", "/proc"))
LIMIT_S = 60
EVERY_S = 2
COMMAND_LIMIT_S = 30
ROUNDING_S = 2
"""Times of Slurm are of whole seconds: a start of this machine comes out so much too early.

A job that is taken for lost in these seconds was placed here before slurmd ran: it loses nothing.
"""
REASON = "Node unexpectedly rebooted"
"""In Slurm's own wording, which every reader of reasons recognises."""
RUNNING = ("RUNNING", "SUSPENDED")


def main() -> int:
    """Wait until slurmctld has registered this start, then report the jobs from before it."""
    node, booted, began = platform.node().partition(".")[0], started_at(1), started_at(slurmd())
    for _ in range(LIMIT_S // EVERY_S):
        said = output_of("scontrol", "--oneliner", "show", "node", node)
        if number(said, "SlurmdStartTime") >= int(began):
            break
        time.sleep(EVERY_S)
    else:
        print(f"slurmctld has no record of this start of {node} yet", file=sys.stderr)
        return 1
    state = re.search(r" State=(\S+)", said)
    if state is None or "CLOUD" in state[1]:
        return 0
    # BootTime is that of slurmd's process (-b), by slurmctld's clock, as the times of jobs are.
    # SlurmdStartTime can be a minute later: slurmd sets it when it has loaded all that it needs.
    process_began = number(said, "BootTime")
    lost = jobs_before(node, min(process_began - (began - booted) + ROUNDING_S, process_began))
    return report(node, state[1], reason_of(said), lost) if lost else 0


def slurmd() -> int:
    """Return the process of slurmd.

    Raises:
        ProcessLookupError: it doesn't run.
    """
    shown = output_of("systemctl", "show", "--property=MainPID", "--value", "slurmd").strip()
    if not shown.isdigit() or shown == "0":
        raise ProcessLookupError("slurmd does not run")
    return int(shown)


def started_at(process: int) -> float:
    """Return the start of a process, in seconds since 1970; that of 1 is this machine's.

    A container has its host's boot time.
    """
    lines = (PROC / "stat").read_text(encoding="ascii").splitlines()
    booted = next(int(line.split()[1]) for line in lines if line.startswith("btime "))
    fields = (PROC / f"{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return booted + int(fields[19]) / os.sysconf("SC_CLK_TCK")


def number(said: str, name: str) -> int:
    """Return a time of `scontrol show node`, in seconds since 1970; 0 where there is none."""
    found = re.search(rf" {name}=(\d+)", said)
    return int(found[1]) if found else 0


def reason_of(said: str) -> str:
    """Return why the node is out of service, without the user."""
    found = re.search(r" Reason=(.*?)(?: \[[^\]@ ]+@[^\]]+\])?\s*$", said, re.MULTILINE)
    return found[1] if found else ""


def jobs_before(node: str, boot: float) -> list[str]:
    """Return the jobs that run here by slurmctld's account and began before the machine did."""
    states = f"--states={','.join(RUNNING)}"
    listed = output_of("squeue", "--noheader", f"--nodelist={node}", states, "--format=%T %S %A")
    rows = re.findall(r"^(\w+) (\d+) (\d+)$", listed, re.MULTILINE)
    return sorted({job for state, start, job in rows if state in RUNNING and int(start) < boot})


def report(node: str, state: str, reason: str, jobs: list[str]) -> int:
    """Have the node count as down, and serve again unless it is drained."""
    is_drained = "DRAIN" in state
    why = reason if is_drained and reason else REASON
    done = update(node, "State=DOWN", f"Reason={why}") and (
        is_drained or update(node, "State=RESUME")
    )
    print(f"{node} was started again under {', '.join(jobs)}" + ("" if done else ": not reported"))
    return 0 if done else 1


def update(node: str, *words: str) -> bool:
    """Change what slurmctld has of the node."""
    done = subprocess.run(
        ["scontrol", "update", f"NodeName={node}", *words], check=False, timeout=COMMAND_LIMIT_S
    )
    return done.returncode == 0


def output_of(*command: str) -> str:
    """Return what a program of Slurm prints, its times in seconds since 1970; "" where it fails."""
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        timeout=COMMAND_LIMIT_S,
        env={**os.environ, "SLURM_TIME_FORMAT": "%s"},
    )
    return done.stdout if done.returncode == 0 else ""


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, subprocess.TimeoutExpired) as error:
        sys.exit(f"Slurm gave no answer: {error}")
