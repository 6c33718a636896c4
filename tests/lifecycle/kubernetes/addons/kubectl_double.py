"""A kubectl that prints what a test sets, and keeps its calls."""

from __future__ import annotations

from pathlib import Path

from gcluster.lifecycle.kubernetes.kubectl import Kubectl
from gcluster.lifecycle.nodes.ssh import SshResult, SshSession


class KubectlDouble(Kubectl):
    """The double of an API server."""

    def __init__(self, answers: dict[str, str]) -> None:
        """Take how a question begins -> its answer; others get an empty one."""
        super().__init__(SshSession(Path()), [])
        self.answers = answers
        self.calls: list[str] = []
        self.given: list[str] = []

    def run(self, *arguments: str, stdin: str | None = None, timeout_s: float = 60) -> SshResult:
        """Answer."""
        del timeout_s
        words = " ".join(arguments)
        self.calls.append(words)
        self.given.append(stdin or "")
        result = next(
            (answer for begin, answer in self.answers.items() if words.startswith(begin)), ""
        )
        return SshResult(returncode=0, stdout=result, stderr="")

    def deleted(self) -> list[str]:
        """Return the deletions that it was called for, in order."""
        return [line for line in self.calls if line.startswith("delete ")]


def row(*fields: str) -> str:
    """Return a row of a table as kubectl prints it."""
    return "\x1f".join(fields) + "\x1e"
