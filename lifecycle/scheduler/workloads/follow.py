"""Follows a job to its end: its states, and its log from the node that writes it."""

from __future__ import annotations

import base64
import codecs
import time
from collections.abc import Callable
from typing import Protocol

from ....inventory.hosts import ClusterInventory, Host
from ...nodes.ssh import SshSession, Unreachable
from ...nodes.ssh.arguments import as_root
from .jobs import Job, JobState

POLL_S = 2.0
_LIMIT_S = 30
_TAIL = 'test -r "$2" && tail -c "+$1" "$2" | base64 -w 0'
"""The rest of a file from its byte $1 on, from 1: exactly, whatever bytes these are."""


class JobLog:
    """The log of a job, read from where the last reading ended."""

    def __init__(self, session: SshSession, hosts: ClusterInventory) -> None:
        """Set the connections; nothing is read yet."""
        self._session = session
        self._hosts: dict[str, Host] = {host.name: host for host in hosts.hosts}
        self._from = ("", "")
        self._read = 0
        self._text = codecs.getincrementaldecoder("utf-8")("replace")

    def more(self, state: JobState) -> str:
        """Return what came since the last call; "" where the log can't be read now.

        A job that starts again elsewhere writes to the log of that node: that is read from its
        beginning, or, on storage of all nodes, from where it was.
        """
        host = self._hosts.get(state.batch_host)
        if host is None or not state.log:
            return ""
        if (host.name, state.log) != self._from:
            size = self._size(host, state.log)
            self._from = (host.name, state.log)
            self._read = self._read if size >= self._read else 0
        words = ["sh", "-c", _TAIL, "sh", str(self._read + 1), state.log]
        answer = self._session.run(host, as_root(host, words), timeout_s=_LIMIT_S)
        if isinstance(answer, Unreachable) or answer.returncode != 0:
            return ""
        content = base64.b64decode(answer.stdout)
        self._read += len(content)
        return self._text.decode(content)

    def _size(self, host: Host, path: str) -> int:
        line = as_root(host, ["stat", "--format=%s", path])
        answer = self._session.run(host, line, timeout_s=_LIMIT_S)
        if isinstance(answer, Unreachable) or not answer.stdout.strip().isdigit():
            return 0
        return int(answer.stdout)


class Queue(Protocol):
    """Jobs that were submitted, under either scheduler."""

    def jobs(self) -> tuple[Job, ...]:
        """Return what runs, waits, or ended a short while ago."""
        ...

    def state(self, job: str) -> JobState:
        """Return the state of one job."""
        ...

    def cancel(self, job: str) -> None:
        """End a job, or take it out of the queue."""
        ...


class Log(Protocol):
    """What a job prints."""

    def more(self, state: JobState) -> str:
        """Return what came since the last call."""
        ...


def follow(
    queue: Queue,
    log: Log,
    job: str,
    *,
    changed: Callable[[JobState], None],
    printed: Callable[[str], None],
    looked: Callable[[JobState], None] = lambda _: None,
    pause: Callable[[float], None] = time.sleep,
) -> JobState:
    """Follow a job to its end and return its last state.

    Args:
        queue: has the job.
        log: of the job.
        job: its id.
        changed: receives each state that differs from the one before.
        printed: receives what the job printed.
        looked: receives its state at each look.
        pause: waits between two looks.

    Raises:
        LifecycleError: see `JobQueue.state`.
    """
    before = ("", "", 0)
    while True:
        state = queue.state(job)
        shown = (state.state, state.reason if state.state == "PENDING" else "", state.restarts)
        text = log.more(state)
        if text and state.is_over:  # what it printed last comes before its end
            printed(text)
        if shown != before:
            changed(state)
            before = shown
        if text and not state.is_over:
            printed(text)
        looked(state)
        if state.is_over:
            return state
        pause(POLL_S)
