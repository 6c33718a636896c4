"""The roles that travel with gcluster, and the hash of what each of their phases runs."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

import gcluster

NOT_RUN = frozenset({"meta"})
"""Folders of a role that say what it is; nothing in them runs on a node."""


def collections_path() -> Path:
    """Return the directory to name in ANSIBLE_COLLECTIONS_PATH (wheel, editable or checkout)."""
    return Path(next(iter(gcluster.__path__))).resolve()


def role_path(role: str) -> Path:
    """Return the folder of a role of the collection gcluster.cluster."""
    collection = collections_path() / "ansible_collections" / "gcluster" / "cluster"
    return (collection / "roles" / role).resolve()


@functools.cache
def role_digest(role: str, phase: str) -> str:
    """Return the SHA-256 in hex of the files that a phase may use.

    These are its own tasks (PHASE.yml, and what it includes from PHASE/) and all of the role but
    the other phases' tasks: templates, files, variables, defaults and handlers count for every
    phase, so a change to one of them runs a phase again that may not need it, and never the other
    way round.
    """
    digest = hashlib.sha256()
    for name, top, below, content in files_of(role):
        if top == "tasks" and below not in {"", phase, f"{phase}.yml"}:
            continue  # of another phase
        digest.update(f"{name}\0".encode())
        digest.update(content)
    return digest.hexdigest()


@functools.cache
def files_of(role: str) -> tuple[tuple[str, str, str, bytes], ...]:
    """Return (path, its folder, what comes below that, SHA-256 of the content); read once a run."""
    root = role_path(role)
    found = []
    for path in sorted(root.rglob("*")):
        relative = path.relative_to(root)
        top, *below = relative.parts
        if path.is_dir() or top in NOT_RUN or path.suffix == ".pyc":
            continue
        content = hashlib.sha256(path.read_bytes()).digest()
        found.append((str(relative), top, below[0] if below else "", content))
    return tuple(found)
