"""Every verb is registered, told in the help, and has a module that keeps what is told."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import gcluster.cli
from gcluster.cli.verbs import BY_NAME, SECTIONS, VERBS

NAMES = sorted(BY_NAME)


@pytest.mark.parametrize("name", NAMES)
def test_the_help_of_a_verb_is_the_first_line_of_its_docstring(name: str) -> None:
    docstring = inspect.getdoc(import_module(f"gcluster.cli.{name}").command)
    assert docstring is not None
    assert docstring.splitlines()[0] == BY_NAME[name].help


@pytest.mark.parametrize("name", NAMES)
def test_a_verb_shows_its_own_help(run: Callable[..., Any], name: str) -> None:
    done = run(name, "--help")
    assert done.exit_code == 0
    assert f"Usage: gcluster {name}" in done.stdout
    assert " ".join(BY_NAME[name].help.split()) in " ".join(done.stdout.split())


def test_every_module_with_a_command_is_a_verb() -> None:
    folder = Path(str(gcluster.cli.__path__[0]))
    with_command = {
        path.stem
        for path in folder.glob("*.py")
        if path.stem != "main" and "\ndef command(" in path.read_text(encoding="utf-8")
    }
    assert with_command == set(NAMES)


def test_the_help_lists_every_verb_under_its_section(run: Callable[..., Any]) -> None:
    listing = run("--help").stdout.partition(f"{SECTIONS[0]}:")[2]
    for verb in VERBS:
        assert f"\n  {verb.name} " in listing


def test_the_help_imports_no_verb(shell: Callable[..., Any]) -> None:
    done = shell("--help", PYTHONPROFILEIMPORTTIME="1")
    assert done.returncode == 0
    assert [name for name in NAMES if f" gcluster.cli.{name}\n" in done.stderr] == []
