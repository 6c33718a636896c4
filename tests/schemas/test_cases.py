"""Golden cases: a spec and what is said about it, as data under tests/cases/validate."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gcluster.schemas import checks
from gcluster.schemas.checks.registry import MODULES
from gcluster.schemas.codes import explanations
from gcluster.schemas.load import load

CASES = Path(__file__).parent.parent / "cases" / "validate"
_SPECS = sorted(CASES.glob("*/*/spec.yaml"))


def told(spec: Path) -> list[dict[str, Any]]:
    """Return what is said about a spec, in the form of a case's expected.json."""
    return [
        {
            "code": diagnostic.code,
            "path": list(diagnostic.path),
            "line": diagnostic.span.line if diagnostic.span else None,
            "column": diagnostic.span.column if diagnostic.span else None,
            "summary": diagnostic.summary,
        }
        for diagnostic in load(spec).diagnostics
    ]


@pytest.mark.parametrize(
    "spec", _SPECS, ids=lambda spec: f"{spec.parent.parent.name}/{spec.parent.name}"
)
def test_a_case_says_exactly_what_is_expected(spec: Path) -> None:
    assert told(spec) == msgspec.json.decode(spec.with_name("expected.json").read_bytes())


@pytest.mark.parametrize("code", sorted(checks.CHECKS))
def test_every_check_has_a_passing_and_a_failing_case(code: str) -> None:
    failing = load(CASES / code / "fails" / "spec.yaml").diagnostics

    assert {diagnostic.code for diagnostic in failing} == {code}
    assert load(CASES / code / "passes" / "spec.yaml").diagnostics == ()


def test_every_module_with_a_check_is_imported_and_every_check_is_a_function_of_its_own() -> None:
    folder = Path(checks.__path__[0])
    with_checks = {
        ".".join(module.relative_to(folder).with_suffix("").parts)
        for module in folder.rglob("*.py")
        if re.search(r"^@check\(", module.read_text(encoding="utf-8"), re.MULTILINE)
    }
    sources = {check.run.__module__.partition(".checks.")[2] for check in checks.CHECKS.values()}
    functions = [check.run for check in checks.CHECKS.values()]

    assert with_checks == sources
    assert with_checks == set(MODULES)
    assert len(set(functions)) == len(functions)


def test_a_code_can_be_registered_once() -> None:
    with pytest.raises(ValueError, match="GC101 is taken by unknown_site"):
        checks.registry.check("GC101", summary="Again.")(lambda _context: iter(()))


def test_every_code_that_appears_is_explained() -> None:
    said = {diagnostic.code for spec in _SPECS for diagnostic in load(spec).diagnostics} | set(
        checks.CHECKS
    )
    known = explanations()

    assert said <= set(known)
    for entry in known.values():
        assert entry.summary.endswith(".")
        assert len(entry.explanation) > len("Say.")


def test_the_folder_of_a_case_names_a_known_code() -> None:
    assert {path.name for path in CASES.iterdir()} <= set(explanations())
