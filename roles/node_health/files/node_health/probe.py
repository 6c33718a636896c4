"""How checks read the node: commands and files, each with a time limit, never hanging.

A process that sleeps in the kernel (a dead NFS or Lustre server) can't be killed: it is abandoned,
not waited for, and while it exists no second one is started on the same resource.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

from .finding import CheckIncomplete

COMMAND_TIMEOUT_S = 20.0
"""Most that one command may take; `nvidia-smi -q` of eight GPUs takes 2 to 5 s without
persistence mode."""
_KILL_WAIT_S = 1.0
_MOST_OUTPUT = 32 * 2**20
_FOLDERS = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Probe:
    """Reads the node below `root` (tests: a folder with a recorded /sys and /proc)."""

    def __init__(self, root: Path = Path("/"), *, search: str | None = None) -> None:
        """Set the root of files, and the folders of commands ahead of the system's."""
        self.root = root
        self._search = f"{search}:{_FOLDERS}" if search else _FOLDERS

    def has(self, command: str) -> bool:
        """Return whether a command exists."""
        return shutil.which(command, path=self._search) is not None

    def run(
        self,
        *command: str,
        timeout_s: float = COMMAND_TIMEOUT_S,
        accept: tuple[int, ...] = (0,),
        given: str = "",
    ) -> str:
        """Return what a command prints that gets `given` on its standard input.

        Raises:
            CheckIncomplete: it isn't there, didn't end in time, or failed.
        """
        program = shutil.which(command[0], path=self._search)
        if program is None:
            raise CheckIncomplete(f"{command[0]} is not installed")
        shown = " ".join(command)
        try:
            process = subprocess.Popen(
                [program, *command[1:]],
                stdin=subprocess.PIPE if given else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={"PATH": self._search, "LC_ALL": "C", "HOME": "/"},
            )
        except OSError as error:
            raise CheckIncomplete(f"{shown}: {error.strerror}") from error
        try:
            output, _ = process.communicate(given.encode() or None, timeout=timeout_s)
        except subprocess.TimeoutExpired:
            give_up(process)
            raise CheckIncomplete(f"{shown} did not end within {timeout_s:g} s") from None
        text = output[:_MOST_OUTPUT].decode(errors="replace")
        if process.returncode not in accept:
            lines = text.strip().splitlines() or ["no output"]
            raise CheckIncomplete(f"{shown} failed ({process.returncode}): {lines[-1][:200]}")
        return text

    def read(self, path: str) -> str:
        """Return a file of /proc or /sys without its last line feed.

        Raises:
            CheckIncomplete: it can't be read.
        """
        try:
            return self.path(path).read_text(errors="replace").strip()
        except OSError as error:
            raise CheckIncomplete(f"{path}: {error.strerror}") from error

    def read_or(self, path: str, otherwise: str = "") -> str:
        """Return a file, or something else where it isn't."""
        try:
            return self.read(path)
        except CheckIncomplete:
            return otherwise

    def glob(self, pattern: str) -> list[str]:
        """Return absolute paths below the root that fit, sorted."""
        found = sorted(self.root.glob(pattern.lstrip("/")))
        return ["/" + str(path.relative_to(self.root)) for path in found]

    def path(self, path: str) -> Path:
        """Return where an absolute path of the node really lies."""
        return self.root / path.lstrip("/")


def give_up(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and all it started; don't wait for one that the kernel holds."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    end = time.monotonic() + _KILL_WAIT_S
    while process.poll() is None and time.monotonic() < end:
        time.sleep(0.02)
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()


def is_alive(pid: int, started: str) -> bool:
    """Return whether the process with this id and start time (in ticks since boot) still runs."""
    return bool(started) and start_of(pid) == started


def start_of(pid: int) -> str:
    """Return when a process started, in ticks since boot; "" when there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return ""
    fields = text.rpartition(")")[2].split()
    return "" if fields[0] in {"Z", "X"} else fields[19]
