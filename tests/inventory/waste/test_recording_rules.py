"""The cost of what is wasted: promtool evaluates each rule, values are calculated by hand."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from gcluster.inventory.alerts import rule_file
from gcluster.inventory.waste import recording_rules, waste_group

CASES: dict[str, dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parents[2] / "cases/waste.yaml").read_text(encoding="utf-8")
)
PRICES = {"gpu": 20.0, "big": 80.0}
EVERYTHING = ("slurm", "gpus", "nvidia", "amd", "kubernetes")
METRIC = re.compile(r"gcluster:[a-z_]+(?::[a-z]+)?")


def promtool_test(case: dict[str, Any], folder: Path) -> Path:
    """Write a case as promtool reads it."""
    rules = rule_file((), recorded=waste_group(PRICES, EVERYTHING))
    (folder / "rules.yml").write_text(rules, encoding="utf-8")
    expected = [
        {
            "expr": requested,
            "eval_time": case["at"],
            "exp_samples": [
                {"labels": labels_of(requested, sample), "value": sample["value"]}
                for sample in samples
            ],
        }
        for requested, samples in case["expect"].items()
    ]
    document = {
        "rule_files": ["rules.yml"],
        "evaluation_interval": "15s",
        "tests": [
            {
                "interval": "15s",
                "input_series": [{"series": s, "values": v} for s, v in case["series"].items()],
                "promql_expr_test": expected,
            }
        ],
    }
    path = folder / "test.yml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path


def labels_of(requested: str, sample: dict[str, Any]) -> str:
    """Return the labels of a sample as promtool writes them; sums have no name."""
    name = "" if requested.startswith("sum(") else requested.partition("{")[0]
    pairs = (f"{key}={json.dumps(value)}" for key, value in sample.items() if key != "value")
    return f"{name}{{{', '.join(pairs)}}}"


@pytest.mark.monitoring
@pytest.mark.parametrize("name", CASES)
def test_what_is_wasted_equals_the_calculation_by_hand(name: str, tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    assert promtool is not None, "make test-alerts brings promtool"
    test = promtool_test(CASES[name], tmp_path)

    done = subprocess.run(
        [promtool, "test", "rules", str(test)], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_each_rule_is_held_by_a_case_itself_or_by_one_made_of_it() -> None:
    requested = {
        metric
        for case in CASES.values()
        for key in case["expect"]
        for metric in METRIC.findall(key)
    }
    rules = {rule.record: rule.expression for rule in recording_rules()}
    waiting = list(requested & rules.keys())
    held: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in held:
            held.add(name)
            waiting += [each for each in METRIC.findall(rules[name]) if each in rules]

    assert rules.keys() - held == set()
    assert requested <= rules.keys()


def test_a_rule_uses_only_what_is_recorded_before_it() -> None:
    recorded = {"gcluster:pool_node_usd_per_hour"}
    for rule in recording_rules():
        recorded.add(rule.record)
        assert set(METRIC.findall(rule.expression)) <= recorded, rule.record


def test_a_cluster_without_gpus_of_nvidia_s_has_rules_of_its_nodes_alone() -> None:
    names = {rule["record"] for rule in waste_group(PRICES, ("slurm",))["rules"]}

    assert "gcluster:node_unused_usd_per_hour" in names
    assert "gcluster:user_gpus:unmeasured" in names
    assert "gcluster:job_wasted_usd_per_hour" not in names


def test_a_cluster_under_slurm_has_no_rules_of_pods() -> None:
    names = {rule["record"] for rule in waste_group(PRICES, ("slurm", "gpus", "nvidia"))["rules"]}

    assert "gcluster:job_wasted_usd_per_hour" in names
    assert not [name for name in names if "pod" in name or "account" in name]
