"""A role's tasks as a distribution would run them, filled in without any node."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

Task: TypeAlias = dict[str, Any]

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
"""What `ansible.builtin.setup` returns on a node of each distribution."""


def role_variables(
    role: Path, variables: Mapping[str, Any], facts: Mapping[str, str]
) -> dict[str, Any]:
    """Return the variables that a role's tasks see.

    Args:
        role: the role's folder.
        variables: variables of the phase, over the role's defaults.
        facts: of the node.
    """
    return {
        **loaded(role / "defaults/main.yml"),
        **loaded(role / "vars/main.yml"),
        **variables,
        "ansible_facts": dict(facts),
        "ansible_check_mode": False,
        "inventory_hostname": "node01",
        "ansible_host": "192.0.2.1",
        "role_path": str(role),
        "ansible_search_path": [str(role)],
    }


def filled_tasks(
    tasks: list[Task],
    variables: dict[str, Any],
    role: Path,
    unknown: Callable[[Task, Exception], None] | None = None,
) -> Iterator[Task]:
    """Yield {module: arguments} of the tasks that run, blocks and included files opened.

    Args:
        tasks: as the role's file has them.
        variables: see `role_variables`.
        role: the role's folder.
        unknown: called with each task that depends on a node's facts; None: that is an error.
    """
    for task in tasks:
        try:
            found = list(_filled_task(task, variables, role, unknown))
        except Exception as error:
            if unknown is None:
                raise
            unknown(task, error)
        else:
            yield from found


def module_of(task: Task) -> str:
    """Return the module that a task calls; "" for a block."""
    return str(next((key for key in task if "." in key), ""))


def _filled_task(
    task: Task,
    variables: dict[str, Any],
    role: Path,
    unknown: Callable[[Task, Exception], None] | None,
) -> Iterator[Task]:
    if not all(_holds(condition, variables) for condition in _listed(task.get("when", []))):
        return
    inner = [part for key in ("block", "rescue", "always") for part in task.get(key, [])]
    if inner:
        yield from filled_tasks(inner, variables, role, unknown)
        return
    module = module_of(task)
    if module == "ansible.builtin.include_tasks":
        included = role / "tasks" / _filled(task[module], variables)
        yield from filled_tasks(loaded(included), variables, role, unknown)
        return
    items = _filled(task["loop"], variables) if "loop" in task else [None]
    name = task.get("loop_control", {}).get("loop_var", "item")
    for item in items:
        own = variables if item is None else {**variables, name: item}
        given = _filled(task[module], own)
        if module == "ansible.builtin.template":
            source = role / "templates" / given["src"]
            given = {**given, "content": _filled(_text(source), own)}
        yield {module: given}


def loaded(path: Path) -> Any:
    """Return a YAML file whose strings are templates; an empty mapping where there is none."""
    from ansible.parsing.dataloader import DataLoader  # noqa: PLC0415  # Ansible takes a second

    return DataLoader().load_from_file(str(path), trusted_as_template=True) if path.exists() else {}


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
    # Ansible's own kinds of text and numbers, which carry their position in the file.
    return next((kind(value) for kind in (str, int, float) if isinstance(value, kind)), str(value))


def _templar(variables: dict[str, Any]) -> Any:
    from ansible.parsing.dataloader import DataLoader  # noqa: PLC0415
    from ansible.template import Templar  # noqa: PLC0415

    _find_lookups()
    return Templar(loader=DataLoader(), variables=variables)


@functools.cache
def _find_lookups() -> None:
    """Let templates call lookups by their full names; more than once would warn."""
    from ansible.plugins.loader import init_plugin_loader  # noqa: PLC0415

    init_plugin_loader()


def _text(path: Path) -> Any:
    """Return a template's text as one."""
    from ansible.template import trust_as_template  # noqa: PLC0415

    return trust_as_template(path.read_text(encoding="utf-8"))


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
