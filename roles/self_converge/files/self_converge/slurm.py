"""Slurm's record of this node, and the two updates that a node may make for itself."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass

from self_converge.settings import JOB_PREFIX

MARK = "gcluster up: "
"""Start of the reason of a node that we took out of service; see lifecycle/operations/rolling."""

_ON_NODES = "running,suspended,completing,configuring,stopped,signaling,stage_out"
_OUT = re.compile("DRAIN|DOWN|FAIL")


class Silent(Exception):  # noqa: N818  # named for what happened
    """Slurm doesn't answer, so the jobs here are unknown."""


@dataclass(frozen=True)
class Use:
    """This node in Slurm."""

    out: bool
    """No job can start on it."""
    ours: bool
    """We took it out."""
    jobs: tuple[str, ...]
    """Names of the jobs that hold it."""
    granted: str = ""
    """Number of the one by which Slurm gives the node for a change; "" where there is none."""


def node_use(node: str) -> Use:
    """Query who uses the node; raises Silent."""
    answer = run("scontrol", "--oneliner", "show", "node", node)
    state = re.search(r" State=(\S+)", answer)
    reason = re.search(r" Reason=(.*)", answer)
    words = ("--nodelist=" + node, "--states=" + _ON_NODES, "--format=%A %j")
    jobs = [line.split(None, 1) for line in run("squeue", "--noheader", *words).splitlines()]
    out = bool(state and _OUT.search(state.group(1)))
    ours = out and bool(reason and reason.group(1).startswith(MARK))
    granted = (number for number, name in jobs if name == JOB_PREFIX + node)
    return Use(out=out, ours=ours, jobs=tuple(name for _, name in jobs), granted=next(granted, ""))


def drain(node: str, reason: str) -> None:
    """Drain the node; raises Silent."""
    marked = MARK + " ".join(reason.split())[:200]
    run("scontrol", "update", "NodeName=" + node, "State=DRAIN", "Reason=" + marked)


def give_back(node: str) -> None:
    """Resume the node; raises Silent."""
    run("scontrol", "update", "NodeName=" + node, "State=RESUME")


def run(*words: str) -> str:
    """Run one of Slurm's commands; return its output; raises Silent."""
    try:
        done = subprocess.run(list(words), capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Silent(f"{words[0]}: {error}") from error
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise Silent(f"{words[0]}: {lines[-1] if lines else done.returncode}")
    return done.stdout
