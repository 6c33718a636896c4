"""Ending a run's processes reaches those that left its session, and no others."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from gcluster.lifecycle.nodes.converge.processes import end_processes

PARENT = """
import subprocess, sys
child = subprocess.Popen(["sleep", "300"], start_new_session=True)
print(child.pid, flush=True)
child.wait()
"""


ANSIBLE = """
import sys
from pathlib import Path
from types import SimpleNamespace
from gcluster.inventory.hosts import ClusterInventory
from gcluster.lifecycle.nodes.converge import run
from gcluster.lifecycle.nodes.converge.pending import Pending

tasks = [{"ansible.builtin.raw": "echo $$ > %s/pid; exec sleep 300" % sys.argv[1]}]
run.plays = lambda *_, **_named: [{"hosts": "all", "gather_facts": False, "tasks": tasks}]
run._inventory = lambda *_: {"all": {"hosts": {"here": {"ansible_connection": "local"}}}}
watch = SimpleNamespace(handle=lambda _: True, failures={}, done_count=0)
hosts = ClusterInventory(cluster="probe", hosts=())
run._run_ansible(Pending(steps=()), hosts, None, {}, Path(sys.argv[1]), watch)
"""


def start(named: Path) -> tuple[subprocess.Popen[str], int]:
    """Start a process that names a path and has a child in a session of its own."""
    process = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(named)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, int(process.stdout.readline())


def is_gone(pid: int) -> bool:
    """Wait until a process is dead: gone, or a zombie."""
    for _ in range(200):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


def test_a_run_ends_with_its_children_and_another_continues(tmp_path: Path) -> None:
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


def test_what_ansible_started_ends_with_a_run_that_is_killed_outright(tmp_path: Path) -> None:
    """Real Ansible, whose task on this machine would sleep for minutes."""
    folder = tmp_path / "run"
    folder.mkdir()
    run = subprocess.Popen([sys.executable, "-c", ANSIBLE, str(folder)])
    try:
        task = _pid_in(folder / "pid", run)
        run.kill()
        run.wait()
        assert is_gone(task)
        assert all(map(is_gone, _named(folder)))
    finally:
        run.kill()
        end_processes(folder)


def _named(path: Path) -> list[int]:
    """Return the processes whose command line names a path."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if os.fsencode(path) in (process / "cmdline").read_bytes():
                found.append(int(process.name))
    return found


def _pid_in(path: Path, run: subprocess.Popen[bytes]) -> int:
    """Wait until the task has said who it is."""
    while run.poll() is None:
        if path.exists() and (text := path.read_text().strip()):
            return int(text)
        time.sleep(0.05)
    raise AssertionError(f"Ansible ended before its task began: {run.returncode}")
