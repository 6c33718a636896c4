"""What the packages import is declared: as a dependency, or in the extra of those who need it."""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
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
GUARDED = ("lifecycle/state/audit/telemetry.py", "lifecycle/state/connect.py")
"""Files that use what only an extra brings, and say so where it is missing."""
NAMESPACES = {"azure", "azure.mgmt", "google"}
"""Packages that many distributions share; what one of them brings is a level below."""
UNSEEN = {"requests", "boto3"}
"""Imported for us by google-auth (google.auth.transport.requests), which leaves it to its users, or
by obstore (obstore.auth.boto3), for a state URL with a profile of AWS."""


def names(requirements: list[str]) -> set[str]:
    return {canonicalize_name(Requirement(written).name) for written in requirements}


def modules_in(node: ast.AST) -> Iterator[str]:
    """Yield the absolute names of the modules that a statement imports."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module is not None and not node.level:
        below = (f"{node.module}.{alias.name}" for alias in node.names)
        yield from below if node.module in NAMESPACES else [node.module]


def modules_of(path: Path) -> Iterator[str]:
    """Yield the modules that are imported in a file, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        yield from modules_in(node)


def imported(folder: Path) -> Iterator[str]:
    """Yield the modules that are imported in a folder, wherever in a file."""
    for path in folder.rglob("*.py"):
        yield from modules_of(path)


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


@cache
def installed() -> Mapping[str, list[str]]:
    """Return package -> the distributions that bring it; reads what every one of them lists."""
    return packages_distributions()


def distribution(module: str) -> set[str]:
    """Return the distributions that bring a package, by the files that are installed."""
    top, _, rest = module.partition(".")
    brought = installed().get(top, [])
    if not rest:
        return {canonicalize_name(name) for name in brought}
    own = module.replace(".", "-")
    known = {"google-protobuf": "protobuf"}
    return {known.get(own, own)} & {canonicalize_name(name) for name in brought}


@pytest.mark.parametrize("top", ["cli", "inventory", "lifecycle", "schemas", "stacks"])
def test_what_a_package_imports_is_a_declared_dependency(root: Path, top: str) -> None:
    """What no extra's folder imports is there after `pip install gcluster`, by our own word."""
    optional = {root / "stacks" / name for name in (*CLOUDS, "pulumi")} | {
        root / part for part in GUARDED
    }
    declared = names(PROJECT["dependencies"])
    missing = {
        f"{path.relative_to(root)}: {module}"
        for path in (root / top).rglob("*.py")
        if not optional & {path, *path.parents}
        for module in map(package, modules_of(path))
        if module not in sys.stdlib_module_names | {"gcluster"}
        if not distribution(module) & declared
    }
    assert missing == set()


@pytest.mark.parametrize("part", GUARDED)
def test_what_only_extras_bring_is_imported_inside_functions(root: Path, part: str) -> None:
    tree = ast.parse((root / part).read_text(encoding="utf-8"))
    tops = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    found = {package(module) for node in tops for module in modules_in(node)}
    brought = names([each for extra in OPTIONAL.values() for each in extra])
    assert {module for module in found if distribution(module) & brought} == set()


@pytest.mark.parametrize("cloud", CLOUDS)
def test_what_a_cloud_imports_its_extra_brings(root: Path, cloud: str) -> None:
    brought = names(OPTIONAL[cloud]) | names(PROJECT["dependencies"])
    missing = {module for module in needed(root, cloud) if not distribution(module) & brought}
    assert missing == set()


@pytest.mark.parametrize("cloud", CLOUDS)
def test_an_extra_brings_nothing_that_is_not_imported(root: Path, cloud: str) -> None:
    used = {name for module in needed(root, cloud) for name in distribution(module)}
    assert names(OPTIONAL[cloud]) <= used | UNSEEN


@pytest.mark.parametrize("cloud", CLOUDS)
def test_an_extra_is_present_if_all_that_it_brings_is(cloud: str) -> None:
    modules: tuple[str, ...] = import_module(f"gcluster.stacks.{cloud}").MODULES
    assert {name for module in modules for name in distribution(module)} == names(OPTIONAL[cloud])


def test_what_telemetry_imports_its_extra_brings_and_nothing_else(root: Path) -> None:
    tree = ast.parse(
        (root / "lifecycle" / "state" / "audit" / "telemetry.py").read_text(encoding="utf-8")
    )
    used = {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module}
    brought = {name.replace("-", ".") for name in names(OPTIONAL["otel"])}
    api = {"opentelemetry.trace"}  # which the SDK brings
    wanted = {module for module in used if module.startswith("opentelemetry")} - api
    assert all(any(module.startswith(part) for part in brought) for module in wanted)
    assert all(any(module.startswith(part) for module in wanted) for part in brought)
