"""Check roles and playbooks: ansible-lint, and the syntax of all of them in one call.

ansible-lint starts one `ansible-playbook --syntax-check` for each role and playbook, which is most
of its time (110 of 165 s of CPU). One call checks the same files in 6 s, and every task file of a
role besides. ansible-lint has no setting to leave its own out.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from unittest.mock import patch

import yaml
from ansiblelint import __main__ as ansible_lint
from ansiblelint.runner import Runner

ROOT = Path(__file__).parents[1]
PLAYBOOKS = ("molecule/*/converge.yml", "molecule/*/prepare.yml", ".config/molecule/*.yml")


def task_files(folder: Path) -> list[Path]:
    """Return the task files of a role, relative to its tasks, without their suffix."""
    return [file.relative_to(folder).with_suffix("") for file in sorted(folder.rglob("*.yml"))]


def every_task_file() -> list[dict[str, object]]:
    """Return a playbook that imports each role once for each of its task files."""
    tasks = [
        {
            "name": f"Import {file} of {role.name}",
            "ansible.builtin.import_role": {
                "name": f"gcluster.cluster.{role.name}",
                "tasks_from": str(file),
            },
        }
        for role in sorted(ROOT.glob("roles/*/"))
        for file in task_files(role / "tasks")
    ]
    return [{"name": "Import every task file", "hosts": "localhost", "tasks": tasks}]


def is_playbook(file: Path) -> bool:
    """Return whether a file holds plays (some of molecule's are lists of settings)."""
    document = yaml.safe_load(file.read_text(encoding="utf-8"))
    return isinstance(document, list) and all("hosts" in play for play in document)


def syntax_check() -> int:
    """Return the exit status of ansible-playbook over all playbooks and task files."""
    files = sorted(file for pattern in PLAYBOOKS for file in ROOT.glob(pattern))
    with tempfile.NamedTemporaryFile("w", suffix=".yml") as roles:
        yaml.safe_dump(every_task_file(), roles)
        roles.flush()
        call = ["ansible-playbook", "--syntax-check", roles.name]
        call += [str(file) for file in files if is_playbook(file)]
        environment = os.environ | {"ANSIBLE_HOST_PATTERN_MISMATCH": "ignore"}
        done = subprocess.run(
            call, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
    if done.returncode:  # what succeeds only warns of files that a scenario writes
        sys.stderr.write(done.stderr)
    return done.returncode


def lint() -> int:
    """Return the exit status of ansible-lint without its own syntax checks."""
    with patch.object(Runner, "_run_syntax_check_phase", return_value=[]):
        return ansible_lint.main(["ansible-lint", "-q"])


if __name__ == "__main__":
    sys.exit(syntax_check() or lint())
