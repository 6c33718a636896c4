"""Every scenario: what is changed behind the role's back makes verify fail, and can be fixed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

if TYPE_CHECKING:
    from conftest import Play

SCENARIO = Path(os.environ["MOLECULE_SCENARIO_DIRECTORY"])
BREAKS: list[dict[str, str]] = yaml.safe_load((SCENARIO / "break.yml").read_text())["breaks"]


def on_node(node: str, command: str) -> None:
    """Run a command on a node of the scenario (default: the first); it must succeed."""
    inventory = os.environ["MOLECULE_INVENTORY_FILE"]
    arguments = ["--inventory", inventory, "--become", "--module-name", "ansible.builtin.shell"]
    run = subprocess.run(
        ["ansible", node, *arguments, "--args", command],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize("broken", BREAKS, ids=lambda broken: str(broken["name"]))
def test_verify_finds_it_and_a_converge_fixes_it(broken: dict[str, str], converge: Play) -> None:
    node = broken.get("node", "all[0]")
    on_node(node, broken["command"])

    verify = converge(phases=["verify"])
    if "repair" in broken:  # what no converge fixes, none has to
        on_node(node, broken["repair"])
        again = converge(phases=["verify"])
    else:
        again = converge()

    assert verify.returncode != 0, verify.stdout
    assert "unreachable=1" not in verify.stdout, verify.stdout + verify.stderr
    assert again.returncode == 0, again.stdout + again.stderr
