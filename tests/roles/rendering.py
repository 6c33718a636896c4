"""Render a role's tasks as a distribution would run them; as a script, write what they are now.

    python tests/roles/rendering.py [CASE..]

A case is tests/cases/roles/CASE/case.yaml: `role`, the `variables` of its phases and, where tasks
register what a node answered, those answers (`registered`). Beside it stands one file for each
distribution: every task that runs there, with its arguments filled in. Then read the diff.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import yaml

Task: TypeAlias = dict[str, Any]

ROOT = Path(__file__).parents[2]
CASES = ROOT / "tests/cases/roles"
NAMES = sorted(path.parent.name for path in CASES.glob("*/case.yaml"))
PHASES = ("preflight", "install", "configure", "join", "verify")

_DEBIAN = {"os_family": "Debian", "pkg_mgr": "apt"}
_ALL = {"architecture": "x86_64", "kernel": "6.8.0-90-generic", "system": "Linux"}
FACTS: dict[str, dict[str, str]] = {
    "ubuntu-22.04": {
        **_ALL, **_DEBIAN, "distribution": "Ubuntu", "distribution_version": "22.04",
        "distribution_major_version": "22", "distribution_release": "jammy",
    },
    "ubuntu-24.04": {
        **_ALL, **_DEBIAN, "distribution": "Ubuntu", "distribution_version": "24.04",
        "distribution_major_version": "24", "distribution_release": "noble",
    },
    "debian-12": {
        **_ALL, **_DEBIAN, "distribution": "Debian", "distribution_version": "12.12",
        "distribution_major_version": "12", "distribution_release": "bookworm",
        "kernel": "6.1.0-41-amd64",
    },
    "debian-13": {
        **_ALL, **_DEBIAN, "distribution": "Debian", "distribution_version": "13.2",
        "distribution_major_version": "13", "distribution_release": "trixie",
        "kernel": "6.12.57+deb13-amd64",
    },
    "el-9": {
        **_ALL, "os_family": "RedHat", "pkg_mgr": "dnf", "distribution": "Rocky",
        "distribution_version": "9.6", "distribution_major_version": "9",
        "kernel": "5.14.0-570.12.1.el9_6.x86_64",
    },
}  # fmt: skip
"""What `ansible.builtin.setup` says of a node of each distribution."""


def rendered(case: str, distribution: str) -> str:
    """Return the tasks of a case on a distribution, as its golden file holds them."""
    described = yaml.safe_load((CASES / case / "case.yaml").read_text())
    role = ROOT / "roles" / described["role"]
    facts = FACTS[distribution] | described.get("facts", {})
    variables = {
        **_trusted(role / "defaults/main.yml"),
        **_trusted(role / "vars/main.yml"),
        **described.get("variables", {}),
        **described.get("registered", {}).get(distribution, described.get("registered", {})),
        "ansible_facts": facts,
        "ansible_check_mode": False,
        "inventory_hostname": "node01",
        "ansible_host": "192.0.2.1",
        "role_path": str(role),
    }
    phases = {
        phase: list(_tasks(_trusted(role / f"tasks/{phase}.yml") or [], variables, role))
        for phase in PHASES
        if (role / f"tasks/{phase}.yml").exists()
    }
    handlers = role / "handlers/main.yml"
    if handlers.exists():
        phases["handlers"] = list(_tasks(_trusted(handlers), variables, role))
    text = yaml.safe_dump(phases, sort_keys=False, width=100, default_flow_style=False)
    return text.replace(str(ROOT), "")


def _tasks(tasks: list[Task], variables: dict[str, Any], role: Path) -> Iterator[Task]:
    """Yield the tasks that run, blocks opened, with what they are given."""
    for task in tasks:
        if not all(_holds(condition, variables) for condition in _listed(task.get("when", []))):
            continue
        inner = [part for key in ("block", "rescue", "always") for part in task.get(key, [])]
        if inner:
            yield from _tasks(inner, variables, role)
            continue
        module = next(key for key in task if "." in key)
        items = _filled(task["loop"], variables) if "loop" in task else [None]
        name = task.get("loop_control", {}).get("loop_var", "item")
        for item in items:
            own = variables if item is None else {**variables, name: item}
            given = _filled(task[module], own)
            if module == "ansible.builtin.template":
                source = role / "templates" / given["src"]
                given = {**given, "content": _filled(_text(source), own)}
            yield {str(module): given}


def _holds(condition: Any, variables: dict[str, Any]) -> bool:
    if isinstance(condition, bool):
        return condition
    return bool(_templar(variables).evaluate_conditional(condition))


def _filled(value: Any, variables: dict[str, Any]) -> Any:
    """Return a value with its templates filled in, as plain data."""
    return _plain(_templar(variables).template(value))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, bool):
        return value
    # Ansible's own kinds of text and numbers, which know where they stood.
    return next((kind(value) for kind in (str, int, float) if isinstance(value, kind)), str(value))


def _templar(variables: dict[str, Any]) -> Any:
    from ansible.parsing.dataloader import DataLoader  # noqa: PLC0415  # Ansible takes a second
    from ansible.template import Templar  # noqa: PLC0415

    return Templar(loader=DataLoader(), variables=variables)


def _trusted(path: Path) -> Any:
    """Return a YAML file whose strings are templates; nothing where there is none."""
    from ansible.parsing.dataloader import DataLoader  # noqa: PLC0415

    return DataLoader().load_from_file(str(path), trusted_as_template=True) if path.exists() else {}


def _text(path: Path) -> Any:
    """Return a template's text as one."""
    from ansible.template import trust_as_template  # noqa: PLC0415

    return trust_as_template(path.read_text())


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


if __name__ == "__main__":
    for named in sys.argv[1:] or NAMES:
        for known in FACTS:
            (CASES / named / f"{known}.yaml").write_text(rendered(named, known))
