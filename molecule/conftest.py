"""What the tests of every scenario share: its playbook run again, as an operator would."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import msgspec
import pytest

Play: TypeAlias = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def converge() -> Play:
    """Return a function that plays converge.yml with these variables over the scenario's own."""

    def play(*options: str, **variables: object) -> subprocess.CompletedProcess[str]:
        playbook = Path(os.environ["MOLECULE_SCENARIO_DIRECTORY"]) / "converge.yml"
        return subprocess.run(
            [
                "ansible-playbook",
                "--inventory",
                os.environ["MOLECULE_INVENTORY_FILE"],
                "--extra-vars",
                msgspec.json.encode(variables).decode(),
                *options,
                str(playbook),
            ],
            env={**os.environ, "ANSIBLE_CALLBACK_RESULT_FORMAT": "json"},
            capture_output=True,
            text=True,
            check=False,
        )

    return play
