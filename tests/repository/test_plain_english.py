"""Docstrings, comments and names use the field's words, not the project's former private ones."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

FOLDERS = (
    ".ci", "bench", "cli", "inventory", "lifecycle", "molecule", "plugins", "roles", "schemas",
    "stacks", "tests",
)  # fmt: skip
FORMER = re.compile(
    r"\b(?:anew|asked|asking|asks?(?!:| for confirmation)|believes|beside|crew|died|dies|everybody|"
    r"forgets|forgotten|heard|hears|house|hurts?|ladder|lest|living|lives|mend(?:s|ed)?|nobody|"
    r"own words|remembers|rung|somebody|speaks?|spoken?|stands?|standing|stood|tell|telling|tells|"
    r"told|wears|weather|went on|whoever)\b"
)
"""Words that named something else, or made a person of a program: "told" a message or callback,
"asks" requests, queries or requires, "stands for" simulates or replaces, "beside" next to or in
addition to, "own words" a message, "ladder" a list of purchase options, "mend" fix, "weather"
faults. A command asks for confirmation; `ask:` is the name of an argument."""

TESTS = (".ci", "bench", "molecule", "tests")
NAMES = re.compile(
    r"anew|anybody|asked|asks|believes|beside|crew|everybody|forgot|hears|hurts?|ladder|living|"
    r"mend(?:ed)?|nobody|rung|said|says|somebody|speaks|spoken|stands|stood|tells|told|wants|wears|"
    r"weather|whoever"
)
"""Words of names of files, classes and functions of tests; doubles of a prompt are `ask`."""


def _texts(source: str) -> list[tuple[int, str]]:
    """Return line and text of each docstring and comment."""
    texts = [
        (node.lineno, node.value.value)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    ]
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    texts += [(t.start[0], t.string) for t in tokens if t.type == tokenize.COMMENT]
    return texts


def _prose(text: str) -> str:
    """Return a text in small letters on one line, without quoted words and code."""
    return re.sub(r'"[^"]{1,40}"|`[^`]{1,80}`', "", " ".join(text.lower().split()))


def _names(source: str) -> list[tuple[int, str]]:
    """Return line and name of each class and function."""
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return [(n.lineno, n.name) for n in ast.walk(ast.parse(source)) if isinstance(n, kinds)]


def _former(name: str) -> list[str]:
    """Return the former words of a name: of_this_form, OfThisForm or of-this-form."""
    words = re.split(r"[-_.]", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())
    return [word for word in words if NAMES.fullmatch(word)]


@pytest.fixture(scope="module")
def sources(root: Path, tracked: tuple[Path, ...]) -> dict[Path, str]:
    """Return the text of each tracked Python program of FOLDERS; programs need no suffix."""
    found = {}
    for path in tracked:
        file = root / path
        if path.parts[0] in FOLDERS and path.suffix in (".py", "") and not file.is_symlink():
            text = file.read_text(encoding="utf-8")
            if path.suffix or re.match("#!.*python", text):
                found[path] = text
    return found


def test_a_former_word_is_found_in_a_docstring_and_in_a_comment() -> None:
    source = '"""Told of it."""\nx = 1  # whoever asks\ny = "told"\n'
    found = [line for line, text in _texts(source) if FORMER.search(text.lower())]
    assert found == [1, 2]


def test_a_former_word_is_found_in_each_form_of_a_name() -> None:
    source = "class ToldTwice:\n    def who_asked(self): told = 1\n"
    found = [(line, _former(name)) for line, name in _names(source)]
    assert found == [(1, ["told"]), (2, ["asked"])]
    assert _former("asks-of-it.py") == ["asks"]


def test_words_that_are_quoted_or_code_are_left_alone() -> None:
    assert [_prose(x) for x in ('user "nobody"', "raises as `ask`", 'says "it stands\nhere"')] == [
        "user ", "raises as ", "says ",
    ]  # fmt: skip


def test_docstrings_and_comments_use_no_former_words(sources: dict[Path, str]) -> None:
    found = [
        f"{path}:{line}: {hit[0]}"
        for path, source in sources.items()
        for line, text in _texts(source)
        for hit in FORMER.finditer(_prose(text))
    ]
    assert found == []


def test_names_of_tests_have_no_former_words(
    sources: dict[Path, str], tracked: tuple[Path, ...]
) -> None:
    found = [
        f"{path}:{line}: {name}"
        for path, source in sources.items()
        if path.parts[0] in TESTS
        for line, name in _names(source)
        if _former(name)
    ]
    found += [str(path) for path in tracked if path.parts[0] in TESTS and _former(path.name)]
    assert found == []
