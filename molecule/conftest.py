"""What the tests of every scenario share: its playbook run again, as an operator would."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import msgspec
import pytest


class Played(subprocess.CompletedProcess[str]):
    """How a run of the playbook ended, and what it printed."""

    @property
    def said(self) -> str:
        """All it printed, on one line: what a person reads, however Ansible folds and quotes it."""
        text = re.sub(
            r"\\u([0-9a-f]{4})", lambda code: chr(int(code[1], 16)), self.stdout + self.stderr
        )
        return " ".join(text.replace("\\n", " ").split())


if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from testinfra.backend.base import CommandResult
    from testinfra.host import Host

Play: TypeAlias = Callable[..., Played]
Recorded: TypeAlias = "Callable[[str], AbstractContextManager[None]]"
Verified: TypeAlias = Callable[[str], Played]
Answered: TypeAlias = "Callable[[str], CommandResult]"


@pytest.fixture(scope="session")
def converge() -> Play:
    """Return a function that plays converge.yml with these variables over the scenario's own."""

    def play(*options: str, **variables: object) -> Played:
        playbook = Path(os.environ["MOLECULE_SCENARIO_DIRECTORY"]) / "converge.yml"
        run = subprocess.run(
            [
                "ansible-playbook",
                "--inventory",
                os.environ["MOLECULE_INVENTORY_FILE"],
                "--extra-vars",
                msgspec.json.encode(variables).decode(),
                *options,
                str(playbook),
            ],
            env={
                **os.environ,
                "ANSIBLE_CALLBACK_RESULT_FORMAT": "json",
                "ANSIBLE_DISPLAY_FAILED_STDERR": "false",  # molecule's is true
                "ANSIBLE_FORCE_COLOR": "false",  # likewise
            },
            capture_output=True,
            text=True,
            check=False,
        )
        return Played(run.args, run.returncode, run.stdout, run.stderr)

    return play


@pytest.fixture
def recorded(host: Host) -> Recorded:
    """Return a context in which the tools answer as in a recorded case, afterwards as in "good"."""

    @contextmanager
    def during(case: str) -> Iterator[None]:
        host.check_output(f"echo {case} > /usr/local/lib/recordings/case")
        try:
            yield
        finally:
            host.check_output("echo good > /usr/local/lib/recordings/case")

    return during


@pytest.fixture
def verified(converge: Play, recorded: Recorded) -> Verified:
    """Return a function that plays verify alone while the tools answer as in a recorded case."""

    def play(case: str) -> Played:
        with recorded(case):
            return converge(phases=["verify"])

    return play


@pytest.fixture(scope="session")
def verify_command(converge: Play) -> str:
    """Return the last command that verify gives the node, as a shell runs it."""
    run = converge("-vvv", phases=["verify"])
    assert run.returncode == 0, run.stdout
    *_, shown = run.stdout.split('"module_args": ')
    given, _ = json.JSONDecoder().raw_decode(shown)
    return f"printf %s {shlex.quote(given['stdin'] or '')} | {shlex.join(given['argv'])}"


@pytest.fixture
def answered(host: Host, recorded: Recorded, verify_command: str) -> Answered:
    """Return a function that gives the node verify's command while tools answer as in a case.

    Where verify is this one command, it fails as the command does; a play takes ten times as long.
    """

    def ask(case: str) -> CommandResult:
        with recorded(case):
            return host.run(verify_command)

    return ask
