"""The roles that travel with gcluster, and the hash of what each of their phases runs."""

from __future__ import annotations

import functools
import hashlib
import re
from pathlib import Path

import gcluster

_MODULE = re.compile(rb"\bgcluster\.cluster\.(\w+):")
_IMPORT = re.compile(rb"^from (?:\.|\.\.module_utils\.)(\w+) import", re.MULTILINE)

NOT_RUN = frozenset({"meta"})
"""Folders of a role that say what it is; nothing in them runs on a node."""


def collections_path() -> Path:
    """Return the directory to name in ANSIBLE_COLLECTIONS_PATH (wheel, editable or checkout)."""
    return Path(next(iter(gcluster.__path__))).resolve()


def role_path(role: str) -> Path:
    """Return the folder of a role of the collection gcluster.cluster."""
    return (_collection() / "roles" / role).resolve()


def plugins_path() -> Path:
    """Return the folder of the collection's modules and what they share."""
    return (_collection() / "plugins").resolve()


def _collection() -> Path:
    return collections_path() / "ansible_collections" / "gcluster" / "cluster"


@functools.cache
def role_digest(role: str, phase: str) -> str:
    """Return the SHA-256 in hex of the files that a phase may use.

    These are its own tasks (PHASE.yml, and what it includes from PHASE/), the collection's modules
    that tasks name, with the module_utils that those import, and all of the role but
    the other phases' tasks: templates, files, variables, defaults and handlers count for every
    phase, so a change to one of them runs a phase again that may not need it, and never the other
    way round.
    """
    digest = hashlib.sha256()
    named: set[str] = set()
    for name, top, below, content, modules in files_of(role):
        if top == "tasks" and below not in {"", phase, f"{phase}.yml"}:
            continue  # of another phase
        digest.update(f"{name}\0".encode())
        digest.update(content)
        named |= modules
    for plugin in plugins_of(frozenset(named)):
        digest.update(f"{plugin}\0".encode())
        digest.update(hashlib.sha256((plugins_path() / plugin).read_bytes()).digest())
    return digest.hexdigest()


def role_plugins(role: str) -> tuple[str, ...]:
    """Return the modules that any of a role's tasks name, and what they import, as paths."""
    return plugins_of(frozenset[str]().union(*(modules for *_, modules in files_of(role))))


@functools.cache
def plugins_of(modules: frozenset[str]) -> tuple[str, ...]:
    """Return the files of modules and of the module_utils that they import, below plugins/."""
    root = plugins_path()
    found: set[str] = set()
    ahead = {f"modules/{name}.py" for name in modules}
    while ahead:
        path = ahead.pop()
        if path in found or not (root / path).is_file():
            continue  # a role's name in the place of a module's
        found.add(path)
        imported = _IMPORT.findall((root / path).read_bytes())
        ahead |= {f"module_utils/{name.decode()}.py" for name in imported}
    return tuple(sorted(found))


@functools.cache
def files_of(role: str) -> tuple[tuple[str, str, str, bytes, frozenset[str]], ...]:
    """Return path, its folder, what comes below that, SHA-256 of the content, modules called.

    Read once a run.
    """
    root = role_path(role)
    found = []
    for path in sorted(root.rglob("*")):
        relative = path.relative_to(root)
        top, *below = relative.parts
        if path.is_dir() or top in NOT_RUN or path.suffix == ".pyc":
            continue
        content = path.read_bytes()
        calls = _MODULE.findall(content) if top in {"tasks", "handlers"} else []
        modules = frozenset(name.decode() for name in calls)
        digest = hashlib.sha256(content).digest()
        found.append((str(relative), top, below[0] if below else "", digest, modules))
    return tuple(found)
