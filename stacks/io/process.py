"""Whether a process of this machine runs, and since when."""

from __future__ import annotations

import os
from pathlib import Path

_PROC = Path("/proc")


def is_running(pid: int, started: str = "") -> bool:
    """Return whether the process with this pid and start time runs in this pid namespace.

    `started` is its `start_time`; "" where that is unknown.
    """
    if _PROC.joinpath("self/stat").exists():
        now = start_time(pid)
        return now is not None and (now == started or not started)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def start_time(pid: int) -> str | None:
    """Return a process's start time in clock ticks since boot; None when it doesn't run.

    A zombie doesn't run: its parent has only not read its exit code yet.
    """
    try:
        stat = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    # proc_pid_stat(5): the name is in parentheses and may hold any character; the fields after it
    # are counted from 3 (state), 22 is starttime.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in {"Z", "X", "x"} else fields[19]


def started_at(pid: int) -> float | None:
    """Return when a process started, in seconds since 1970; None where that can't be known."""
    ticks = start_time(pid)
    try:
        lines = (_PROC / "stat").read_text().splitlines()
    except OSError:
        return None
    booted = [int(line.split()[1]) for line in lines if line.startswith("btime ")]
    if ticks is None or not booted:
        return None
    return booted[0] + int(ticks) / os.sysconf("SC_CLK_TCK")
