"""Where a cluster does nothing, no alert fires: nodes that idle, are drained, or are off for it.

Every metric that any rule queries has a value of such a cluster (tests/cases/quiet.yaml), all rules
are evaluated on all of them at once, and promtool says which alerts there are.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from gcluster.inventory.alerts import (
    Condition,
    alert_rules,
    exported_metrics,
    node_checks,
    rule_file,
)

CASES = Path(__file__).parents[2] / "cases"
QUIET: dict[str, Any] = yaml.safe_load((CASES / "quiet.yaml").read_text(encoding="utf-8"))
HOURS = 25
STEPS = HOURS * 60
"""Samples, a minute apart: longer than any rule looks back, and than any waits."""
_LABELS = re.compile(r'(\w+)="([^"]*)"')


def series() -> list[dict[str, str]]:
    """Return every series of the cluster, as promtool has them."""
    found = []
    for metric, values in QUIET["series"].items():
        for labels, value in values.items():
            text = str(value)
            samples = f"{text}x{STEPS}" if re.fullmatch(r"-?[0-9.e+-]+", text) else text
            found.append({"series": f"{metric}{labels}", "values": samples})
    return found


def firing(at: str) -> dict[str, Any]:
    """Return the question which alerts there are, with the only answers that may be."""
    expected = QUIET["alerts"][at]
    return {
        "expr": 'count by (alertname, instance) (ALERTS{alertstate=~"firing|pending"})',
        "eval_time": at,
        "exp_samples": [
            {"labels": f'{{alertname="{name}", instance="{node}"}}', "value": 1}
            for name, nodes in expected.items()
            for node in nodes
        ],
    }


@pytest.mark.monitoring
def test_nodes_that_idle_or_are_drained_and_off_have_no_alert_that_is_sent(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    assert promtool is not None, "make test-alerts brings promtool"
    (tmp_path / "rules.yml").write_text(rule_file(get_args(Condition)), encoding="utf-8")
    document = {
        "rule_files": ["rules.yml"],
        "evaluation_interval": "5m",
        "tests": [
            {
                "interval": "1m",
                "input_series": series(),
                "promql_expr_test": [firing(at) for at in QUIET["alerts"]],
            }
        ],
    }
    (tmp_path / "test.yml").write_text(yaml.safe_dump(document), encoding="utf-8")

    done = subprocess.run(
        [promtool, "test", "rules", "test.yml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_every_metric_of_a_rule_has_a_value_on_such_nodes() -> None:
    named = {metric for metrics in exported_metrics().values() for metric in metrics}

    assert named - QUIET["series"].keys() - QUIET["absent"].keys() == set()


def test_only_alerts_about_nodes_out_of_service_may_be_there() -> None:
    expected = {name for at in QUIET["alerts"].values() for name in at}
    sent = {name for name in expected if alert_rules()[name].severity != "none"}

    assert sent == {"NodeDrainedLong", "KubeNodeDrainedLong"}
    nodes = {node for at in QUIET["alerts"].values() for each in at.values() for node in each}
    assert nodes == {"gpu002", "gpu003"}  # gpu001 idles


def test_faults_that_drain_a_node_are_those_of_its_own_check(root: Path) -> None:
    programs = (root / "roles/node_health/files/node_health").rglob("*.py")
    text = "\n".join(path.read_text(encoding="utf-8") for path in programs)
    page = (root / "docs/node-health.md").read_text(encoding="utf-8")
    codes = {code for codes in node_checks().values() for code in codes}

    assert node_checks().keys() <= alert_rules().keys()
    assert {code for code in codes if f'"{code}"' not in text} == set()
    assert {code for code in codes if f"`{code}`" not in page} == set()


def test_an_alert_with_a_step_to_drain_has_a_check_that_drains_or_is_left_to_people() -> None:
    by_hand = {
        name
        for name, rule in alert_rules().items()
        if any("drain" in step.lower() for step in rule.do) and name not in node_checks()
    }

    # What no check of a node sees: RAID, an Ethernet link that flaps, a job that can't end.
    assert by_hand <= set(QUIET["drained_by_people"])
