"""SSH to the nodes: OpenSSH's client with pinned host keys and connections that are kept open.

Host keys are always checked. A provider that made the machine hands over its keys, and they are
pinned in a known_hosts file of the cluster's own; for machines that existed before, the user's
known_hosts (or the file the spec names) vouches.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import subprocess
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeAlias

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gcluster.inventory.hosts import Host

CONNECT_TIMEOUT_S = 10
"""Seconds until a host that doesn't answer at all counts as unreachable."""
_KEPT_OPEN_S = 60
_PARALLEL = 64
_SSH_FAILED = 255
"""Exit status of ssh itself, as opposed to the remote command's (man ssh)."""


class SshResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a command on a node ended with."""

    returncode: int
    stdout: str
    stderr: str


class Unreachable(msgspec.Struct, frozen=True, kw_only=True):
    """A node that no command could be run on, and why, in words."""

    reason: str


Answer: TypeAlias = SshResult | Unreachable


class SshSession:
    """Connections to the nodes of one cluster, shared with Ansible through OpenSSH's masters."""

    def __init__(self, workdir: Path) -> None:
        """Use `workdir` (0700) for known_hosts; nothing is contacted yet."""
        self._known_hosts = workdir / "known_hosts"
        self._sockets = _socket_directory(workdir)
        self._lines = _pinned(self._known_hosts)
        self._mutex = threading.Lock()

    def __enter__(self) -> Self:
        """Return the session."""
        return self

    def __exit__(self, *_: object) -> None:
        """Leave masters to their own end: the next command within a minute reuses them."""

    def trust(self, hosts: Iterable[Host]) -> None:
        """Pin the host keys that came with these hosts; a changed key replaces the old pin."""
        with self._mutex:
            before = dict(self._lines)
            for host in hosts:
                if host.ssh.host_keys:
                    marker = _marker(host)
                    self._lines[marker] = tuple(f"{marker} {key}" for key in host.ssh.host_keys)
            if self._lines == before and self._known_hosts.exists():
                return
            text = "".join(f"{line}\n" for lines in self._lines.values() for line in lines)
            temporary = self._known_hosts.with_suffix(f".{os.getpid()}")
            temporary.write_text(text, encoding="utf-8")
            temporary.replace(self._known_hosts)

    def options(self, host: Host) -> list[str]:
        """Return ssh's options for a host, as Ansible's connection plugin takes them too."""
        ssh = host.ssh
        options = [
            "BatchMode=yes",
            "StrictHostKeyChecking=yes",
            "UpdateHostKeys=no",
            f"ConnectTimeout={CONNECT_TIMEOUT_S}",
            "ServerAliveInterval=15",
            "ControlMaster=auto",
            f"ControlPersist={_KEPT_OPEN_S}",
            f"ControlPath={self._sockets}/%C",
        ]
        if ssh.host_keys:
            options += [
                f"UserKnownHostsFile={self._known_hosts}",
                "GlobalKnownHostsFile=/dev/null",
                f"HostKeyAlias={_marker(host)}",
            ]
        elif ssh.known_hosts_file:
            options.append(f"UserKnownHostsFile={Path(ssh.known_hosts_file).expanduser()}")
        if ssh.key_file:
            options += [f"IdentityFile={Path(ssh.key_file).expanduser()}", "IdentitiesOnly=yes"]
        if ssh.bastion:
            options.append(f"ProxyJump={ssh.bastion}")
        return [word for option in options for word in ("-o", option)]

    def argv(self, host: Host, command: list[str] | None = None) -> list[str]:
        """Return the ssh command line for a person's shell, or for one command of theirs."""
        # One word is a shell line, as with ssh itself; several are one command, quoted as given.
        words = [] if not command else [command[0] if len(command) == 1 else shlex.join(command)]
        terminal = [] if words else ["-t"]
        return ["ssh", *terminal, *self._destination(host), *words]

    def run(
        self, host: Host, command: str, *, stdin: str | None = None, timeout_s: float = 60
    ) -> Answer:
        """Run a shell command on one node.

        Args:
            host: the node; its keys are pinned first.
            command: a line for the login user's shell.
            stdin: text for its standard input; None: empty.
            timeout_s: seconds until it is given up.
        """
        self.trust([host])
        argv = ["ssh", *self._destination(host), command]
        # A connection that outlives this call must not hold its pipes: stderr goes to a file.
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
            try:
                done = subprocess.run(
                    argv,
                    input=stdin or "",
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    text=True,
                    errors="replace",
                    timeout=timeout_s,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                return Unreachable(reason=f"no answer to a command within {timeout_s:.0f} s")
            errors.seek(0)
            stderr = errors.read()
        if done.returncode == _SSH_FAILED:
            return Unreachable(reason=reason_in_words(stderr, host))
        return SshResult(returncode=done.returncode, stdout=done.stdout, stderr=stderr)

    def run_many(
        self, hosts: Iterable[Host], command: str, *, timeout_s: float = 60
    ) -> dict[str, Answer]:
        """Run the same command on many nodes at once; return host name -> answer, in order."""
        everyone = list(hosts)
        if not everyone:
            return {}
        self.trust(everyone)
        with ThreadPoolExecutor(min(_PARALLEL, len(everyone))) as pool:
            answers = pool.map(lambda h: self.run(h, command, timeout_s=timeout_s), everyone)
            return {h.name: answer for h, answer in zip(everyone, answers, strict=True)}

    def close(self) -> None:
        """End every kept connection of this cluster; needed before its nodes go away."""
        for socket in self._sockets.glob("*"):
            command = ["ssh", "-o", f"ControlPath={socket}", "-O", "exit", "cluster"]
            subprocess.run(command, capture_output=True, check=False)
            socket.unlink(missing_ok=True)
        self._sockets.rmdir()

    def ansible_variables(self, host: Host) -> Mapping[str, str | int]:
        """Return the inventory variables that make Ansible use the same connection."""
        return {
            "ansible_host": host.address,
            "ansible_port": host.ssh.port,
            "ansible_user": host.ssh.user,
            "ansible_ssh_common_args": shlex.join(self.options(host)),
        }

    def _destination(self, host: Host) -> list[str]:
        target = ["-p", str(host.ssh.port), "-l", host.ssh.user, "--", host.address]
        return [*self.options(host), *target]


def _pinned(known_hosts: Path) -> dict[str, tuple[str, ...]]:
    """Return what is pinned already: the name of each host -> its lines."""
    lines: dict[str, tuple[str, ...]] = {}
    if known_hosts.exists():
        for line in known_hosts.read_text(encoding="utf-8").splitlines():
            marker = line.partition(" ")[0]
            lines[marker] = (*lines.get(marker, ()), line)
    return lines


def _marker(host: Host) -> str:
    """Return the name that the host's keys are pinned under: unique and free of addresses."""
    return f"{host.name}.{host.site}"


def _socket_directory(workdir: Path) -> Path:
    """Return a short 0700 directory for control sockets (sun_path holds 108 bytes)."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    base = Path(runtime) if runtime.startswith("/") and Path(runtime).is_dir() else Path("/tmp")  # noqa: S108  # checked below
    name = hashlib.sha256(str(workdir).encode()).hexdigest()[:12]
    path = base / f"gcluster-{os.getuid()}-{name}"
    path.mkdir(mode=0o700, exist_ok=True)
    status = path.lstat()
    if status.st_uid != os.getuid() or status.st_mode & 0o077 or path.is_symlink():
        path = Path(tempfile.mkdtemp(prefix="gcluster-"))
    return path


_WORDS: tuple[tuple[str, str], ...] = (
    ("REMOTE HOST IDENTIFICATION HAS CHANGED", "its host key is not the one that was pinned"),
    ("Host key verification failed", "its host key is unknown: no known_hosts line vouches for it"),
    ("No ED25519 host key is known", "its host key is unknown: no known_hosts line vouches for it"),
    ("Could not resolve hostname", "its name doesn't resolve"),
    ("Connection refused", "connection refused: is sshd running?"),
    ("No route to host", "no route to host: is it powered on?"),
    ("Network is unreachable", "its network is unreachable"),
    ("Connection timed out", "no answer within the time limit"),
    ("Operation timed out", "no answer within the time limit"),
    ("timed out", "no answer within the time limit"),
    ("Connection closed", "the connection was closed before the login"),
    ("Connection reset", "the connection was reset before the login"),
)


def reason_in_words(stderr: str, host: Host) -> str:
    """Turn what ssh said into a sentence about the node; unknown words are kept as they are."""
    if "Permission denied" in stderr:
        key = f" with {host.ssh.key_file}" if host.ssh.key_file else " with the SSH agent's keys"
        return f"login refused for user {host.ssh.user}{key}"
    for said, meaning in _WORDS:
        if said in stderr:
            return meaning
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    return lines[-1] if lines else "ssh failed and said nothing"
