"""kubectl of a cluster, by the first way to its API that answers; manifests on its stdin."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, Self

import msgspec

from ...inventory.hosts import Host
from ..nodes.ssh import Answer, SshResult, SshSession, Unreachable
from ..nodes.ssh.arguments import AS_ROOT

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
"""Messages of kubectl when no API server responded, as opposed to a refusal (client-go and kubectl
1.35, seen on local nodes)."""


class ApiSilent(Exception):  # noqa: N818  # named for what happened, as ServiceSilent
    """No API server responded over any connection; the text says why."""


class ApiRefused(Exception):  # noqa: N818  # named for what happened
    """The API server refused the request; `words` is its message."""

    def __init__(self, words: str) -> None:
        """Hold what kubectl wrote to stderr."""
        super().__init__(words.strip().splitlines()[-1] if words.strip() else "no output")
        self.words = words.strip()


class Kubectl:
    """The cluster's API with administrator rights."""

    def __init__(self, session: SshSession, control_planes: Sequence[Host]) -> None:
        """Use these control planes, the first that responds; nothing is contacted yet."""
        self._runners: list[KubectlRunner] = [OnHost(session, host) for host in control_planes]

    @classmethod
    def by(cls, *runners: KubectlRunner) -> Self:
        """Return the API as it is reached by these ways, the first that answers."""
        made = cls.__new__(cls)
        made._runners = list(runners)  # noqa: SLF001  # its own
        return made

    def run(self, *arguments: str, stdin: str | None = None, timeout_s: float = 60) -> SshResult:
        """Run kubectl and return how it ended, whatever that is.

        Args:
            arguments: of kubectl, as given; they are quoted. No secret: they show in `ps`.
            stdin: for `--filename=-`.
            timeout_s: seconds until a way is given up.

        Raises:
            ApiSilent: no API server answers.
        """
        reasons = []
        for way in self._runners:
            answer = way.run(arguments, stdin=stdin, timeout_s=timeout_s)
            if isinstance(answer, Unreachable):
                reasons.append(f"{way.name}: {answer.reason}")
            elif answer.returncode != 0 and _is_silence(answer.stderr):
                reasons.append(f"{way.name}: {answer.stderr.strip().splitlines()[-1]}")
            else:
                return answer
        raise ApiSilent("; ".join(reasons) or "the cluster has no control plane")

    def stream(self, *arguments: str, take: Callable[[str], None], timeout_s: float) -> Answer:
        """Run kubectl over the first connection that works; pass on its output line by line.

        Args:
            arguments: of kubectl, as given.
            take: called with each line, its newline included.
            timeout_s: limit in seconds.
        """
        began = False

        def taken(message: str) -> None:
            nonlocal began
            began = True
            take(message)

        answer: Answer = Unreachable(reason="the cluster has no control plane")
        for way in self._runners:
            answer = way.stream(arguments, taken, timeout_s=timeout_s)
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


def kubeconfig_document(
    name: str,
    cluster: Mapping[str, str],
    user: str,
    credentials: Mapping[str, Any],
    *,
    space: str = "",
) -> dict[str, Any]:
    """Return a kubeconfig of one cluster, one user, and one context that is the current one.

    Args:
        name: of cluster and context.
        cluster: where its API is, and who signs for it.
        user: the user's name.
        credentials: what the API lets them in with.
        space: namespace of the context; "": the default one.
    """
    context = {"cluster": name, "user": user} | ({"namespace": space} if space else {})
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": dict(cluster)}],
        "users": [{"name": user, "user": dict(credentials)}],
        "contexts": [{"name": name, "context": context}],
        "current-context": name,
    }


def _is_silence(stderr: str) -> bool:
    words = stderr.lower()
    return any(sign in words for sign in _SILENT)


COMMAND = f"{AS_ROOT} kubectl --kubeconfig=/etc/kubernetes/admin.conf"
"""kubectl as root of a control plane runs it: admin.conf is root's."""


class KubectlRunner(Protocol):
    """A machine that has kubectl, and what lets it in."""

    @property
    def name(self) -> str:
        """Its name in messages when it doesn't respond."""
        ...

    def run(self, arguments: Sequence[str], *, stdin: str | None, timeout_s: float) -> Answer:
        """Run kubectl to its end; Unreachable where it couldn't be run or came to no end."""
        ...

    def stream(
        self, arguments: Sequence[str], take: Callable[[str], None], *, timeout_s: float
    ) -> Answer:
        """Run kubectl and pass on its output line by line."""
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
        """Run kubectl there; see `KubectlRunner`."""
        line = f"{COMMAND} {shlex.join(arguments)}"
        return self._session.run(self._host, line, stdin=stdin, timeout_s=timeout_s)

    def stream(
        self, arguments: Sequence[str], take: Callable[[str], None], *, timeout_s: float
    ) -> Answer:
        """Run kubectl there; see `KubectlRunner`."""
        line = f"{COMMAND} {shlex.join(arguments)}"
        return self._session.stream(self._host, line, take, timeout_s=timeout_s)


_FIELD, _RECORD = "\x1f", "\x1e"
"""Unit and record separators of ASCII: no message of a scheduler or a person has them."""


def rows(kubectl: Kubectl, *what: str, fields: Mapping[str, str]) -> list[dict[str, str]]:
    """Return name -> text of each object; "" for what an object doesn't have.

    Args:
        kubectl: the API.
        what: what `kubectl get` is to get, with its options.
        fields: name -> JSONPath, braces included; several in one are joined as written.

    Raises:
        ApiRefused: there is no such kind.
        ApiSilent: no API server answers.
    """
    template = f"--output=jsonpath={row_template(list(fields.values()))}"
    return read_rows(kubectl.text("get", *what, template), list(fields))


def row_template(paths: Sequence[str]) -> str:
    """Return the JSONPath template of a row for each item of a list."""
    between = '{"\\u001f"}'
    return "{range .items[*]}" + between.join(paths) + '{"\\u001e"}{end}'


def read_rows(text: str, names: Sequence[str]) -> list[dict[str, str]]:
    """Read what such a template printed; a record that was cut short is left out."""
    records = (record.split(_FIELD) for record in text.split(_RECORD))
    return [
        dict(zip(names, fields, strict=True)) for fields in records if len(fields) == len(names)
    ]
