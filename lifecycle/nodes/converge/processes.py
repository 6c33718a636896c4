"""Ends the processes of an Ansible run together with the run, however that ends.

Ansible's workers have sessions of their own, out of a signal's reach, and ansible-runner lets its
main process ignore that its terminal is gone. So after SIGKILL they would continue on nodes without
a lock. A watcher process, which the kernel notifies of our end, ends them.

As a program this module is that watcher: it needs the standard library alone.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_ATTEMPTS = 50
_PAUSE_S = 0.1


@contextmanager
def ended_with_us(named: Path) -> Iterator[None]:
    """End what names a path, and what came out of it, when this is left or this process ends.

    Args:
        named: the directory of one run of Ansible.
    """
    watcher = subprocess.Popen(
        [sys.executable, "-I", "-S", __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={},
        start_new_session=True,
    )
    with watcher:  # whose stdin ends here, or with this process
        if watcher.stdin is not None:
            watcher.stdin.write(os.fsencode(named) + b"\n")
            watcher.stdin.flush()
        yield


def end_processes(named: Path) -> int:
    """Kill every process whose command line names a path, and all that came out of it.

    Args:
        named: the directory of one run of Ansible; its main process and its workers name it.

    Returns:
        How many there were.
    """
    mark = os.fsencode(named)
    children: defaultdict[int, list[int]] = defaultdict(list)
    to_kill: list[int] = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            pid = int(process.name)
            state, parent = _state(process)
            if state == "Z":
                continue
            children[parent].append(pid)
            if pid != os.getpid() and mark in (process / "cmdline").read_bytes():
                to_kill.append(pid)
    for pid in to_kill:
        to_kill += [child for child in children[pid] if child not in to_kill]
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    return len(to_kill)


def _state(process: Path) -> tuple[str, int]:
    """Return state and parent: the first two fields after the name in brackets, see proc(5)."""
    state, parent = (process / "stat").read_bytes().rpartition(b")")[2].split()[:2]
    return state.decode(), int(parent)


def _watch() -> None:
    """Wait until the parent process is gone, and end what it left, forked processes included."""
    named = Path(os.fsdecode(sys.stdin.buffer.readline().rstrip(b"\n")))
    sys.stdin.buffer.read()
    for _ in range(_ATTEMPTS):
        if named == Path() or not end_processes(named):
            return
        time.sleep(_PAUSE_S)


if __name__ == "__main__":
    _watch()
