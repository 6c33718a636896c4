"""Render a role's tasks as each distribution would run them.

A case is tests/cases/roles/CASE.yaml: `role`, the `variables` of its phases and, where tasks
register what a node answered, those answers (`registered`). Under `tasks` follows what is expected:
every task that runs, phase by phase, with its arguments filled in; `on` names the distributions of
a task that doesn't run on all of them.
"""

from __future__ import annotations

import json
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path

import yaml
from tests.golden_files import as_yaml

from gcluster.inventory.compile.steps import PHASES
from gcluster.lifecycle.bundle.role_tasks import FACTS, Task, filled_tasks, loaded, role_variables

ROOT = Path(__file__).parents[2]
CASES = ROOT / "tests/cases/roles"
PROGRAMS = "/usr/local/libexec/"
WRITES = "gcluster.cluster.managed_files"
NAMES = sorted(path.stem for path in CASES.glob("*.yaml"))
_TASKS = "\ntasks:\n"


def case_file(case: str) -> str:
    """Return the file of a case with the tasks that are rendered now."""
    described = (CASES / f"{case}.yaml").read_text(encoding="utf-8").partition(_TASKS)[0]
    phases: dict[str, list[Task]] = {}
    for distribution in FACTS:
        for phase, tasks in rendered(case, distribution).items():
            phases[phase] = _joined(phases.get(phase, []), tasks, distribution)
    shown = {
        phase: [
            task if len(task["on"]) < len(FACTS) else {k: v for k, v in task.items() if k != "on"}
            for task in tasks
        ]
        for phase, tasks in phases.items()
    }
    return described.rstrip("\n") + "\n" + as_yaml({"tasks": shown})


def _joined(tasks: list[Task], others: list[Task], distribution: str) -> list[Task]:
    """Return tasks marked with their distributions, those of another one put in their order."""
    old = [json.dumps({k: v for k, v in task.items() if k != "on"}) for task in tasks]
    new = [json.dumps(task) for task in others]
    joined: list[Task] = []
    for same, i, end, j, stop in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if same == "equal":
            joined += [{**task, "on": [*task["on"], distribution]} for task in tasks[i:end]]
        else:
            joined += tasks[i:end]
            joined += [{"on": [distribution], **task} for task in others[j:stop]]
    return joined


@cache
def rendered(case: str, distribution: str) -> dict[str, list[Task]]:
    """Return the tasks of a case on a distribution by phase."""
    described = yaml.safe_load((CASES / f"{case}.yaml").read_text(encoding="utf-8"))
    role = ROOT / "roles" / described["role"]
    facts = FACTS[distribution] | described.get("facts", {})
    registered = described.get("registered", {})
    answer = {**described.get("variables", {}), **registered.get(distribution, registered)}
    variables = role_variables(role, answer, facts)
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
    text = json.dumps(phases)
    without_checkout: dict[str, list[Task]] = json.loads(text.replace(str(ROOT), ""))
    return without_checkout


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
