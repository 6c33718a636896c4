"""Kinds of an add-on are waited for, also while nothing has said anything of them yet."""

from __future__ import annotations

import pytest

from gcluster.lifecycle.kubernetes.addons.ownership import AddonStopped, establish
from gcluster.lifecycle.nodes.ssh import SshResult

from .kubectl_double import KubectlDouble

CRD = {"kind": "CustomResourceDefinition", "metadata": {"name": "widgets.example.org"}}
NOT_YET = ".status.conditions accessor error: <nil> is of the type <nil>, expected []interface{}"


class Slow(KubectlDouble):
    """A server that has conditions of a new kind after a few queries."""

    def __init__(self, queries: int, words: str = NOT_YET) -> None:
        """Take how many it doesn't answer, and what kubectl says then."""
        super().__init__({})
        self.left, self.words, self.now = queries, words, 0.0

    def run(self, *arguments: str, stdin: str | None = None, timeout_s: float = 60) -> SshResult:
        """Refuse so many times."""
        if arguments[0] == "wait" and self.left:
            self.left -= 1
            return SshResult(returncode=1, stdout="", stderr=self.words)
        return super().run(*arguments, stdin=stdin, timeout_s=timeout_s)

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds

    def establish(self) -> None:
        """Have the kind established."""
        establish(self, [CRD], "widgets", clock=lambda: self.now, sleep=self.sleep)


def test_a_kind_without_conditions_is_waited_for() -> None:
    kubectl = Slow(queries=3)
    kubectl.establish()
    assert kubectl.left == 0
    assert kubectl.calls[-1].startswith("wait --for=condition=Established")


@pytest.mark.parametrize("words", [NOT_YET, "error: timed out waiting for the condition"])
def test_a_kind_that_is_not_served_stops_the_add_on(words: str) -> None:
    kubectl = Slow(queries=10_000, words=words)
    with pytest.raises(AddonStopped, match="a kind of it is not served"):
        kubectl.establish()
    assert kubectl.now <= 61
