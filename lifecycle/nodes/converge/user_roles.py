"""Roles and collections of hooks, brought to where Ansible finds them on this machine."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

from ....inventory.compile import Step
from ....inventory.compile.hooks import HookStep
from ....schemas.derived.loading.hook_files import BINARY
from ...cluster.outcome import failure
from ...cluster.places import cache_home
from .pending import Pending

_GALAXY_LIMIT_S = 300
"""Longest wait for one collection; community.general, the largest that is common, is 3 MB."""


def hook_steps(pending: Pending) -> tuple[HookStep, ...]:
    """Return the pending steps that roles of the user's carry out."""
    steps = (item.step for item in pending.steps)
    return tuple(s for s in steps if isinstance(s, HookStep) and s.user_role is not None)


def user_role_files(steps: Iterable[Step]) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of the roles of hooks, each under the name of its step's role."""
    for step in steps:
        role = step.user_role if isinstance(step, HookStep) else None
        for name, content in ({} if role is None else role.files).items():
            if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
                raise ValueError(name)  # it leads out of the role
            yield f"{step.role}/{name}", _bytes(content)


def write_roles(steps: Iterable[Step], folder: Path) -> None:
    """Write the roles of hooks below a folder."""
    for name, content in user_role_files(steps):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def _bytes(content: str) -> bytes:
    if content.startswith(BINARY):
        return base64.b64decode(content.removeprefix(BINARY))
    return content.encode()


def collection_folders(steps: Iterable[HookStep]) -> tuple[Path, ...]:
    """Return the folders of the collections that steps need; those that aren't here are brought.

    Raises:
        LifecycleError: ansible-galaxy can't bring one (GC1184).
    """
    wanted: dict[str, str] = {}
    for step in steps:
        wanted |= {} if step.user_role is None else step.user_role.collections
    return tuple(_collection(name, version) for name, version in sorted(wanted.items()))


def _collection(name: str, version: str) -> Path:
    """Return the folder that ANSIBLE_COLLECTIONS_PATH is to name for a collection."""
    folder = cache_home() / "collections" / f"{name}-{version}"
    if (folder / "ansible_collections" / name.replace(".", "/") / "MANIFEST.json").is_file():
        return folder
    wanted = f"{name}:=={version}"
    program = Path(sys.executable).with_name("ansible-galaxy")
    command = [str(program), "collection", "install", "--no-deps", "-p", str(folder), wanted]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            timeout=_GALAXY_LIMIT_S,
            env=_environment(os.environ),
        )
        said, ended = f"{done.stdout}\n{done.stderr}", done.returncode
    except subprocess.TimeoutExpired:
        said, ended = f"it took more than {_GALAXY_LIMIT_S} s", 1
    if ended:
        raise failure(
            "GC1184",
            f"the collection {name} {version} of a hook can't be had",
            detail="\n".join(line for line in said.splitlines() if line.strip())[-2000:],
            hint="ansible-galaxy uses galaxy.ansible.com, or the servers that ANSIBLE_CONFIG names",
        )
    return folder


def _environment(ours: Mapping[str, str]) -> dict[str, str]:
    """Return what ansible-galaxy finds: the user's servers, and no colours."""
    return {**ours, "ANSIBLE_NOCOLOR": "True"}
