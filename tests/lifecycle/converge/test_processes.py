"""Ending a run's processes reaches those that left its session, and nobody else's."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from gcluster.lifecycle.nodes.converge.run import end_processes

PARENT = """
import subprocess, sys
child = subprocess.Popen(["sleep", "300"], start_new_session=True)
print(child.pid, flush=True)
child.wait()
"""


def start(named: Path) -> tuple[subprocess.Popen[str], int]:
    """Start a process that names a path and has a child in a session of its own."""
    process = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(named)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, int(process.stdout.readline())


def is_gone(pid: int) -> bool:
    """Wait until a process is dead: gone, or left for somebody to take note of."""
    for _ in range(200):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


def test_a_run_ends_with_its_children_and_another_goes_on(tmp_path: Path) -> None:
    ours, our_child = start(tmp_path / "ours")
    other, other_child = start(tmp_path / "other")
    try:
        end_processes(tmp_path / "ours")
        assert ours.wait(timeout=10) == -9
        assert is_gone(our_child)
        assert other.poll() is None
        assert Path(f"/proc/{other_child}").exists()
    finally:
        end_processes(tmp_path / "other")
        other.wait()
