"""Who holds something: a process of this machine, and no other that ever had its pid."""

from __future__ import annotations

import getpass
import hashlib
import os
import socket
from functools import cache
from pathlib import Path

import msgspec

_PROC = Path("/proc")


class ProcessIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """One process, on one machine, since one boot."""

    who: str
    """user@host, for people."""
    machine: str
    """Hash of machine id and host name: clones and containers of one image differ."""
    boot: str
    """Boot id of the kernel; "" where it isn't known."""
    namespace: str
    """pid namespace: pids of another one can't be judged from here; "" where unknown."""
    pid: int
    started: str
    """Start time in clock ticks since boot; "" where it isn't known."""

    def is_gone(self) -> bool:
        """Whether the process certainly no longer runs, as far as this machine can know."""
        here = this_process()
        if self.machine != here.machine:
            return False
        if self.boot and here.boot and self.boot != here.boot:
            return True
        if self.namespace != here.namespace:
            return False
        return not is_running(self.pid, self.started)


def this_process() -> ProcessIdentity:
    """Return the identity of the calling process."""
    pid = os.getpid()
    return ProcessIdentity(
        who=user_at_host(),
        machine=_machine(),
        boot=_read("/proc/sys/kernel/random/boot_id"),
        namespace=pid_namespace(),
        pid=pid,
        started=start_time(pid) or "",
    )


def is_running(pid: int, started: str) -> bool:
    """Say whether the process with this pid and start time runs in this pid namespace."""
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

    A zombie doesn't run: its parent has only not asked for its exit code yet.
    """
    try:
        stat = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    # proc_pid_stat(5): the name stands in parentheses and may hold any character; the fields
    # after it are counted from 3 (state), 22 is starttime.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in {"Z", "X", "x"} else fields[19]


def pid_namespace() -> str:
    """Return the id of this process's pid namespace; "" where there is none."""
    try:
        return str((_PROC / "self/ns/pid").stat().st_ino)
    except OSError:
        return ""


@cache
def user_at_host() -> str:
    """Return user@host; the user is a number where it has no name."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # no passwd entry, as in many containers
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"


def pipeline_job() -> str:
    """Return the page of the pipeline's job that this process is part of; "" outside of one."""
    env = os.environ
    if env.get("GITHUB_RUN_ID") and env.get("GITHUB_REPOSITORY"):
        server = env.get("GITHUB_SERVER_URL", "https://github.com")
        return f"{server}/{env['GITHUB_REPOSITORY']}/actions/runs/{env['GITHUB_RUN_ID']}"
    return env.get("CI_JOB_URL") or env.get("BUILD_URL") or ""


def pipeline_commit() -> str:
    """Return the commit that this process's pipeline is of; "" outside of one."""
    commit = os.environ.get("GITHUB_SHA") or os.environ.get("CI_COMMIT_SHA") or ""
    return f"commit {commit}" if commit and pipeline_job() else ""


@cache
def _machine() -> str:
    # machine-id(5) asks not to show the id itself to others: only its hash is stored.
    identifier = _read("/etc/machine-id") or _read("/proc/sys/kernel/random/boot_id")
    named = f"gcluster:{identifier}:{socket.gethostname()}"
    return hashlib.sha256(named.encode()).hexdigest()[:16]


def _read(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""
