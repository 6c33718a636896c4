"""Imports point one way: schemas <- inventory <- stacks <- lifecycle <- cli, never back."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ORDER = ("schemas", "inventory", "stacks", "lifecycle", "cli")
STACKS_MAY_IMPORT = ("gcluster.inventory.hosts", "gcluster.inventory.bare_metal")
PURE = ("schemas", "inventory")
WORLD = {"asyncio", "http", "random", "secrets", "socket", "subprocess", "time", "urllib", "uuid"}
TEXT_ALONE = "urllib.parse."
"""Takes text apart; the rest of urllib asks the network."""
CLOCK = {"now", "today", "utcnow"}
ENVIRONMENT = {"environ", "getenv", "environb"}


def _imports(tree: ast.Module, package: str) -> Iterator[str]:
    """Yield every imported module or name, dotted, wherever in the file it is imported."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = f"gcluster.{package}" if node.level else ""
            module = ".".join(part for part in (base, node.module or "") if part)
            yield from (f"{module}.{alias.name}" for alias in node.names)


def wrong_way(package: str, source: str) -> list[str]:
    """Return the imports of `source`, a module of `package`, that go against the order."""
    above = ORDER[ORDER.index(package) + 1 :]
    wrong = []
    for name in _imports(ast.parse(source), package):
        part = name.split(".")[1] if name.startswith("gcluster.") else ""
        beside_the_contract = (
            package == "stacks" and part == "inventory" and not name.startswith(STACKS_MAY_IMPORT)
        )
        if part in above or beside_the_contract:
            wrong.append(name)
    return wrong


def touches_the_world(source: str) -> list[str]:
    """Return what a pure module may not use: clocks, chance, processes, network, environment."""
    tree = ast.parse(source)
    found = [
        name
        for name in _imports(tree, "")
        if name.split(".")[0] in WORLD and not name.startswith(TEXT_ALONE)
    ]
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, (ast.Name, ast.Attribute)):
            owner = ast.unparse(node.value)
            clock = node.attr in CLOCK and owner.split(".")[-1] in {"datetime", "date"}
            if clock or (node.attr in ENVIRONMENT and owner == "os"):
                found.append(f"{owner}.{node.attr}")
    return found


def _modules(root: Path, package: str) -> list[Path]:
    return sorted((root / package).rglob("*.py"))


@pytest.mark.parametrize("package", ORDER)
def test_no_module_imports_against_the_order(root: Path, package: str) -> None:
    wrong = {
        str(path.relative_to(root)): names
        for path in _modules(root, package)
        if (names := wrong_way(package, path.read_text(encoding="utf-8")))
    }
    assert wrong == {}


@pytest.mark.parametrize("package", PURE)
def test_pure_packages_touch_no_clock_no_process_and_no_environment(
    root: Path, package: str
) -> None:
    found = {
        str(path.relative_to(root)): names
        for path in _modules(root, package)
        if (names := touches_the_world(path.read_text(encoding="utf-8")))
    }
    assert found == {}


@pytest.mark.parametrize(
    ("package", "source"),
    [
        ("schemas", "import gcluster.inventory.hosts"),
        ("inventory", "from gcluster import stacks"),
        ("stacks", "from gcluster.inventory.compile import steps"),
        ("stacks", "from gcluster.inventory import compile"),
        ("lifecycle", "def f():\n    from gcluster.cli.main import main"),
    ],
)
def test_a_wrong_import_is_seen_wherever_it_stands(package: str, source: str) -> None:
    assert wrong_way(package, source) != []


@pytest.mark.parametrize(
    "source",
    [
        "import subprocess",
        "from time import monotonic",
        "import os\nos.environ['HOME']",
        "import datetime\ndatetime.datetime.now()",
    ],
)
def test_a_touch_of_the_world_is_seen(source: str) -> None:
    assert touches_the_world(source) != []


def test_what_stacks_is_allowed_is_allowed() -> None:
    assert wrong_way("stacks", "from gcluster.inventory.hosts import Host") == []
    assert wrong_way("stacks", "from gcluster.schemas.spec import ClusterSpec") == []
