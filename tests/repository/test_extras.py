"""Each cloud's extra brings what its folder imports, and its folder says what the extra brings."""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))[
    "project"
]
OPTIONAL: dict[str, list[str]] = PROJECT["optional-dependencies"]
CLOUDS = sorted(OPTIONAL.keys() - {"otel"})
NAMESPACES = {"azure", "azure.mgmt", "google"}
"""Packages that many distributions share; what one of them brings is a level below."""
UNSEEN = {"requests"}
"""Imported by google-auth for us (google.auth.transport.requests), which leaves it to its users."""


def names(requirements: list[str]) -> set[str]:
    return {canonicalize_name(Requirement(written).name) for written in requirements}


def imported(folder: Path) -> Iterator[str]:
    """Yield the modules that are imported in a folder, wherever in a file."""
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module is not None and not node.level:
                below = (f"{node.module}.{alias.name}" for alias in node.names)
                yield from below if node.module in NAMESPACES else [node.module]


def package(module: str) -> str:
    """Return the part of a module's name that one distribution brings."""
    words = module.split(".")
    taken = 1
    while ".".join(words[:taken]) in NAMESPACES and taken < len(words):
        taken += 1
    return ".".join(words[:taken])


def needed(root: Path, cloud: str) -> set[str]:
    """Return the packages that a cloud needs and Python does not bring."""
    folders = (root / "stacks" / cloud, root / "stacks" / "pulumi")
    packages = {package(module) for folder in folders for module in imported(folder)}
    return packages - set(sys.stdlib_module_names) - {"gcluster", "google"}


def distribution(module: str) -> set[str]:
    """Return the distributions that bring a package, by the files that are installed."""
    top, _, rest = module.partition(".")
    brought = packages_distributions().get(top, [])
    if not rest:
        return {canonicalize_name(name) for name in brought}
    own = module.replace(".", "-")
    known = {"google-protobuf": "protobuf"}
    return {known.get(own, own)} & {canonicalize_name(name) for name in brought}


@pytest.mark.parametrize("cloud", CLOUDS)
def test_what_a_cloud_imports_its_extra_brings(root: Path, cloud: str) -> None:
    brought = names(OPTIONAL[cloud]) | names(PROJECT["dependencies"])
    missing = {module for module in needed(root, cloud) if not distribution(module) & brought}
    assert missing == set()


@pytest.mark.parametrize("cloud", CLOUDS)
def test_an_extra_brings_nothing_that_nobody_imports(root: Path, cloud: str) -> None:
    used = {name for module in needed(root, cloud) for name in distribution(module)}
    assert names(OPTIONAL[cloud]) <= used | UNSEEN


@pytest.mark.parametrize("cloud", CLOUDS)
def test_whether_an_extra_is_there_is_asked_of_all_that_it_brings(cloud: str) -> None:
    modules: tuple[str, ...] = import_module(f"gcluster.stacks.{cloud}").MODULES
    assert {name for module in modules for name in distribution(module)} == names(OPTIONAL[cloud])


def test_what_telemetry_imports_its_extra_brings_and_nothing_else(root: Path) -> None:
    tree = ast.parse((root / "lifecycle" / "audit" / "telemetry.py").read_text(encoding="utf-8"))
    used = {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module}
    brought = {name.replace("-", ".") for name in names(OPTIONAL["otel"])}
    api = {"opentelemetry.trace"}  # which the SDK brings
    wanted = {module for module in used if module.startswith("opentelemetry")} - api
    assert all(any(module.startswith(part) for part in brought) for module in wanted)
    assert all(any(module.startswith(part) for module in wanted) for part in brought)
