"""Regular expressions in roles are what they look like, through YAML and Jinja."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jinja2
import pytest
import yaml
from jinja2 import nodes

ROLES = Path(__file__).parents[2] / "roles"
BARE = {"assert", "changed_when", "failed_when", "that", "until", "when"}
"""Keys whose value is an expression without braces."""
MATCHING = {"match", "search", "regex", "regex_search", "regex_replace", "regex_findall"}


def expressions(value: Any, key: str = "") -> Iterator[str]:
    """Yield what Jinja reads of a task, written as templates."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from expressions(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from expressions(inner, key)
    elif isinstance(value, str):
        if key in BARE and "{{" not in value:
            yield "{{ " + value + " }}"
        elif "{{" in value or "{%" in value:
            yield value


def patterns(text: str) -> Iterator[str]:
    """Yield the regular expressions that a template's tests and filters are given."""
    parsed = jinja2.Environment(autoescape=True).parse(text)
    for node in parsed.find_all((nodes.Test, nodes.Filter)):
        if node.name.removeprefix("ansible.builtin.") in MATCHING and node.args:
            first = node.args[0]
            if isinstance(first, nodes.Const):
                yield str(first.value)


def literal_escapes(text: str) -> Iterator[str]:
    """Yield the strings of a template in which Ansible leaves backslash and n as they are.

    It escapes backslashes of what YAML gives to Jinja; only regular expressions read them anyway.
    """
    called = ["", ""]
    for _, kind, word in jinja2.Environment(autoescape=True).lex(text):
        if kind == "name":
            called[-1] = word.rpartition(".")[2]
        elif word in {"(", "[", "{"} and kind == "operator":
            called.append("")
        elif word in {")", "]", "}"} and kind == "operator":
            called.pop()
        elif kind == "string" and word[1:-1] in MATCHING:  # map('regex_replace', ..)
            called[-2] = word[1:-1]
        elif kind == "string" and "\\n" in word and called[-2] not in MATCHING:
            yield word


@functools.cache
def found() -> list[tuple[str, str]]:
    """Return (file, pattern) of all roles' tasks and variables."""
    return [
        (str(path.relative_to(ROLES)), pattern)
        for folder in ("tasks", "handlers", "vars", "defaults")
        for path in sorted(ROLES.glob(f"*/{folder}/*.yml"))
        for text in expressions(yaml.safe_load(path.read_text()))
        for pattern in patterns(text)
    ]


def test_a_line_break_in_a_string_of_jinja_is_one() -> None:
    """In YAML's double quotes it is; in other forms Ansible writes a backslash and an n."""
    assert list(literal_escapes("{{ 'a\\n' }} {{ x | map('regex_replace', '\\n') }}")) == ["'a\\n'"]
    wrong = {
        str(path.relative_to(ROLES)): words
        for folder in ("tasks", "handlers", "vars", "defaults")
        for path in sorted(ROLES.glob(f"*/{folder}/*.yml"))
        if (
            words := [
                word
                for text in expressions(yaml.safe_load(path.read_text()))
                for word in literal_escapes(text)
            ]
        )
    }
    assert wrong == {}


def test_every_regular_expression_of_a_role_is_one() -> None:
    broken = []
    for file, pattern in found():
        try:
            re.compile(pattern)
        except re.error as error:
            broken.append(f"{file}: {pattern}: {error}")
    assert broken == []


@pytest.mark.parametrize("bad", ["", "two words", "a#b", 'a"b', "a'b", "a`b", "a\\b", "a\n"])
def test_a_database_password_that_files_can_t_hold_is_refused(bad: str) -> None:
    (pattern,) = {
        pattern
        for file, pattern in found()
        if file == "slurmdbd/tasks/configure.yml" and "x22" in pattern
    }
    assert not re.match(pattern, bad)
    assert re.match(pattern, "0123abcdef$=+/")
