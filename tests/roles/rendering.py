"""Render a role's tasks as a distribution would run them; as a script, write what they are now.

    python tests/roles/rendering.py [CASE..]

A case is tests/cases/roles/CASE/case.yaml: `role`, the `variables` of its phases and, where tasks
register what a node answered, those answers (`registered`). Beside it stands one file for each
distribution: every task that runs there, with its arguments filled in, files as path: text and
those that go as path: null. Then read the diff.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import yaml

from gcluster.inventory.compile.steps import PHASES
from gcluster.lifecycle.bundle.role_tasks import FACTS, Task, filled_tasks, loaded, role_variables

ROOT = Path(__file__).parents[2]
CASES = ROOT / "tests/cases/roles"
_SECRET = re.compile(
    r'^place_secret\("(?P<path>[^"]+)", "(?P<encoded>[^"]*)", "(?P<user>[^"]+)"', re.MULTILINE
)
NAMES = sorted(path.parent.name for path in CASES.glob("*/case.yaml"))


def rendered(case: str, distribution: str) -> str:
    """Return the tasks of a case on a distribution, as its golden file holds them."""
    described = yaml.safe_load((CASES / case / "case.yaml").read_text())
    role = ROOT / "roles" / described["role"]
    facts = FACTS[distribution] | described.get("facts", {})
    registered = described.get("registered", {})
    said = {**described.get("variables", {}), **registered.get(distribution, registered)}
    variables = role_variables(role, said, facts)
    phases: dict[str, list[Task]] = {
        phase: [
            _with_placed_files(task, whole=phase != "install")
            for task in filled_tasks(loaded(role / f"tasks/{phase}.yml") or [], variables, role)
        ]
        for phase in PHASES
        if (role / f"tasks/{phase}.yml").exists()
    }
    handlers = role / "handlers/main.yml"
    if handlers.exists():
        phases["handlers"] = list(filled_tasks(loaded(handlers), variables, role))
    text = yaml.safe_dump(phases, sort_keys=False, width=100, default_flow_style=False)
    return text.replace(str(ROOT), "")


def _with_placed_files(task: Task, *, whole: bool) -> Task:
    """Return a task that places files with them alone: with their text, or only their paths."""
    files = placed_files(task)
    if not files:
        return task
    placed = files | _removed(task) if whole else sorted(files)
    return {"ansible.builtin.command": {**task["ansible.builtin.command"], "stdin": placed}}


def placed_files(task: Task) -> dict[str, str]:
    """Return path -> text of what a task places by roles/base/files/place-files; {}: nothing."""
    program = str(task.get("ansible.builtin.command", {}).get("stdin", ""))
    secret = _SECRET.search(program)
    if secret:
        return {secret["path"]: f"(base64, {secret['user']}'s alone) {secret['encoded']}"}
    _, found, call = program.rpartition("\nplace(")
    return json.JSONDecoder().raw_decode(call)[0] if found else {}


def _removed(task: Task) -> dict[str, None]:
    """Return the paths that a task removes by the same program."""
    _, found, call = str(task["ansible.builtin.command"]["stdin"]).rpartition("\nremove(")
    return dict.fromkeys(json.JSONDecoder().raw_decode(call)[0]) if found else {}


if __name__ == "__main__":
    for named in sys.argv[1:] or NAMES:
        for known in FACTS:
            (CASES / named / f"{known}.yaml").write_text(rendered(named, known))
