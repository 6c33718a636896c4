"""What the tests of every scenario share: its playbook run again, as an operator would."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

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


Play: TypeAlias = Callable[..., Played]


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
            },
            capture_output=True,
            text=True,
            check=False,
        )
        return Played(run.args, run.returncode, run.stdout, run.stderr)

    return play
