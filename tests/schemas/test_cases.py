"""Golden cases: specs and what is found in them, as data under tests/cases/validate."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.golden_files import GoldenFiles

from gcluster.schemas import checks
from gcluster.schemas.checks.registry import MODULES
from gcluster.schemas.codes import explanations

from .validate_cases import CODES, Case, all_cases


@pytest.mark.parametrize("case", all_cases(), ids=str)
def test_a_case_finds_exactly_what_is_expected(case: Case, golden: GoldenFiles) -> None:
    golden.check_case(case.path, case.name, "finds", case.findings())


@pytest.mark.parametrize("code", sorted(checks.CHECKS))
def test_every_check_has_a_passing_and_a_failing_case(code: str) -> None:
    failing = Case(code, "fails").load().diagnostics

    assert {diagnostic.code for diagnostic in failing} == {code}
    assert Case(code, "passes").load().diagnostics == ()


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
    found = {entry["code"] for case in all_cases() for entry in case.expected}
    known = explanations()

    assert found | set(checks.CHECKS) <= set(known)
    for entry in known.values():
        assert entry.summary.endswith(".")
        assert len(entry.explanation) > len("Say.")


def test_the_file_of_a_case_is_named_after_a_known_code() -> None:
    assert set(CODES) <= set(explanations())
