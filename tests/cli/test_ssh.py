"""`gcluster ssh`: which words are whose, and that the process becomes ssh."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def run_ssh(
    run: Callable[..., Any], put_doubles: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Any]:
    """Run the verb on doubles of the lifecycle and of exec; return their calls."""

    def invoke(*words: str) -> Any:
        seen: list[Any] = []

        def ssh_argv(cluster: str, host: str | None, command: list[str]) -> list[str]:
            seen.append((cluster, host, command))
            return ["ssh", "node"]

        def execvp(file: str, argv: list[str]) -> None:
            seen.append((file, argv))

        put_doubles(
            "cluster.cluster", open_cluster=lambda target, *, running: target if running else None
        )
        put_doubles("nodes.ssh.shell", ssh_argv=ssh_argv)
        monkeypatch.setattr(os, "execvp", execvp)
        done = run("ssh", *words)
        assert done.exit_code == 0, done.output
        assert seen[1] == ("ssh", ["ssh", "node"])
        return seen[0]

    return invoke


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["demo"], ("demo", None, [])),
        (["demo", "gpu001"], ("demo", "gpu001", [])),
        (["demo", "--", "ls", "-l"], ("demo", None, ["ls", "-l"])),
        (["demo", "gpu001", "--", "ls", "-l"], ("demo", "gpu001", ["ls", "-l"])),
        (["demo", "gpu001", "ls", "-l"], ("demo", "gpu001", ["ls", "-l"])),
        (["demo", "--", "bash", "--", "x"], ("demo", None, ["bash", "--", "x"])),
        (["demo", "gpu001", "--", "--help"], ("demo", "gpu001", ["--help"])),
    ],
)
def test_words_after_the_dashes_belong_to_the_node(
    run_ssh: Callable[..., Any], words: list[str], meant: Any
) -> None:
    assert run_ssh(*words) == meant
