"""Distinguishing a running process from one that is gone, and from another with its pid."""

from __future__ import annotations

import os
import subprocess
import sys

from gcluster.lifecycle.state.process import this_process, user_at_host
from gcluster.stacks.io.process import is_running, start_time


def test_this_process_runs_and_has_its_identity() -> None:
    me = this_process()
    assert me.pid == os.getpid()
    assert me.who == user_at_host()
    assert "@" in me.who
    assert not me.is_gone()


def test_a_process_that_ended_is_gone_even_as_a_zombie() -> None:
    with subprocess.Popen(["sleep", "600"]) as sleeper:
        started = start_time(sleeper.pid)
        assert started is not None
        assert is_running(sleeper.pid, started)
        sleeper.kill()
        os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)  # dead, and not yet reaped
        assert not is_running(sleeper.pid, started)
    assert start_time(sleeper.pid) is None


def test_another_process_with_the_same_pid_is_another_process() -> None:
    assert not is_running(os.getpid(), "1")


def test_a_process_name_with_parentheses_and_spaces_does_not_hide_its_start() -> None:
    code = (
        "import sys; open('/proc/self/comm', 'w').write(') Z (('); print(flush=True);"
        " sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as odd:
        assert odd.stdout is not None
        odd.stdout.readline()
        started = start_time(odd.pid)
        assert started is not None
        assert started.isdecimal()
        assert int(started) >= int(start_time(os.getpid()) or "0")
        odd.kill()


def test_the_machine_id_itself_is_not_shown() -> None:
    me = this_process()
    assert len(me.machine) == 16
    assert me.machine not in "".join(os.uname())
