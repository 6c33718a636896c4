"""The checkout is laid out as packaging and readers expect."""

from __future__ import annotations

from pathlib import Path

import pytest

PACKAGES = ("cli", "inventory", "lifecycle", "schemas", "stacks")
LINES_PER_FILE = 450  # CONTRIBUTING.md: a concept takes 100 to 400 lines
CHILDREN = 14  # CONTRIBUTING.md: what a reader takes in at a look
LISTS = {
    "cli/operate": "one module for each verb of a section of the help",
    "plugins/modules": "Ansible looks for a collection's modules in this one folder",
    "plugins/module_utils": "what these modules share, as flat as collections have it",
    "roles/kubernetes/files/libexec": "programs of hosts, which units name by this one folder",
}
"""Folders of code that may have more children -> why."""


@pytest.mark.parametrize("package", PACKAGES)
def test_the_package_in_src_is_a_relative_link_to_the_top_level_folder(
    root: Path, package: str
) -> None:
    link = root / "src" / "gcluster" / package
    assert link.is_symlink()
    assert link.readlink() == Path("../..") / package
    assert link.resolve() == root / package


@pytest.mark.parametrize("folder", ["plugins", "roles"])
def test_the_collection_in_src_links_to_the_top_level_folders(root: Path, folder: str) -> None:
    link = root / "src/gcluster/ansible_collections/gcluster/cluster" / folder
    assert link.is_symlink()
    assert link.readlink() == Path("../../../../..") / folder
    assert link.resolve() == root / folder


def test_the_examples_of_codes_are_the_golden_cases(root: Path) -> None:
    link = root / "schemas/codes/examples"
    assert link.is_symlink()
    assert link.readlink() == Path("../../tests/cases/validate")


def test_every_python_module_begins_with_its_purpose(root: Path, tracked: tuple[Path, ...]) -> None:
    silent = [
        str(path)
        for path in tracked
        if path.suffix == ".py"
        and not (root / path).is_symlink()
        and not (root / path).read_text(encoding="utf-8").startswith(('"""', 'r"""', "#!"))
    ]
    assert silent == []


def test_no_source_file_outgrows_the_limit(root: Path, tracked: tuple[Path, ...]) -> None:
    data = ("schemas/catalog/", "schemas/codes/", "schemas/stack/stack.lock.yaml", "tests/cases/")
    long = {
        str(path): lines
        for path in tracked
        if path.suffix in {".py", ".yml", ".yaml"}
        and not str(path).startswith(data)
        and (lines := len((root / path).read_text(encoding="utf-8").splitlines())) > LINES_PER_FILE
    }
    assert long == {}


def test_no_package_outgrows_what_a_reader_can_survey(tracked: tuple[Path, ...]) -> None:
    children: dict[Path, set[str]] = {}
    for path in tracked:
        if path.parts[0] in {*PACKAGES, "bench", "plugins", "roles"}:
            for folder in path.parents[:-1]:
                children.setdefault(folder, set()).add(path.relative_to(folder).parts[0])
    code = {  # folders of data alone, such as machine types, are lists
        str(folder): len(names)
        for folder, names in children.items()
        if any(name.endswith(".py") for name in names)
    }
    assert {"cli/operate", "schemas", "roles/node_health/files/node_health"} <= code.keys()
    assert {folder for folder, count in code.items() if count > CHILDREN} == set(LISTS)


def test_no_module_is_named_after_nothing(tracked: tuple[Path, ...]) -> None:
    empty_names = {"utils.py", "util.py", "helpers.py", "common.py", "misc.py"}
    assert [str(path) for path in tracked if path.name in empty_names] == []


def test_every_test_module_mirrors_a_module_or_a_subject_of_its_own(
    root: Path, tracked: tuple[Path, ...]
) -> None:
    folders = {
        path.parts[1]
        for path in tracked
        if path.parts[0] == "tests" and path.name.startswith("test_")
    }
    subjects = {"repository", "e2e", "editor", "dashboard", "fuzz", "torture"}
    assert [name for name in folders - subjects if not (root / name).is_dir()] == []
