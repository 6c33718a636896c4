"""Imports point one way: schemas <- inventory <- stacks <- lifecycle <- cli, never back."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ORDER = ("schemas", "inventory", "stacks", "lifecycle", "cli")
STACKS_MAY_IMPORT = ("gcluster.inventory.hosts", "gcluster.inventory.bare_metal")
PURE = ("schemas", "inventory")
WORLD = {"asyncio", "http", "random", "secrets", "socket", "subprocess", "time", "urllib", "uuid"}
TEXT_ALONE = "urllib.parse."
"""Takes text apart; the rest of urllib uses the network."""
CLOCK = {"now", "today", "utcnow"}
ENVIRONMENT = {"environ", "getenv", "environb"}


def _parsed(source: str) -> ast.Module:
    """Parse a file, once more where CPython fails: another thread that parses disturbs it.

    "AST constructor recursion depth mismatch": the depth is counted for all threads together
    (python/cpython#106905).
    """
    try:
        return ast.parse(source)
    except SystemError:
        return ast.parse(source)


def _imports(tree: ast.Module, module: str) -> Iterator[str]:
    """Yield every imported module or name, dotted, wherever in the file `module` it is imported.

    `module` is the dotted name of the file; one of a package's `__init__.py` ends with it.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = module.split(".")[: -node.level] if node.level else []
            parts = [*base, *([node.module] if node.module else [])]
            yield from (".".join([*parts, alias.name]) for alias in node.names)


def wrong_way(module: str, source: str) -> list[str]:
    """Return the imports of `source`, the file `module`, that go against the order."""
    package = module.split(".")[1]
    above = ORDER[ORDER.index(package) + 1 :]
    wrong = []
    for name in _imports(_parsed(source), module):
        part = name.split(".")[1] if name.startswith("gcluster.") else ""
        past_the_contract = (
            package == "stacks" and part == "inventory" and not name.startswith(STACKS_MAY_IMPORT)
        )
        if part in above or past_the_contract:
            wrong.append(name)
    return wrong


def absolute(source: str) -> list[str]:
    """Return the imports that give a file of the package a second identity: `gcluster.x`."""
    return [
        ast.unparse(node)
        for node in ast.walk(_parsed(source))
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "gcluster"
    ]


def touches_the_world(source: str) -> list[str]:
    """Return what a pure module may not use: clocks, chance, processes, network, environment."""
    tree = _parsed(source)
    found = [
        name
        for name in _imports(tree, "gcluster.a.b.c.d")  # what is relative is ours
        if name.split(".")[0] in WORLD and not name.startswith(TEXT_ALONE)
    ]
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, (ast.Name, ast.Attribute)):
            owner = ast.unparse(node.value)
            clock = node.attr in CLOCK and owner.split(".")[-1] in {"datetime", "date"}
            if clock or (node.attr in ENVIRONMENT and owner == "os"):
                found.append(f"{owner}.{node.attr}")
    return found


def a_cycle(sources: Mapping[str, str]) -> list[str]:
    """Return modules that import each other in a circle, the first one again at the end; or [].

    Imports inside functions count, as they only hide a circle; those for types alone don't.

    Args:
        sources: text of each file by its dotted name, as of `_modules`.
    """
    names = {module.removesuffix(".__init__"): module for module in sources}
    graph: dict[str, set[str]] = {}
    for module, source in sources.items():
        tree = _parsed(source)
        for node in ast.walk(tree):
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
                node.body = []
        requested = {
            names.get(name) or names.get(name.rpartition(".")[0]) for name in _imports(tree, module)
        }
        graph[module] = {name for name in requested if name not in {None, module}}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def _modules(root: Path, package: str) -> dict[str, str]:
    """Return the text of each file of a package by its dotted name."""
    return {
        ".".join(("gcluster", *path.relative_to(root).with_suffix("").parts)): path.read_text(
            encoding="utf-8"
        )
        for path in sorted((root / package).rglob("*.py"))
    }


@pytest.mark.parametrize("package", ORDER)
def test_no_module_imports_against_the_order(root: Path, package: str) -> None:
    wrong = {
        module: names
        for module, source in _modules(root, package).items()
        if (names := wrong_way(module, source))
    }
    assert wrong == {}


@pytest.mark.parametrize("package", ORDER)
def test_no_modules_import_each_other_in_a_circle(root: Path, package: str) -> None:
    assert a_cycle(_modules(root, package)) == []


@pytest.mark.parametrize(
    ("sources", "circle"),
    [
        ({"gcluster.a.b": "from .c import d", "gcluster.a.c": "from ..x import y"}, []),
        (
            {"gcluster.a.b": "from .c import d", "gcluster.a.c": "def f():\n    from .b import g"},
            ["gcluster.a.b", "gcluster.a.c"],
        ),
        (
            {"gcluster.a.__init__": "from .b import d", "gcluster.a.b": "from . import d"},
            ["gcluster.a.__init__", "gcluster.a.b"],
        ),
        (
            {
                "gcluster.a.b": "from .c import d",
                "gcluster.a.c": "if TYPE_CHECKING:\n    from .b import g",
            },
            [],
        ),
    ],
    ids=["none", "in a function", "a package and its module", "for types alone"],
)
def test_a_circle_of_imports_is_found(sources: dict[str, str], circle: list[str]) -> None:
    assert sorted(set(a_cycle(sources))) == circle


@pytest.mark.parametrize("package", ORDER)
def test_files_of_the_package_import_each_other_relatively(root: Path, package: str) -> None:
    found = {
        module: names for module, s in _modules(root, package).items() if (names := absolute(s))
    }
    assert found == {}


@pytest.mark.parametrize("package", PURE)
def test_pure_packages_touch_no_clock_no_process_and_no_environment(
    root: Path, package: str
) -> None:
    found = {
        module: names
        for module, source in _modules(root, package).items()
        if (names := touches_the_world(source))
    }
    assert found == {}


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("schemas.load", "import gcluster.inventory.hosts"),
        ("schemas.load", "from ..inventory.hosts import Host"),
        ("schemas.checks.fabric", "from ...inventory import hosts"),
        ("schemas.checks.__init__", "from ...inventory import hosts"),
        ("inventory.hosts", "from .. import stacks"),
        ("stacks.registry", "from ..inventory.compile import steps"),
        ("stacks.aws.elastic", "from ...inventory import compile"),
        ("lifecycle.up.up", "def f():\n    from ...cli.main import main"),
    ],
)
def test_a_wrong_import_is_seen_wherever_it_is(module: str, source: str) -> None:
    assert wrong_way(f"gcluster.{module}", source) != []


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
    assert wrong_way("gcluster.stacks.registry", "from ..inventory.hosts import Host") == []
    assert wrong_way("gcluster.stacks.registry", "from ..schemas.spec import ClusterSpec") == []
