"""Render a role's tasks as a distribution would run them; as a script, write what they are now.

    python tests/roles/rendering.py [CASE..]

A case is tests/cases/roles/CASE/case.yaml: `role`, the `variables` of its phases and, where tasks
register what a node answered, those answers (`registered`). Beside it stands one file for each
distribution: every task that runs there, with its arguments filled in. Then read the diff.
"""

from __future__ import annotations

import sys
from pathlib import Path

import yaml

from gcluster.inventory.compile.steps import PHASES
from gcluster.lifecycle.bundle.role_tasks import FACTS, Task, filled_tasks, loaded, role_variables

ROOT = Path(__file__).parents[2]
CASES = ROOT / "tests/cases/roles"
PROGRAMS = "/usr/local/libexec/"
WRITES = "gcluster.cluster.managed_files"
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
            _with_paths(task) if phase == "install" or _writes_programs(task) else task
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


def _writes_programs(task: Task) -> bool:
    """Say whether a task writes programs, which are files of the repository."""
    return any(path.startswith(PROGRAMS) for path in written_files(task))


def _with_paths(task: Task) -> Task:
    """Return a task that writes files with their paths alone: their texts are files of the role."""
    if WRITES not in task:
        return task
    return {WRITES: {**task[WRITES], "files": sorted(task[WRITES]["files"])}}


def written_files(task: Task) -> dict[str, str]:
    """Return path -> text of what a task writes by managed_files; {}: nothing."""
    return dict(task.get(WRITES, {}).get("files", {}))


if __name__ == "__main__":
    for named in sys.argv[1:] or NAMES:
        for known in FACTS:
            (CASES / named / f"{known}.yaml").write_text(rendered(named, known))
