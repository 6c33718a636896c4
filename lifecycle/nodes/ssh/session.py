"""SSH to the nodes: OpenSSH's client with pinned host keys and persistent connections.

Host keys are always checked. A provider that created the machine returns its keys, and they are
pinned in the cluster's own known_hosts file; for machines that existed before, the user's
known_hosts (or the file that the spec names) is used.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import IO, Self, TypeAlias

import msgspec

from ....inventory.hosts import Host
from ...cluster.outcome import LifecycleError, failure
from .arguments import as_arguments, destination, identity
from .bastion import Bastions, Connections
from .pins import Pins
from .unreachable import describe_reason, sudo_refused

_KEPT_OPEN_S = 60
_PARALLEL = 64
_LONGEST_BASE = 25
_SSH_FAILED = 255
"""Exit status of ssh itself, as opposed to the remote command's (man ssh)."""


class SshResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a command on a node ended with."""

    returncode: int
    stdout: str
    stderr: str


class Unreachable(msgspec.Struct, frozen=True, kw_only=True):
    """A node on which no command could be run, and why."""

    reason: str


Answer: TypeAlias = SshResult | Unreachable


class SshSession:
    """Connections to the nodes of one cluster, shared with Ansible through OpenSSH's masters."""

    def __init__(self, workdir: Path) -> None:
        """Use `workdir` (0700) for known_hosts; nothing is contacted yet."""
        self.workdir = workdir
        self._known_hosts = workdir / "known_hosts"
        self._sockets = _socket_directory(workdir)
        self._pins = Pins(self._known_hosts)
        self._bastions = Bastions(workdir, self._known_hosts)
        self._connections = Connections(_KEPT_OPEN_S)

    def __enter__(self) -> Self:
        """Return the session."""
        return self

    def __exit__(self, *_: object) -> None:
        """Leave masters to their own end: the next command within a minute reuses them."""

    def trust(self, hosts: Iterable[Host]) -> None:
        """Pin the host keys that came with these hosts and their bastions; see `Pins.add`."""
        self._pins.add(hosts)

    def options(self, host: Host) -> list[str]:
        """Return ssh's options for a host, as Ansible's connection plugin takes them too."""
        options = [
            "BatchMode=yes",
            *identity(host, self._known_hosts, self._to_bastion()),
            f"ControlPath={self._socket()}",
        ]
        options += ["ControlMaster=auto", f"ControlPersist={_KEPT_OPEN_S}"]
        return as_arguments(options)

    def argv(self, host: Host, command: list[str] | None = None) -> list[str]:
        """Return the ssh command line for a person's shell, or for one command of theirs.

        It shares no connection: a person's shell outlives the commands that come and go.
        """
        self.trust([host])
        options = as_arguments([*identity(host, self._known_hosts), "ControlPath=none"])
        # One argument is a shell line, as with ssh itself; several are one command, quoted as
        # given.
        words = [] if not command else [command[0] if len(command) == 1 else shlex.join(command)]
        terminal = [] if words else ["-t"]
        return ["ssh", *terminal, *options, *destination(host), *words]

    def run(
        self, host: Host, command: str, *, stdin: str | None = None, timeout_s: float = 60
    ) -> Answer:
        """Run a shell command on one node.

        Args:
            host: the node; its keys are pinned first.
            command: a line for a POSIX shell.
            stdin: text for its standard input; None: empty.
            timeout_s: limit in seconds.
        """
        self.trust([host])
        closed = self.closed_way(host)
        if closed is not None:
            return closed
        # A connection that outlives this call must not hold its pipes: stderr goes to a file.
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
            try:
                done = subprocess.run(
                    self._command(host, command),
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
            except FileNotFoundError:
                raise _no_client() from None
            return self._answer(host, done.returncode, done.stdout, errors)

    def closed_way(self, host: Host) -> Unreachable | None:
        """Open a host's bastion connection; return why that failed, None on success."""
        if host.silent:
            return Unreachable(reason=host.silent)
        if not host.ssh.bastion:
            return None
        try:
            problem = self._bastions.open(host, self._to_bastion())
        except FileNotFoundError:
            raise _no_client() from None
        if not problem:
            problem = self._connections.open(host, [*self.options(host), *destination(host)])
        return Unreachable(reason=problem) if problem else None

    def stream(
        self, host: Host, command: str, take: Callable[[str], None], *, timeout_s: float
    ) -> Answer:
        """Run a shell command on one node and pass on its output line by line.

        The result's stdout is empty. A command that reached the time limit may continue on the
        node.

        Args:
            host: the node; its keys are pinned first.
            command: a line for a POSIX shell.
            take: called with each line, its newline included.
            timeout_s: limit in seconds.
        """
        self.trust([host])
        closed = self.closed_way(host)
        if closed is not None:
            return closed
        late = threading.Event()

        def give_up() -> None:
            late.set()
            process.kill()

        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
            try:
                process = subprocess.Popen(
                    self._command(host, command),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    text=True,
                    errors="replace",
                )
            except FileNotFoundError:
                raise _no_client() from None
            timer = threading.Timer(timeout_s, give_up)
            timer.start()
            try:
                for line in process.stdout or ():
                    take(line)
                returncode = process.wait()
            finally:
                timer.cancel()
                process.kill()
                process.wait()
            if late.is_set():
                return Unreachable(reason=f"no end within {timeout_s:.0f} s")
            return self._answer(host, returncode, "", errors)

    def run_many(
        self, hosts: Iterable[Host], command: str, *, timeout_s: float = 60
    ) -> dict[str, Answer]:
        """Run the same command on many nodes at once; return host name -> answer, in order."""
        return self.feed_many(hosts, command, None, timeout_s=timeout_s)

    def feed_many(
        self, hosts: Iterable[Host], command: str, stdin: str | None, *, timeout_s: float = 60
    ) -> dict[str, Answer]:
        """Run the same command on many nodes at once with text on its standard input."""
        everyone = list(hosts)
        if not everyone:
            return {}
        self.trust(everyone)
        with ThreadPoolExecutor(min(_PARALLEL, len(everyone))) as pool:
            answers = pool.map(
                lambda h: self.run(h, command, stdin=stdin, timeout_s=timeout_s), everyone
            )
            return {h.name: answer for h, answer in zip(everyone, answers, strict=True)}

    def connect(self, hosts: Iterable[Host]) -> None:
        """Open what leads to many hosts, for Ansible; what can't be opened it finds, too."""
        behind = [host for host in hosts if host.ssh.bastion]
        if behind:
            self.trust(behind)
            with ThreadPoolExecutor(min(_PARALLEL, len(behind))) as pool:
                list(pool.map(self.closed_way, behind))

    def close(self) -> None:
        """End every kept connection of this cluster; needed before its nodes go away."""
        for socket in self._sockets.glob("*"):
            command = ["ssh", "-F", "none", "-o", f"ControlPath={socket}", "-O", "exit", "cluster"]
            with suppress(OSError, subprocess.TimeoutExpired):
                subprocess.run(command, capture_output=True, check=False, timeout=10)
            socket.unlink(missing_ok=True)
        with suppress(OSError):
            self._sockets.rmdir()

    def ansible_variables(self, host: Host) -> Mapping[str, str | int]:
        """Return the inventory variables that make Ansible use the same connection."""
        return {
            "ansible_host": host.address,
            "ansible_port": host.ssh.port,
            "ansible_user": host.ssh.user,
            "ansible_ssh_common_args": shlex.join(self.options(host)),
        }

    def _command(self, host: Host, command: str) -> list[str]:
        # Whatever the user's login shell is, the line is for a POSIX one.
        return [
            "ssh",
            *self.options(host),
            *destination(host),
            f"exec sh -c {shlex.quote(command)}",
        ]

    def _answer(self, host: Host, returncode: int, stdout: str, errors: IO[str]) -> Answer:
        errors.seek(0)
        stderr = errors.read()
        if returncode == _SSH_FAILED:
            return Unreachable(reason=describe_reason(stderr, host))
        if returncode < 0:
            return Unreachable(reason=f"its ssh was ended by {signal.Signals(-returncode).name}")
        if returncode and (refused := sudo_refused(stderr, host)):
            return Unreachable(reason=refused)
        return SshResult(returncode=returncode, stdout=stdout, stderr=stderr)

    def _socket(self) -> str:
        """Return ControlPath; %C is the hash of host, port and user."""
        self._sockets.mkdir(mode=0o700, exist_ok=True)
        status = self._sockets.lstat()
        if status.st_uid != os.getuid() or status.st_mode & 0o170077 != 0o040000:  # noqa: PLR2004
            raise failure(
                "GC948",
                f"{self._sockets} is not a private folder of yours",
                detail="the sockets of the connections to the nodes would be in it",
                hint=f"rm -r {self._sockets}",
            )
        return f"{self._sockets}/%C"

    def _to_bastion(self) -> str:
        """Return ControlPath of the connections to bastions, which may be nodes, too."""
        return f"{self._socket().removesuffix('%C')}b%C"


def _no_client() -> LifecycleError:
    return failure(
        "GC921",
        "no host can be reached: ssh is not installed",
        hint="sudo apt-get install -y openssh-client",
    )


def _socket_directory(workdir: Path) -> Path:
    """Return where the sockets of a cluster go; the same for every command, so that they share.

    unix(7) gives a path 107 bytes, of which ssh needs 58 (hash and suffix) and the name some 30.
    """
    name = hashlib.sha256(str(workdir.resolve()).encode()).hexdigest()[:12]
    runtime = Path(os.environ.get("XDG_RUNTIME_DIR", ""))
    if runtime.is_absolute() and runtime.is_dir() and len(str(runtime)) <= _LONGEST_BASE:
        return runtime / f"gcluster-{name}"
    return Path("/tmp") / f"gcluster-{os.getuid()}-{name}"  # noqa: S108  # checked before use
