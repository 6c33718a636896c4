"""The digest of a phase covers what it could use and not the other phases' tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gcluster.lifecycle.nodes.converge import role_files
from gcluster.lifecycle.nodes.converge.role_files import (
    collections_path,
    files_of,
    plugins_of,
    role_digest,
    role_path,
)


def clear_caches() -> None:
    """Have everything read again."""
    for read in (role_digest, files_of, plugins_of):
        read.cache_clear()


@pytest.fixture
def role(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give a role of two phases with a template, under the collection's name."""
    root = tmp_path / "ansible_collections/gcluster/cluster/roles/probe"
    files = {
        "tasks/install.yml": "- i",
        "templates/a.j2": "a",
        "defaults/main.yml": "{}",
        "handlers/main.yml": "[]",
        "meta/main.yml": "about",
        "tasks/configure.yml": "- gcluster.cluster.probe_state:",
        "../../plugins/modules/probe_state.py": "from ..module_utils.probe import x",
        "../../plugins/module_utils/probe.py": "from .deeper import y",
        "../../plugins/module_utils/deeper.py": "",
        "../../plugins/modules/other.py": "",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    monkeypatch.setattr(role_files, "collections_path", lambda: tmp_path)
    yield root
    clear_caches()


@pytest.fixture
def changed(role: Path) -> Callable[[str], set[str]]:
    """Write to a file of the role and say which phases that changes."""

    def write(name: str) -> set[str]:
        before = {phase: role_digest("probe", phase) for phase in ("install", "configure")}
        (role / name).parent.mkdir(parents=True, exist_ok=True)
        (role / name).write_text("other")
        clear_caches()
        return {phase for phase, was in before.items() if role_digest("probe", phase) != was}

    return write


def test_a_phases_own_tasks_change_it_alone(changed: Callable[[str], set[str]]) -> None:
    assert changed("tasks/install.yml") == {"install"}
    assert changed("tasks/configure/shared.yml") == {"configure"}


@pytest.mark.parametrize(
    "name", ["templates/a.j2", "files/new", "defaults/main.yml", "handlers/main.yml"]
)
def test_what_every_phase_could_use_changes_every_phase(
    name: str, changed: Callable[[str], set[str]]
) -> None:
    assert changed(name) == {"install", "configure"}


@pytest.mark.parametrize(
    "name", ["modules/probe_state", "module_utils/probe", "module_utils/deeper"]
)
def test_a_module_changes_the_phases_that_call_it(
    name: str, changed: Callable[[str], set[str]]
) -> None:
    assert changed(f"../../plugins/{name}.py") == {"configure"}


def test_a_module_that_the_role_does_not_call_changes_nothing(
    changed: Callable[[str], set[str]],
) -> None:
    assert changed("../../plugins/modules/other.py") == set()


def test_what_describes_the_role_changes_nothing(changed: Callable[[str], set[str]]) -> None:
    assert changed("meta/main.yml") == set()


def test_the_roles_that_travel_with_the_package_are_found() -> None:
    assert (collections_path() / "ansible_collections/gcluster/cluster/galaxy.yml").is_file()
    assert (role_path("slurm") / "tasks" / "configure.yml").is_file()


def test_the_files_of_a_role_are_read_once_for_all_its_phases(
    role: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Path] = []
    read_bytes = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: (read.append(path), read_bytes(path))[1])
    monkeypatch.setattr(role_files, "plugins_of", lambda _: ())
    for phase in ("install", "configure", "verify", "install"):
        role_digest("probe", phase)
    assert len(read) == len(set(read)) == 5
    assert {path.is_relative_to(role) for path in read} == {True}
