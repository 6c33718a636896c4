"""Fixes: what a machine changes is what was meant, and every other byte stays as it was."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.schemas import written_yaml

from gcluster.schemas.diagnostics import Diagnostic, Patch, Severity, Span
from gcluster.schemas.structure.compose import compose
from gcluster.schemas.structure.document import Document, line_starts
from gcluster.schemas.structure.fix.apply import fixed_text
from gcluster.schemas.structure.fix.edits import (
    Fix,
    Insert,
    Quote,
    Remove,
    RenameKey,
    Replace,
    ReplaceWord,
)
from gcluster.schemas.structure.fix.patches import patch_of


def _document(text: str) -> Document:
    composed = compose(text, file="t")
    assert composed.diagnostics == []
    assert composed.document is not None
    return composed.document


def _with(patch: Patch | None, code: str = "GC001") -> Diagnostic:
    return Diagnostic(code=code, severity=Severity.ERROR, summary="s", patch=patch)


def _fixed(text: str, *fixes: Fix) -> str:
    document = _document(text)
    patches = [patch_of(fix, document) for fix in fixes]
    assert None not in patches
    return fixed_text(text, [_with(patch) for patch in patches]).text


INSERTED = [
    ("a: 1\n", (), "a: 1\nk: v\n"),
    ("a: 1 # c\n# end\n", (), "a: 1 # c\nk: v\n# end\n"),
    ("a: 1", (), "a: 1\nk: v"),
    ("a: 1\r\nb: 2\r\n", (), "a: 1\r\nb: 2\r\nk: v\r\n"),
    ("a:\n    b: 1\n\nc: 2\n", ("a",), "a:\n    b: 1\n    k: v\n\nc: 2\n"),
    ("a:\n- b: 1\n- c: 2\n", ("a", 0), "a:\n- b: 1\n  k: v\n- c: 2\n"),
    ("a:\n  - b:\n      c: 1\nd: 2\n", ("a", 0), "a:\n  - b:\n      c: 1\n    k: v\nd: 2\n"),
    ("a:\n  b: |\n    text\n\n# c\nd: 1\n", ("a",), "a:\n  b: |\n    text\n  k: v\n\n# c\nd: 1\n"),
    ("a: {b: 1}\n", ("a",), "a: {b: 1, k: v}\n"),
    ("a: {b: 1,}\n", ("a",), "a: {b: 1, k: v,}\n"),
    ("a: {\n  b: 1, # c\n}\n", ("a",), "a: {\n  b: 1, k: v, # c\n}\n"),
    ("a: {}\n", ("a",), "a: {k: v}\n"),
    ("a: &x {b: 1}\nc: *x\n", ("a",), "a: &x {b: 1, k: v}\nc: *x\n"),
    ("a: {b: 1}\n", ("a", "c", "d"), "a: {b: 1, c: {d: {k: v}}}\n"),
    ("a:\n  b: 1\n", ("c",), "a:\n  b: 1\nc: {k: v}\n"),
]
REMOVED = [
    ("a: 1\nb: 2 # c\nd: 3\n", ("b",), "a: 1\nd: 3\n"),
    ("a: 1\nb: 2", ("b",), "a: 1"),
    ("a: 1\r\nb:\r\n  c: 1\r\nd: 3\r\n", ("b",), "a: 1\r\nd: 3\r\n"),
    ("a: 1\n# about b\nb: 2\n", ("a",), "# about b\nb: 2\n"),
    ("a:\n  b: 1\nc: 2\n", ("a", "b"), "a: {}\nc: 2\n"),
    ("a: # c\n- b\n", ("a", 0), "a: # c\n  []\n"),
    ("a: # c\n  b: 1\n", ("a", "b"), "a: # c\n  {}\n"),
    ("a:\n- x\n- y # c\n- z\n", ("a", 1), "a:\n- x\n- z\n"),
    ("a:\n- x\n", ("a", 0), "a: []\n"),
    ("a:\n- b: 1 # c\n  d: 2\n", ("a", 0, "b"), "a:\n- d: 2\n"),
    ("a:\n- b: 1\n- c\n", ("a", 0, "b"), "a:\n- {}\n- c\n"),
    ("a: {b: 1, c: 2}\n", ("a", "b"), "a: {c: 2}\n"),
    ("a: {b: 1, c: 2}\n", ("a", "c"), "a: {b: 1}\n"),
    ("a: {b: 1}\n", ("a", "b"), "a: {}\n"),
    ("a: [x, y, z,]\n", ("a", 2), "a: [x, y, ]\n"),
    ("a: [\n  x, # c1\n  y, # c2\n]\n", ("a", 0), "a: [\n  y, # c2\n]\n"),
    ("a: [\n  x, # c1\n  y # c2\n]\n", ("a", 1), "a: [\n  x, # c1\n]\n"),
    ("a: [x, # c1\n  y]\n", ("a", 1), "a: [x, # c1\n  ]\n"),
]
REPLACED = [
    ("a: yes # c\n", Replace(("a",), "true"), "a: true # c\n"),
    ("a: 'yes'\n", Replace(("a",), "true"), "a: true\n"),
    ("a: &x yes\nb: *x\n", Replace(("a",), "true"), "a: &x true\nb: *x\n"),
    ("a:\n", Replace(("a",), "1"), "a: 1\n"),
    ("a: # c\nb: 1\n", Replace(("a",), "1"), "a: 1 # c\nb: 1\n"),
    ("a:\n  - x\n  - y # c\nb: 1\n", Replace(("a",), "[x]"), "a: [x] # c\nb: 1\n"),
    ("a: |\n  x\n\nb: 1\n", Replace(("a",), "y"), "a: y\n\nb: 1\n"),
    ("a: {b: x}\n", Replace(("a", "b"), "gpu[1-2]"), 'a: {b: "gpu[1-2]"}\n'),
    ("a: {b: x}\n", Replace(("a", "b"), "[c, d]"), "a: {b: [c, d]}\n"),
    ("a:\n-\n- b\n", Replace(("a", 0), "1"), "a:\n- 1\n- b\n"),
    ("a: heer\n", ReplaceWord(("a",), "here"), "a: here\n"),
    ("a: 'heer'\n", ReplaceWord(("a",), "here"), "a: 'here'\n"),
    ('a: "heer"\n', ReplaceWord(("a",), "here"), 'a: "here"\n'),
    ("a: heer\n", ReplaceWord(("a",), "true"), 'a: "true"\n'),
    ("a: 1.10\n", Quote(("a",)), 'a: "1.10"\n'),
    ("a: {machin: 1}\n", RenameKey(("a", "machin"), "machine"), "a: {machine: 1}\n"),
    ("'machin' : 1\n", RenameKey(("machin",), "machine"), "machine : 1\n"),
]
UNSURE = [
    ("a: &x {b: 1}\nc: *x\n", Replace(("c", "b"), "2")),
    ("a: &x {b: 1}\nc: *x\n", Insert(("c",), "k", "v")),
    ("a: &x 1\nc: *x\n", Replace(("c",), "2")),
    ("a: !!str 1\n", Replace(("a",), "2")),
    ("a: 1\n", Replace(("b",), "2")),
    ("a: 1\nb: 2\n", RenameKey(("a",), "b")),
    ("a: 1\n", Insert((), "a", "2")),
    ("a: [1]\n", Insert(("a", 3), "k", "v")),
    ("a: 1\n", Insert(("a",), "k", "v")),
    ("a: x\n", Quote(("a",))),
    ("a: 1\n", Remove(())),
    ("? a\n: 1\nb: 2\n", Remove(("a",))),
    ("l:\n- a: 1\n  # about b\n  b: 2\n", Remove(("l", 0, "a"))),
]


@pytest.mark.parametrize(("text", "path", "expected"), INSERTED)
def test_an_entry_is_added_after_the_last_one_in_the_style_of_its_mapping(
    text: str, path: Any, expected: str
) -> None:
    assert _fixed(text, Insert(path, "k", "v")) == expected


def test_an_entry_can_be_added_first() -> None:
    first = Insert((), "k", "v", first=True)
    assert _fixed("# top\na: 1\n", first) == "# top\nk: v\na: 1\n"
    assert _fixed("{a: 1}\n", first) == "{k: v, a: 1}\n"


@pytest.mark.parametrize(("text", "path", "expected"), REMOVED)
def test_an_entry_goes_with_its_comma_and_the_comment_of_its_line(
    text: str, path: Any, expected: str
) -> None:
    assert _fixed(text, Remove(path)) == expected


@pytest.mark.parametrize(("text", "fix", "expected"), REPLACED)
def test_a_value_or_key_is_replaced_in_its_place(text: str, fix: Fix, expected: str) -> None:
    assert _fixed(text, fix) == expected


@pytest.mark.parametrize(("text", "fix"), UNSURE)
def test_what_is_not_certain_has_no_patch(text: str, fix: Fix) -> None:
    assert patch_of(fix, _document(text)) is None


def test_several_patches_of_one_text_are_applied_together() -> None:
    text = "a: {b: 1, machin: x}\nc: yes\n"
    fixes = [
        Insert(("a",), "k", "1"),
        Insert(("a",), "l", "2"),
        RenameKey(("a", "machin"), "machine"),
        Replace(("c",), "true"),
    ]
    assert _fixed(text, *fixes) == "a: {b: 1, machine: x, k: 1, l: 2}\nc: true\n"


def test_of_two_patches_that_overlap_the_second_is_left() -> None:
    text = "a: {b: 1, c: 2}\n"
    document = _document(text)
    found = [
        _with(patch_of(Remove(("a", "b")), document), "GC001"),
        _with(patch_of(Replace(("a", "b"), "3"), document), "GC002"),
        _with(None, "GC003"),
    ]
    fixed = fixed_text(text, found)

    assert fixed.text == "a: {c: 2}\n"
    assert fixed.applied == (found[0],)
    assert fixed.left == (found[1], found[2])


def test_two_findings_with_one_patch_are_both_applied() -> None:
    document = _document("a: 1\n")
    patch = patch_of(Insert((), "k", "v"), document)
    fixed = fixed_text("a: 1\n", [_with(patch), _with(patch)])

    assert fixed.text == "a: 1\nk: v\n"
    assert len(fixed.applied) == 2


def test_a_patch_that_would_leave_unreadable_yaml_is_left_and_the_others_are_applied() -> None:
    text = "a: 1\nb: 2\nc: &x 3\nd: *x\n"
    document = _document(text)
    bad = Patch(span=Span(line=1, column=4, end_line=1, end_column=5), replacement="{")
    found = [
        _with(bad),
        _with(patch_of(Replace(("b",), "5"), document)),
        _with(patch_of(Remove(("c",)), document)),
    ]
    fixed = fixed_text(text, found)

    assert fixed.text == "a: 1\nb: 5\nc: &x 3\nd: *x\n"
    assert fixed.applied == (found[1],)


@pytest.mark.parametrize("place", [(9, 1, 9, 2), (1, 1, 3, 9), (1, 5, 1, 2), (1, 9, 1, 9)])
def test_a_patch_of_another_text_is_left(place: tuple[int, int, int, int]) -> None:
    line, column, end_line, end_column = place
    span = Span(line=line, column=column, end_line=end_line, end_column=end_column)
    fixed = fixed_text("a: 1\nb: 2\n", [_with(Patch(span=span, replacement="x"))])
    assert fixed.text == "a: 1\nb: 2\n"


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    if isinstance(value, dict | list):
        for step in value if isinstance(value, dict) else range(len(value)):
            found += _paths(value[step], (*path, step))
    return found


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


def _done(data: Any, fix: Any) -> Any:
    """Do to plain data what a fix says."""
    data = copy.deepcopy(data)
    if isinstance(fix, Insert):
        _at(data, fix.path)[fix.key] = fix.text
        return data
    holder, step = _at(data, fix.path[:-1]), fix.path[-1]
    if isinstance(fix, Replace):
        holder[step] = ["x", 1] if fix.text.startswith("[") else fix.text
    elif isinstance(fix, ReplaceWord):
        holder[step] = fix.word
    elif isinstance(fix, Remove):
        del holder[step]
    else:
        holder[fix.key] = holder.pop(step)
    return data


def _any_fix(data: Any, chance: random.Random) -> Fix:
    path = chance.choice(_paths(data))
    word = chance.choice(written_yaml.WORDS)
    if isinstance(_at(data, path), dict) and chance.random() < 0.5:
        return Insert(path, "new", "v 1", first=chance.random() < 0.3)
    if not path or chance.random() < 0.4:
        inner = [path for path in _paths(data) if path]
        return Remove(chance.choice(inner))
    if isinstance(path[-1], str) and chance.random() < 0.3:
        return RenameKey(path, "new")
    if isinstance(_at(data, path), dict | list) or chance.random() < 0.4:
        return Replace(path, chance.choice(["[x, 1]", "gpu[1-2]"]))
    return ReplaceWord(path, word)


@settings(max_examples=300)
@given(st.randoms(use_true_random=False))
def test_a_fix_does_what_it_has_and_touches_no_byte_outside_its_span(
    chance: random.Random,
) -> None:
    data = written_yaml.data(chance)
    text = written_yaml.written(data, chance)
    document = _document(text)
    assert document.data == data
    fix = _any_fix(data, chance)
    patch = patch_of(fix, document)
    if patch is None:
        return
    fixed = fixed_text(text, [_with(patch)])
    starts = line_starts(text)
    start = starts[patch.span.line - 1] + patch.span.column - 1
    end = starts[patch.span.end_line - 1] + patch.span.end_column - 1

    assert fixed.applied
    assert fixed.text == text[:start] + patch.replacement + text[end:]
    assert _document(fixed.text).data == _done(data, fix)


@settings(max_examples=200)
@given(st.randoms(use_true_random=False))
def test_many_fixes_at_once_leave_readable_yaml_and_all_that_is_outside_them(
    chance: random.Random,
) -> None:
    data = written_yaml.data(chance)
    text = written_yaml.written(data, chance)
    document = _document(text)
    found = [_with(patch_of(_any_fix(data, chance), document)) for _ in range(6)]
    fixed = fixed_text(text, found)
    rest = fixed_text(text, fixed.applied)

    assert compose(fixed.text, file="t").diagnostics == []
    assert rest.text == fixed.text
    assert rest.left == ()
