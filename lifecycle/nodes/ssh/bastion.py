"""The one connection to a bastion that all connections behind it share, and those behind it.

A stock sshd turns away logins at random from the eleventh that is under way (MaxStartups
10:30:100), so a cluster must not log in to its bastion once a node. Channels that are only
forwarded don't count as sessions (MaxSessions), so one connection carries all nodes.
"""

from __future__ import annotations

import random
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ....inventory.hosts import Host
from ....stacks.io import atomic
from .arguments import bastion_place, marker, to_bastion
from .unreachable import describe_reason, timed_out, turned_away

_AT_ONCE = 16
"""New connections through a bastion at the same time: each is a login, which takes a processor."""
_KNOWN_FOR_S = 5.0
"""Seconds that an open connection is taken for open, and one that failed for failed."""
_TRIES = 6
_FIRST_PAUSE_S = 0.5
_OPEN_LIMIT_S = 90.0


def retry_pauses() -> Iterator[float]:
    """Yield how long to wait before each further try, in seconds: 0.5 s and doubling, with jitter.

    Who was turned away together doesn't come back together. About 15 s in all.
    """
    for attempt in range(_TRIES - 1):
        yield _FIRST_PAUSE_S * 2**attempt * random.uniform(0.5, 1.0)  # noqa: S311  # no secret


class _Found(msgspec.Struct, frozen=True):
    problem: str
    at: float


class Bastions:
    """Opens connections to bastions, each once for all threads and commands of a cluster."""

    def __init__(self, workdir: Path, known_hosts: Path) -> None:
        """Use the cluster's folder for locks, and its pinned keys."""
        self._workdir = workdir
        self._known_hosts = known_hosts
        self._mutex = threading.Lock()
        self._found: dict[tuple[str | None, ...], _Found] = {}

    def open(self, host: Host, shared: str) -> str:
        """Have the connection to a host's bastion open; return why it can't be, "" when it is.

        Args:
            host: a host behind the bastion; its keys and the bastion's are pinned.
            shared: ControlPath of the connection.
        """
        ssh = host.ssh
        key = (ssh.bastion, ssh.bastion_key_file or ssh.key_file, *ssh.bastion_host_keys)
        with self._mutex:
            found = self._found.get(key)
            if found is None or time.monotonic() - found.at > _KNOWN_FOR_S:
                with atomic.locked(self._workdir / "bastion.lock"):
                    problem = "" if self._is_open(host, shared) else self._connect(host, shared)
                found = self._found[key] = _Found(problem, time.monotonic())
            return found.problem

    def _is_open(self, host: Host, shared: str) -> bool:
        words = to_bastion(host.ssh, self._known_hosts, shared, "ControlMaster=no")
        requested = subprocess.run(
            [*words[:-2], "-O", "check", *words[-2:]], capture_output=True, check=False
        )
        return requested.returncode == 0

    def _connect(self, host: Host, shared: str) -> str:
        words = to_bastion(host.ssh, self._known_hosts, shared, "ControlMaster=auto")
        stderr = _opened([*words[:-2], "-f", "-N", *words[-2:]])
        return f"its bastion: {describe_reason(stderr, _itself(host))}" if stderr else ""


class Connections:
    """Opens the connections to hosts behind bastions, a few at a time, each again if need be."""

    def __init__(self, kept_s: float) -> None:
        """Take connections to be there for `kept_s` after they were used last."""
        self._kept_s = kept_s / 2
        self._slots = threading.BoundedSemaphore(_AT_ONCE)
        self._used: dict[str, float] = {}

    def open(self, host: Host, words: list[str]) -> str:
        """Open the connection to a host; return why that failed, "" on success.

        Args:
            host: behind a bastion that is open.
            words: ssh's options and the destination, with a persistent master.
        """
        used = self._used.get(marker(host))
        if used is None or time.monotonic() - used > self._kept_s:
            at = words.index("--")
            with self._slots:
                stderr = _opened(["ssh", *words[:at], "-f", "-N", *words[at:]])
            if stderr:
                return describe_reason(stderr, host)
        self._used[marker(host)] = time.monotonic()
        return ""


def _opened(words: list[str]) -> str:
    """Open a persistent connection; return ssh's message where it failed, "" on success.

    One that was closed before login is tried again, and one that timed out once more.
    """
    pauses, late = retry_pauses(), 0
    while True:
        stderr = _try_once(words)
        late += timed_out(stderr)
        again = turned_away(stderr) or (timed_out(stderr) and late == 1)
        pause = next(pauses, None) if again else None
        if pause is None:
            return stderr
        time.sleep(pause)


def _try_once(words: list[str]) -> str:
    # The connection outlives this call and must not hold its pipes: stderr goes to a file.
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
        try:
            done = subprocess.run(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                timeout=_OPEN_LIMIT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"timed out after {_OPEN_LIMIT_S:.0f} s"
        errors.seek(0)
        said = errors.read()
    return "" if done.returncode == 0 else said or "ssh failed without output"


def _itself(host: Host) -> Host:
    """Return the bastion as a host, to describe why it gives no answer."""
    user, address, port = bastion_place(host.ssh)
    ssh = msgspec.structs.replace(
        host.ssh,
        user=user or host.ssh.user,
        port=int(port or 22),
        key_file=host.ssh.bastion_key_file or host.ssh.key_file,
        bastion=None,
        host_keys=host.ssh.bastion_host_keys,
    )
    return msgspec.structs.replace(host, address=address, ssh=ssh)
