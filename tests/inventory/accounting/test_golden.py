"""A spec against a database that holds other things: the plan in words, and the commands.

    PYTHONPATH=src python tests/inventory/accounting/test_golden.py

writes what is said now; then read the diff.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from gcluster.inventory.accounting.desired import desired_accounting
from gcluster.inventory.accounting.reading import read_accounting, read_jobs
from gcluster.inventory.accounting.reconcile import reconcile
from gcluster.schemas.load import load

CASES = Path(__file__).parents[2] / "cases/accounting"
NAMES = sorted(path.parent.name for path in CASES.glob("*/spec.yaml"))


def planned(case: str) -> str:
    """Return the plan of a case as its golden file holds it."""
    loaded = load(CASES / case / "spec.yaml")
    assert loaded.spec is not None, loaded.diagnostics
    spec = loaded.spec
    there = yaml.safe_load((CASES / case / "actual.yaml").read_text())
    actual = read_accounting(there["qos"], there["associations"], there["users"])
    plan = reconcile(desired_accounting(spec), actual, spec.name, read_jobs(there["jobs"]))
    lines = [f"{change.words}\n    {' '.join(change.command[3:])}" for change in plan.changes]
    return "\n".join([*lines, *(held.words for held in plan.held_back)]) + "\n"


@pytest.mark.parametrize("case", NAMES)
def test_the_plan_is_the_one_written_down(case: str) -> None:
    assert planned(case) == (CASES / case / "plan.txt").read_text()


if __name__ == "__main__":
    for name in NAMES:
        (CASES / name / "plan.txt").write_text(planned(name))
