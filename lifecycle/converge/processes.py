"""Ends all that Ansible started: its workers are sessions of their own, out of a signal's reach."""

from __future__ import annotations

import os
import signal
from collections import defaultdict
from contextlib import suppress
from pathlib import Path


def end_processes(named: Path) -> None:
    """Kill every process whose command line names a path, and all that came out of it.

    Args:
        named: the directory of one run of Ansible; its main process and its workers name it.
    """
    mark = str(named).encode()
    children: defaultdict[int, list[int]] = defaultdict(list)
    doomed: list[int] = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            pid = int(process.name)
            children[_parent(process)].append(pid)
            if pid != os.getpid() and mark in (process / "cmdline").read_bytes():
                doomed.append(pid)
    for pid in doomed:
        doomed += [child for child in children[pid] if child not in doomed]
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def _parent(process: Path) -> int:
    """Return the parent's id: the second field after the name in brackets, see proc(5)."""
    return int((process / "stat").read_bytes().rpartition(b")")[2].split()[1])
