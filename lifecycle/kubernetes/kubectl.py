"""kubectl on a control plane, over the connections that the cluster has; manifests on its stdin.

No kubeconfig leaves the nodes and no port of the API is opened to this machine.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import msgspec

from gcluster.lifecycle.ssh import SshSession, Unreachable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gcluster.inventory.hosts import ClusterInventory, Host
    from gcluster.lifecycle.ssh import Answer, SshResult

AS_ROOT = '$([ "$(id -u)" = 0 ] || echo sudo -n)'
"""Shell words before a command that only root may run: admin.conf is root's."""
COMMAND = f"{AS_ROOT} kubectl --kubeconfig=/etc/kubernetes/admin.conf"
"""kubectl as root of a control plane runs it."""
_SILENT = (
    "connection to the server",
    "unable to connect to the server",
    "error from server (serviceunavailable)",
    "error from server (timeout)",
    "server is currently unable to handle the request",
    "etcdserver:",
    "admin.conf: no such file",
    "kubectl: not found",
    "kubectl: command not found",
)
"""Words of kubectl where no API server answered it, as opposed to one that said no (client-go and
kubectl 1.35, seen on local nodes)."""


class ApiSilent(Exception):  # noqa: N818  # it says what happened, as ServiceSilent does
    """No API server answered on any control plane; the text says why."""


class ApiRefused(Exception):  # noqa: N818  # it says what happened
    """The API server answered and said no; `words` are its own."""

    def __init__(self, words: str) -> None:
        """Hold what kubectl wrote to stderr."""
        super().__init__(words.strip().splitlines()[-1] if words.strip() else "it said nothing")
        self.words = words.strip()


class Kubectl:
    """The cluster's API as root of its control planes sees it."""

    def __init__(self, session: SshSession, control_planes: Sequence[Host]) -> None:
        """Ask these control planes, the first that answers; nothing is contacted yet."""
        self._session = session
        self._control_planes = list(control_planes)

    def run(self, *arguments: str, stdin: str | None = None, timeout_s: float = 60) -> SshResult:
        """Run kubectl and return how it ended, whatever that is.

        Args:
            arguments: of kubectl, as given; they are quoted. No secret: they show in `ps`.
            stdin: for `--filename=-`.
            timeout_s: seconds until a control plane is given up.

        Raises:
            ApiSilent: no control plane has an API server that answers.
        """
        line = f"{COMMAND} {shlex.join(arguments)}"
        reasons = []
        for host in self._control_planes:
            answer = self._session.run(host, line, stdin=stdin, timeout_s=timeout_s)
            if isinstance(answer, Unreachable):
                reasons.append(f"{host.name}: {answer.reason}")
            elif answer.returncode != 0 and _is_silence(answer.stderr):
                reasons.append(f"{host.name}: {answer.stderr.strip().splitlines()[-1]}")
            else:
                return answer
        raise ApiSilent("; ".join(reasons) or "the cluster has no control plane")

    def stream(self, *arguments: str, take: Callable[[str], None], timeout_s: float) -> Answer:
        """Run kubectl on the first control plane that answers; hand over its output line by line.

        Args:
            arguments: of kubectl, as given.
            take: called with each line, its newline included.
            timeout_s: seconds until it is given up.
        """
        line, began = f"{COMMAND} {shlex.join(arguments)}", False

        def taken(said: str) -> None:
            nonlocal began
            began = True
            take(said)

        answer: Answer = Unreachable(reason="the cluster has no control plane")
        for host in self._control_planes:
            answer = self._session.stream(host, line, taken, timeout_s=timeout_s)
            silent = not isinstance(answer, Unreachable) and _is_silence(answer.stderr)
            if began or not (silent or isinstance(answer, Unreachable)):
                break
        return answer

    def text(self, *arguments: str, stdin: str | None = None, timeout_s: float = 60) -> str:
        """Run kubectl and return what it printed.

        Raises:
            ApiRefused: it ended with another status than 0.
            ApiSilent: no API server answers.
        """
        answer = self.run(*arguments, stdin=stdin, timeout_s=timeout_s)
        if answer.returncode != 0:
            raise ApiRefused(answer.stderr or answer.stdout)
        return answer.stdout

    def get(self, *what: str, timeout_s: float = 60) -> Any:
        """Return the answer of `kubectl get WHAT.. --output=json`.

        Raises:
            ApiRefused: there is no such kind, or no object of that name.
            ApiSilent: no API server answers.
        """
        return msgspec.json.decode(self.text("get", *what, "--output=json", timeout_s=timeout_s))


def kubectl_of(session: SshSession, inventory: ClusterInventory) -> Kubectl:
    """Return the API of a cluster whose control planes are in `inventory`, first one first."""
    real = [h for h in inventory.with_role("controller") if h.connection == "ssh"]
    return Kubectl(session, real)


def _is_silence(stderr: str) -> bool:
    words = stderr.lower()
    return any(sign in words for sign in _SILENT)
