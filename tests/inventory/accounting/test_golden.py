"""A spec against a database that holds other things: the plan in words, and the commands."""

from __future__ import annotations

import pytest
from tests.golden_files import CASES, GoldenFiles, case_names, read_cases

from gcluster.inventory.accounting.desired import desired_accounting
from gcluster.inventory.accounting.reading import read_accounting, read_jobs
from gcluster.inventory.accounting.reconcile import reconcile
from gcluster.schemas.load import load_text

CASE_FILE = CASES / "accounting.yaml"


def planned(case: str) -> str:
    """Return the plan of a case as its golden file holds it."""
    loaded = load_text(read_cases(CASE_FILE)[case]["spec"])
    assert loaded.spec is not None, loaded.diagnostics
    spec = loaded.spec
    there = read_cases(CASE_FILE)[case]["actual"]
    actual = read_accounting(there["qos"], there["associations"], there["users"])
    plan = reconcile(desired_accounting(spec), actual, spec.name, read_jobs(there["jobs"]))
    lines = [f"{change.words}\n    {' '.join(change.command[3:])}" for change in plan.changes]
    return "\n".join([*lines, *(held.words for held in plan.held_back)]) + "\n"


@pytest.mark.parametrize("case", case_names(CASE_FILE))
def test_the_plan_is_the_one_written_down(case: str, golden: GoldenFiles) -> None:
    golden.check_case(CASE_FILE, case, "plan", planned(case))
