"""Every verb is listed in the help, and has a module that keeps what is said there."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import gcluster.cli
from gcluster.cli.commands import BY_NAME, SECTIONS, VERBS

NAMES = sorted(BY_NAME)
FOLDER = Path(str(gcluster.cli.__path__[0]))


def _module(name: str) -> Any:
    return import_module(BY_NAME[name].module, "gcluster.cli")


GROUPS = [name for name in NAMES if not hasattr(_module(name), "command")]


@pytest.mark.parametrize("name", NAMES)
def test_the_help_of_a_verb_is_the_first_line_of_its_docstring(name: str) -> None:
    function = getattr(_module(name), name if name in GROUPS else "command")
    assert (inspect.getdoc(function) or "").splitlines()[0] == BY_NAME[name].help


@pytest.mark.parametrize("name", NAMES)
def test_a_verb_shows_its_own_help(run: Callable[..., Any], name: str) -> None:
    done = run(name, "--help")
    assert done.exit_code == 0
    assert f"Usage: gcluster {name}" in done.stdout
    words = re.findall(r"--[A-Za-z][\w-]*", done.stdout)
    assert [word for word in words if word != word.lower()] == [], "typer took a metavar for a name"
    assert " ".join(BY_NAME[name].help.split()) in " ".join(done.stdout.split())


def test_every_module_of_a_section_is_a_verb() -> None:
    modules = {
        f".{path.parent.name}.{path.stem}"
        for section in SECTIONS
        for path in (FOLDER / section.lower()).glob("*.py")
        if path.stem != "__init__"
    }
    assert modules == {verb.module for verb in VERBS}


@pytest.mark.parametrize("name", NAMES)
def test_a_line_of_help_is_a_sentence_of_at_most_60_characters(name: str) -> None:
    of_commands = [
        (inspect.getdoc(command.callback) or "").splitlines()[0]
        for command in (_module(name).app.registered_commands if name in GROUPS else ())
    ]
    for line in (BY_NAME[name].help, *of_commands):
        assert len(line) <= 60, line
        assert re.fullmatch(r"[A-Z].*\.", line)


@pytest.mark.parametrize("name", GROUPS)
def test_each_command_of_a_verb_is_listed_with_the_first_line_of_its_docstring(
    run: Callable[..., Any], name: str
) -> None:
    listing = " ".join(run(name, "--help").stdout.split())
    commands = _module(name).app.registered_commands
    assert commands
    for command in commands:
        line = (inspect.getdoc(command.callback) or "").splitlines()[0]
        assert f"{command.name} {line}" in listing
        assert f"Usage: gcluster {name} {command.name}" in run(name, command.name, "--help").stdout


def test_the_help_lists_every_verb_under_its_section(run: Callable[..., Any]) -> None:
    listing = run("--help").stdout.partition(f"{SECTIONS[0]}:")[2]
    for verb in VERBS:
        assert f"\n  {verb.name} " in listing


def test_the_help_imports_no_verb(shell: Callable[..., Any]) -> None:
    done = shell("--help", PYTHONPROFILEIMPORTTIME="1")
    assert done.returncode == 0
    assert [verb for verb in VERBS if f" gcluster.cli{verb.module}\n" in done.stderr] == []
