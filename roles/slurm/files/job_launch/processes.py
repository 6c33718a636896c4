"""Processes of a job's step on this node: where they are, and their end."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from nodes import environment, output_of, sizes

LAUNCH = str(Path(__file__).with_name("launch.py"))

LONGEST_WAIT_S = 5.0
"""Clocks of nodes may differ."""


def on_nodes(chosen: Sequence[str], *words: str) -> None:
    """Run one of the actions of launch.py on nodes of the job, a minute at most."""
    line = ["srun", "--overlap", "--job-name=gcluster", "--ntasks-per-node=1", "--mem=0"]
    line += ["--cpu-bind=none", *sizes(chosen, tasks=len(chosen))]
    with contextlib.suppress(subprocess.TimeoutExpired):
        subprocess.run(
            [*line, sys.executable, LAUNCH, *words],
            env=environment(),
            check=False,
            timeout=60,
        )


def pids_of(step: str) -> list[int]:
    """Return the processes of a step on this node, by scontrol(1), "listpids"."""
    lines = (output_of("scontrol", "listpids", step) or "").splitlines()[1:]
    words = (line.split(None, 1)[0] for line in lines if line.strip())
    return [int(pid) for pid in words if pid.isdigit() and int(pid) > 1]


def clear(step: str) -> None:
    """End what is left of a step on this node, and return when nothing is, or after 30 s."""
    for _ in range(60):
        pids = pids_of(step)
        if not pids:
            return
        for pid in pids:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.5)


def stacks(step: str, at: float) -> None:
    """Print the stacks of a step's Python processes on this node, and abort them.

    py-spy shows them from outside where it is installed and allowed; else SIGABRT has Python's
    own faulthandler write them (PYTHONFAULTHANDLER), into the job's log.

    Args:
        step: its id.
        at: when (Unix time): all nodes at once, as srun ends the others when one process ends.
    """
    time.sleep(min(LONGEST_WAIT_S, max(0.0, at - time.time())))
    spy = shutil.which("py-spy")
    for pid in pids_of(step):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"python" not in words[0].rpartition(b"/")[2]:
            continue
        shown = b" ".join(words).decode("utf-8", "replace").strip()[:200]
        sys.stdout.write(f"gcluster: process {pid} on {os.uname().nodename}: {shown}\n")
        sys.stdout.flush()
        if spy and not subprocess.run([spy, "dump", "--pid", str(pid)], check=False).returncode:
            continue
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGABRT)
    time.sleep(1)  # what they write is on its way
