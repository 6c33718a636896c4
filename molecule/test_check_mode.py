"""Every scenario: check mode on a converged node would change nothing."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path


def test_check_mode_after_converge_would_change_nothing() -> None:
    playbook = Path(os.environ["MOLECULE_SCENARIO_DIRECTORY"]) / "converge.yml"
    inventory = os.environ["MOLECULE_INVENTORY_FILE"]
    run = subprocess.run(
        ["ansible-playbook", "--check", "--inventory", inventory, str(playbook)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert set(re.findall(r"changed=(\d+)", run.stdout)) == {"0"}, run.stdout
