"""Golden cases of policies: a spec, policies beside it, and what is said, under tests/cases."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from gcluster.schemas.load import load
from gcluster.schemas.policies import POLICY_CODES, find_policies, judge, load_policies

CASES = Path(__file__).parents[2] / "cases" / "policies"
_NAMES = sorted(path.name for path in CASES.iterdir())


def told(case: str) -> list[dict[str, object]]:
    """Return what is said about a case: the policies file first, then the spec."""
    spec = CASES / case / "spec.yaml"
    path = find_policies(spec)
    assert path is not None
    policies = load_policies(path)
    return [
        {
            "file": Path(found.file).name,
            "code": found.code,
            "severity": found.severity,
            "path": list(found.path),
            "line": found.span.line if found.span else None,
            "column": found.span.column if found.span else None,
            "summary": found.summary,
        }
        for found in [*policies.diagnostics, *judge(policies, load(spec))]
    ]


@pytest.mark.parametrize("case", _NAMES)
def test_a_case_says_exactly_what_is_expected(case: str) -> None:
    assert told(case) == msgspec.json.decode((CASES / case / "expected.json").read_bytes())


@pytest.mark.parametrize("case", _NAMES)
def test_a_case_passes_when_its_name_says_so_and_only_then(case: str) -> None:
    silent = case.endswith("-pass") or case == "spec-with-errors-is-not-judged"
    assert (told(case) == []) == silent


@pytest.mark.parametrize("case", _NAMES)
def test_the_spec_of_a_case_is_right_but_for_its_policies(case: str) -> None:
    broken = case == "spec-with-errors-is-not-judged"
    assert (load(CASES / case / "spec.yaml").spec is None) == broken


def test_every_code_of_policies_has_a_case_and_is_explained() -> None:
    said = {str(found["code"]) for case in _NAMES for found in told(case)}

    assert {code for code in said if code.startswith("GC8")} == set(POLICY_CODES)
    for summary, explanation in POLICY_CODES.values():
        assert summary.endswith(".")
        assert explanation.endswith(".")


def test_every_breach_names_the_policy_and_its_owner() -> None:
    for case in _NAMES:
        for found in told(case):
            if found["code"] in {"GC801", "GC802"}:
                assert str(found["summary"]).startswith('policy "')
                assert " of ops@example.org: " in str(found["summary"])
