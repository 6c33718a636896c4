"""Docstrings and comments use the field's words, not the project's former private ones."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from pathlib import Path

FOLDERS = ("bench", "inventory", "lifecycle", "molecule", "plugins", "roles", "stacks")
FORMER = re.compile(
    r"\b(?:anew|believes|beside|died|dies|everybody|forgets|forgotten|heard|hears|house|ladder|"
    r"lest|living|lives|mend|own words|remembers|rung|somebody|speaks|spoke|stood|tells|told|"
    r"wears|went on|whoever)\b"
)
"""Words that named something else: "told" a message or callback, "beside" next to or in addition
to, "own words" a message, "ladder" a list of purchase options, "mend" fix."""


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


def test_a_former_word_is_found_in_a_docstring_and_in_a_comment() -> None:
    source = '"""Told of it."""\nx = 1  # whoever asks\ny = "told"\n'
    found = [line for line, text in _texts(source) if FORMER.search(text.lower())]
    assert found == [1, 2]


def test_docstrings_and_comments_use_no_former_words(root: Path, tracked: tuple[Path, ...]) -> None:
    found = [
        f"{path}:{line}: {hit[0]}"
        for path in tracked
        if path.suffix == ".py" and path.parts[0] in FOLDERS and not (root / path).is_symlink()
        for line, text in _texts((root / path).read_text(encoding="utf-8"))
        for hit in FORMER.finditer(" ".join(text.lower().split()))
    ]
    assert found == []
