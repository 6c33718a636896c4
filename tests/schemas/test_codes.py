"""The register of codes: complete, unique, explained, and the page that is made from it."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import gcluster
from gcluster.schemas.checks import CHECKS
from gcluster.schemas.codes import FAMILIES, example_of, explanations, family_of, register
from gcluster.schemas.codes.__main__ import main
from gcluster.schemas.codes.explanations import render
from gcluster.schemas.codes.registered import (
    REGISTER,
    TEXTS,
    Entry,
    Text,
    entries,
    number_of,
    read,
    with_new,
)
from gcluster.schemas.fleet.codes import FLEET_CODES
from gcluster.schemas.policies import POLICY_CODES

_SOURCE = Path(gcluster.__path__[0])
_CODE = re.compile(r"GC\d{3,4}")


def _emitted() -> Iterator[tuple[str, str]]:
    """Yield (code, module) for every code that is a value in the source."""
    for package in ("schemas", "inventory", "stacks", "lifecycle", "cli"):
        for module in sorted((_SOURCE / package).rglob("*.py")):
            tree = ast.parse(module.read_text(encoding="utf-8"))
            for node in ast.walk(tree):
                value = node.value if isinstance(node, ast.Constant) else None
                if isinstance(value, str) and _CODE.fullmatch(value):
                    yield value, module.name


def test_every_code_that_the_source_gives_is_in_the_register_and_no_retired_one_is_given() -> None:
    known = register()
    unknown = sorted({f"{code} ({module})" for code, module in _emitted() if code not in known})
    retired = {code for code, entry in known.items() if entry.retired}

    assert unknown == [], "run: python -m gcluster.schemas.codes --write"
    assert retired & {code for code, _ in _emitted()} == set()


def test_every_code_of_the_register_is_explained_or_retired() -> None:
    assert set(explanations()) == {c for c, entry in register().items() if not entry.retired}
    assert all(entry.was for entry in entries() if entry.retired)


def test_no_code_is_in_the_register_twice_and_its_order_is_that_of_the_codes() -> None:
    codes = [entry.code for entry in entries()]
    assert codes == sorted(set(codes), key=number_of)


def test_no_code_is_explained_by_two_parts_of_the_program() -> None:
    texts = [read(name, dict[str, Text]) for name in TEXTS]
    given = Counter(code for part in (CHECKS, FLEET_CODES, POLICY_CODES, *texts) for code in part)
    assert [code for code, times in given.items() if times > 1] == []


def test_every_explanation_is_a_sentence_for_a_table_and_a_text_to_read() -> None:
    for known in explanations().values():
        assert re.match(r".+[.)]$", known.summary), known
        assert "\n" not in known.summary
        assert "|" not in known.summary
        assert len(known.explanation.split()) > 4, known
        assert known.explanation != known.summary


def test_a_code_lies_in_the_family_of_its_hundred() -> None:
    assert [family.hundred for family in FAMILIES] == list(range(len(FAMILIES)))
    assert {family_of(code).hundred for code in CHECKS} <= {*range(1, 9), 12}
    assert all(code[2:-2] == str(family_of(code).hundred) for code in register())


@pytest.mark.parametrize("code", sorted(CHECKS))
def test_every_check_has_an_example_and_its_correction(code: str) -> None:
    example = example_of(code)
    assert example is not None
    assert example.passes is not None


def test_a_code_about_a_running_cluster_has_no_example() -> None:
    assert example_of("GC920") is None


def test_the_pages_of_codes_are_as_they_would_be_generated_now(root: Path) -> None:
    pages = {p.name: p.read_text(encoding="utf-8") for p in (root / "docs").glob("diagnostics*.md")}
    assert pages == render(), "run: python -m gcluster.schemas.codes --write"


def test_every_code_is_on_one_page() -> None:
    text = "".join(render().values())
    assert {code: text.count(f"\n| {code} | ") for code in explanations()} == dict.fromkeys(
        explanations(), 1
    )


def test_printing_the_pages_writes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert capsys.readouterr().out == "\n".join(render().values())


def test_writing_the_register_again_keeps_what_it_stores() -> None:
    text = REGISTER.read_text(encoding="utf-8")
    assert with_new([], since="9.9.9") == text
    added = with_new(["GC899", "GC001"], since="9.9.9")
    new = "- {code: GC899, since: 9.9.9}\n"
    before, _, after = added.partition(new)
    assert before + after == text
    assert before.splitlines()[-1] < new < after


def test_a_retired_code_is_stored_with_its_meaning(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = Entry(code="GC899", since="0.1.0", retired=True, was="A moon is missing.")
    known = [*entries(), gone]
    monkeypatch.setattr("gcluster.schemas.codes.registered.entries", lambda: known)

    written = with_new(["GC899"], since="9.9.9")
    page = render()["diagnostics.md"].split("## Not given any more")

    line = '- {code: GC899, since: 0.1.0, retired: true, was: "A moon is missing."}'
    assert line in written.splitlines()
    assert "| GC899 | A moon is missing. |" in page[1]
