"""Who runs kubectl: the ways to a cluster's API, of which some may be silent while one answers."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from ...inventory.hosts import Host

if TYPE_CHECKING:
    from ..ssh import Answer, SshSession

AS_ROOT = '$([ "$(id -u)" = 0 ] || echo sudo -n)'
"""Shell words before a command that only root may run: admin.conf is root's."""
COMMAND = f"{AS_ROOT} kubectl --kubeconfig=/etc/kubernetes/admin.conf"
"""kubectl as root of a control plane runs it."""


class Way(Protocol):
    """A machine that has kubectl, and what lets it in."""

    @property
    def name(self) -> str:
        """How it is called where it is silent."""
        ...

    def run(self, arguments: Sequence[str], *, stdin: str | None, timeout_s: float) -> Answer:
        """Run kubectl to its end; Unreachable where it couldn't be run or came to no end."""
        ...

    def stream(
        self, arguments: Sequence[str], take: Callable[[str], None], *, timeout_s: float
    ) -> Answer:
        """Run kubectl and hand over its output line by line."""
        ...


class OnHost:
    """kubectl of a control plane, over the connections that the cluster has.

    No kubeconfig leaves the nodes and no port of the API is opened to this machine.
    """

    def __init__(self, session: SshSession, host: Host) -> None:
        """Use that control plane; nothing is contacted yet."""
        self._session = session
        self._host = host
        self.name = host.name

    def run(self, arguments: Sequence[str], *, stdin: str | None, timeout_s: float) -> Answer:
        """Run kubectl there; see `Way`."""
        line = f"{COMMAND} {shlex.join(arguments)}"
        return self._session.run(self._host, line, stdin=stdin, timeout_s=timeout_s)

    def stream(
        self, arguments: Sequence[str], take: Callable[[str], None], *, timeout_s: float
    ) -> Answer:
        """Run kubectl there; see `Way`."""
        line = f"{COMMAND} {shlex.join(arguments)}"
        return self._session.stream(self._host, line, take, timeout_s=timeout_s)
