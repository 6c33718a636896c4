"""A command on a node that reads much: its standard input written block by block, never held."""

from __future__ import annotations

import shlex
import subprocess
import tempfile
import threading
from collections.abc import Iterable
from contextlib import suppress

from ....inventory.hosts import Host
from .arguments import destination
from .session import SshResult, SshSession, Unreachable
from .unreachable import describe_reason, sudo_refused

_SSH_FAILED = 255
"""Exit status of ssh itself (man ssh)."""


def feed(
    session: SshSession, host: Host, command: str, content: Iterable[bytes], *, timeout_s: float
) -> SshResult | Unreachable:
    """Run a shell command on one node that reads `content`; return what it ended with.

    Args:
        session: connections of the cluster.
        host: the node; its keys are pinned first.
        command: a line for a POSIX shell.
        content: blocks for its standard input; it may end before it has read them all.
        timeout_s: seconds until it is given up.
    """
    session.trust([host])
    closed = session.closed_way(host)
    if closed is not None:
        return closed
    line = f"exec sh -c {shlex.quote(command)}"
    argv = ["ssh", *session.options(host), *destination(host), line]
    with tempfile.TemporaryFile() as errors, tempfile.TemporaryFile() as said:
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=said, stderr=errors) as process:
            timer = threading.Timer(timeout_s, process.kill)
            timer.start()
            try:
                if process.stdin is not None:
                    with suppress(BrokenPipeError), process.stdin:
                        for block in content:
                            process.stdin.write(block)
                returncode = process.wait()
            except BaseException:
                process.kill()
                raise
            finally:
                timer.cancel()
        errors.seek(0)
        said.seek(0)
        stderr = errors.read().decode(errors="replace")
        if returncode == _SSH_FAILED:
            return Unreachable(reason=describe_reason(stderr, host))
        if returncode and (refused := sudo_refused(stderr, host)):
            return Unreachable(reason=refused)
        stdout = said.read().decode(errors="replace")
        return SshResult(returncode=returncode, stdout=stdout, stderr=stderr)
