"""Golden cases of policies: a spec, policies, and what is found, in tests/cases/policies.yaml."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.golden_files import (
    CASES,
    GoldenFiles,
    case_names,
    case_text,
    finding,
    read_cases,
    unpack,
)

from gcluster.schemas.load import load
from gcluster.schemas.policies import POLICY_CODES, find_policies, judge, load_policies

CASE_FILE = CASES / "policies.yaml"
_NAMES = case_names(CASE_FILE)


@contextmanager
def spec_of(case: str) -> Iterator[Path]:
    """Give the spec of a case in a folder with its policies and its catalog."""
    texts = {
        f"{key}.yaml": case_text(CASE_FILE, case, key)
        for key in read_cases(CASE_FILE)[case]
        if key != "finds"
    }
    with tempfile.TemporaryDirectory() as folder:
        yield unpack(texts, Path(folder)) / "spec.yaml"


def findings(case: str) -> list[dict[str, Any]]:
    """Return what is found in a case: in the policies file first, then in the spec."""
    with spec_of(case) as spec:
        path = find_policies(spec)
        assert path is not None
        policies = load_policies(path)
        found = [*policies.diagnostics, *judge(policies, load(spec))]
        return [finding(each, spec.parent) for each in found]


@pytest.mark.parametrize("case", _NAMES)
def test_a_case_finds_exactly_what_is_expected(case: str, golden: GoldenFiles) -> None:
    golden.check_case(CASE_FILE, case, "finds", findings(case))


@pytest.mark.parametrize("case", _NAMES)
def test_a_case_passes_when_its_name_matches_and_only_then(case: str) -> None:
    silent = case.endswith("-pass") or case == "spec-with-errors-is-not-judged"
    assert (findings(case) == []) == silent


@pytest.mark.parametrize("case", _NAMES)
def test_the_spec_of_a_case_is_right_but_for_its_policies(case: str) -> None:
    broken = case == "spec-with-errors-is-not-judged"
    with spec_of(case) as spec:
        assert (load(spec).spec is None) == broken


def test_every_code_of_policies_has_a_case_and_is_explained() -> None:
    message = {str(found["code"]) for case in _NAMES for found in findings(case)}

    assert {code for code in message if code.startswith("GC8")} == set(POLICY_CODES)
    for summary, explanation in POLICY_CODES.values():
        assert summary.endswith(".")
        assert explanation.endswith(".")


def test_every_breach_names_the_policy_and_its_owner() -> None:
    for case in _NAMES:
        for found in findings(case):
            if found["code"] in {"GC801", "GC802"}:
                assert str(found["summary"]).startswith('policy "')
                assert " of ops@example.org: " in str(found["summary"])
