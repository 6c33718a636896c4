"""What Slurm says of this node, and the two things that a node may ask of it for itself."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass

from self_converge.settings import JOB_PREFIX

MARK = "gcluster up: "
"""Start of the reason of a node that we took out of service; see lifecycle/operations/rolling."""

_ON_NODES = "running,suspended,completing,configuring,stopped,signaling,stage_out"
_OUT = re.compile("DRAIN|DOWN|FAIL")


class Silent(Exception):  # noqa: N818  # it says what happened
    """Slurm doesn't answer, so the jobs here are unknown."""


@dataclass(frozen=True)
class Use:
    """This node as Slurm sees it."""

    out: bool
    """No job can start on it."""
    ours: bool
    """We took it out."""
    jobs: tuple[str, ...]
    """Names of the jobs that hold it."""
    granted: str = ""
    """Number of the one by which Slurm gives the node for a change; "" where there is none."""


def node_use(node: str) -> Use:
    """Ask who uses the node; raises Silent."""
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
    """Take the node out of service; raises Silent."""
    marked = MARK + " ".join(reason.split())[:200]
    run("scontrol", "update", "NodeName=" + node, "State=DRAIN", "Reason=" + marked)


def give_back(node: str) -> None:
    """Put the node back into service; raises Silent."""
    run("scontrol", "update", "NodeName=" + node, "State=RESUME")


def run(*words: str) -> str:
    """Run one of Slurm's commands; return what it prints; raises Silent."""
    try:
        done = subprocess.run(list(words), capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Silent(f"{words[0]}: {error}") from error
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise Silent(f"{words[0]}: {lines[-1] if lines else done.returncode}")
    return done.stdout
