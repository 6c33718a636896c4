"""Each finding holds where it should, and not where all is well; promtool judges."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from gcluster.inventory.dashboards import Finding, findings, placeholders

CASES: dict[str, dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parents[2] / "cases/findings.yaml").read_text(encoding="utf-8")
)
TABLE = {finding.name: finding for finding in (*findings().slow, *findings().next)}


def group(finding: Finding, case: dict[str, Any], *, holds: bool) -> dict[str, Any]:
    """Return a test as promtool reads it."""
    expected = [sample.rpartition(" ") for sample in case["expect"] if holds]
    return {
        "interval": "1m",
        "input_series": [
            {"series": series, "values": values}
            for series, values in case["holds" if holds else "quiet"].items()
        ],
        "promql_expr_test": [
            {
                "expr": finding.query.replace("$job", "7"),
                "eval_time": case.get("at", "10m"),
                "exp_samples": [
                    {"labels": labels, "value": float(value)} for labels, _, value in expected
                ],
            }
        ],
    }


@pytest.mark.monitoring
@pytest.mark.parametrize("holds", [True, False], ids=["holds", "quiet"])
def test_a_finding_holds_where_it_should_and_nowhere_else(holds: bool, tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    assert promtool is not None, "make test-alerts brings promtool"
    groups = [group(TABLE[name], case, holds=holds) for name, case in CASES.items()]
    path = tmp_path / "test.yml"
    path.write_text(yaml.safe_dump({"evaluation_interval": "1m", "tests": groups}))

    done = subprocess.run(
        [promtool, "test", "rules", str(path)], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_every_finding_has_a_case() -> None:
    assert CASES.keys() == TABLE.keys()


def test_findings_of_a_job_name_it_and_those_of_the_cluster_name_nothing() -> None:
    assert {name for f in findings().slow for name in placeholders(f.query)} == {"job"}
    assert all("$job" in f.query for f in findings().slow)
    assert not any(placeholders(f.query) for f in findings().next)
