"""Each field of the spec's types is read by something that acts on it, not by checks alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

import gcluster
from gcluster.inventory.compile.roles import (
    compiled_components,
    compiled_fabrics,
    compiled_storage,
)
from gcluster.schemas.catalog import Fabric
from gcluster.schemas.checks.registry import all_checks
from gcluster.schemas.spec import Software, Storage
from gcluster.schemas.spec.model import SpecModel

_SOURCE = Path(gcluster.__path__[0])
_ACTING = ("inventory", "stacks", "lifecycle", "schemas/derived", "schemas/cost", "schemas/stack")
"""What compiles, plans, makes and prices; checks and the command line only look."""
_SPEC = "schemas/spec"

_READ_OTHERWISE = {
    "api_version": "loading compares it with the version of the language",
    "checkpointing": "a promise: checks hold the storage's throughput against it",
    "power_state": "FirmwareWanted is handed to the role firmware as a whole",
    "shell": "User is handed to the role base as a whole",
}
"""Fields that no acting module names, and who reads them."""
_REFUSED = {"mpi": "GC623"}
"""Keys of `software` that `validate` refuses, for no role acts on them."""
_NO_VERSIONS = {"distribution", "sources"}
"""Keys of `software` that are no version to install: what nodes are, and where packages are."""


_OTHERWISE = {
    "Software": "by role compilers: the test below",
    "ClusterSoftware": "as Software",
}
"""Types whose fields are not named one by one, and why."""


def _types() -> list[type[SpecModel]]:
    found: dict[str, type[SpecModel]] = {}
    ahead: list[type[SpecModel]] = [SpecModel]
    while ahead:
        for each in ahead.pop().__subclasses__():
            ahead.append(each)
            if each.__module__.startswith("gcluster.schemas.spec"):
                found[each.__name__] = each
    return [found[name] for name in sorted(found)]


def _names(tree: ast.AST) -> Iterator[str]:
    """Yield attributes that are read, and names given to getattr or as plain words."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "getattr":
            words = (word.value for word in node.args if isinstance(word, ast.Constant))
            yield from (word for word in words if isinstance(word, str))


@cache
def _read() -> frozenset[str]:
    """Return what acting modules read, and what the types' own properties read for them."""
    files = [path for part in _ACTING for path in (_SOURCE / part).rglob("*.py")]
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in files]
    read = {name for tree in trees for name in _names(tree)}
    own = [
        node
        for path in (_SOURCE / _SPEC).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
    ]
    while True:
        more = {name for node in own if node.name in read for name in _names(node)} - read
        if not more:
            return frozenset(read)
        read |= more


@pytest.mark.parametrize("type_", _types(), ids=lambda type_: type_.__name__)
def test_every_field_is_read_by_what_acts_on_it(type_: type[SpecModel]) -> None:
    whole = type_.__name__ in _OTHERWISE
    fields = () if whole else type_.__struct_fields__
    unread = [name for name in fields if name not in _read() | _READ_OTHERWISE.keys()]
    assert unread == [], "nothing acts on them: build it, or let validate refuse it"


def test_every_exception_is_needed_and_reports_why() -> None:
    fields = {name for each in _types() for name in each.__struct_fields__}

    assert _READ_OTHERWISE.keys() <= fields
    assert not _READ_OTHERWISE.keys() & _read()
    assert _OTHERWISE.keys() <= {each.__name__ for each in _types()}


def test_every_version_of_the_software_has_a_role_or_is_refused() -> None:
    acted_on = {*compiled_components(), *_REFUSED, *_NO_VERSIONS}

    assert set(Software.__struct_fields__) - acted_on == set()
    assert _REFUSED.keys() & compiled_components() == set()
    assert set(_REFUSED.values()) <= all_checks().keys()


def test_every_type_of_storage_has_a_role() -> None:
    kinds = {str(each.__struct_config__.tag) for each in get_args(Storage)}

    assert kinds
    assert kinds <= compiled_storage()


def test_what_may_drive_a_fabric_is_what_some_role_sets_up() -> None:
    """So a fabric class of one's own that no role sets up is an error of its catalog file."""
    [words, none] = get_args(get_type_hints(Fabric)["plugin"])

    assert none is type(None)
    assert set(get_args(words)) == compiled_fabrics()
