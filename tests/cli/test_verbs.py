"""Every verb is registered, told in the help, and has a module that keeps what is told."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import gcluster.cli
from gcluster.cli.group import make_command
from gcluster.cli.verbs import BY_NAME, QUICK, SECTIONS, VERBS

NAMES = sorted(BY_NAME)
_FOLDER = Path(str(gcluster.cli.__path__[0]))


def _has_words(package: Path) -> bool:
    return "\nWORDS = " in package.read_text(encoding="utf-8")


OF_WORDS = [p.parent.name for p in sorted(_FOLDER.glob("*/__init__.py")) if _has_words(p)]


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
    words = re.findall(r"--[A-Za-z][\w-]*", done.stdout)
    assert [word for word in words if word != word.lower()] == [], "typer took a metavar for a name"
    assert " ".join(BY_NAME[name].help.split()) in " ".join(done.stdout.split())


def test_every_module_with_a_command_is_a_verb() -> None:
    with_command = {
        path.stem
        for path in _FOLDER.glob("*.py")
        if path.stem != "app" and "\ndef command(" in path.read_text(encoding="utf-8")
    }
    assert with_command | set(OF_WORDS) == set(NAMES)


@pytest.mark.parametrize("name", OF_WORDS)
def test_the_words_of_a_verb_are_the_modules_of_its_folder(
    run: Callable[..., Any], name: str
) -> None:
    package = import_module(f"gcluster.cli.{name}")
    modules = {path.stem for path in (_FOLDER / name).glob("*.py")} - {"__init__"}
    assert {word.replace("-", "_") for word in package.WORDS} == modules
    for word, line in package.WORDS.items():
        module = import_module(f"gcluster.cli.{name}.{word.replace('-', '_')}")
        assert (inspect.getdoc(module.command) or "").splitlines()[0] == line
        assert line in " ".join(run(name, "--help").stdout.split())
        assert f"Usage: gcluster {name} {word}" in run(name, word, "--help").stdout


def test_the_help_lists_every_verb_under_its_section(run: Callable[..., Any]) -> None:
    listing = run("--help").stdout.partition(f"{SECTIONS[0]}:")[2]
    for verb in VERBS:
        assert f"\n  {verb.name} " in listing


def test_the_help_imports_no_verb(shell: Callable[..., Any]) -> None:
    done = shell("--help", PYTHONPROFILEIMPORTTIME="1")
    assert done.returncode == 0
    assert [name for name in NAMES if f" gcluster.cli.{name}\n" in done.stderr] == []


@pytest.mark.parametrize("name", NAMES)
def test_garbage_is_collected_in_every_verb_that_takes_longer(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    switched: list[str] = []
    monkeypatch.setattr("gc.enable", lambda: switched.append(name))
    make_command(name)
    assert switched == ([] if name in QUICK else [name])


def test_quick_verbs_import_nothing_that_wants_a_clean_up(shell: Callable[..., Any]) -> None:
    for words in (["schema"], ["init", "/dev/null"], ["validate", "-"]):
        told = shell(*words, PYTHONPROFILEIMPORTTIME="1").stderr
        assert words[0] in QUICK
        wants = r" (obstore|concurrent\.futures|tempfile|ansible_runner)$"
        assert not re.search(wants, told, re.MULTILINE)
