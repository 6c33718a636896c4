"""Who holds something: a process of this machine, and no other that ever had its pid."""

from __future__ import annotations

import getpass
import hashlib
import os
import socket
from functools import cache
from pathlib import Path

import msgspec

from ...stacks.io.process import is_running, start_time

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
        """Return whether the process has certainly ended, as far as this machine can know."""
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
    # machine-id(5) forbids showing the id itself to others: only its hash is stored.
    identifier = _read("/etc/machine-id") or _read("/proc/sys/kernel/random/boot_id")
    named = f"gcluster:{identifier}:{socket.gethostname()}"
    return hashlib.sha256(named.encode()).hexdigest()[:16]


def _read(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""
