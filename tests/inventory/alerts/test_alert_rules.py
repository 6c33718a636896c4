"""Each alert queries only what is exported, fires where it should, and ends; promtool evaluates."""

from __future__ import annotations

import json
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
    alerts_page,
    exported_metrics,
    inhibitions,
    metrics_of,
    rule_file,
    rule_groups,
)
from gcluster.inventory.compile.kubernetes_objects.objects import SYSTEM_NAMESPACE
from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.spec.units import Duration

CASES = Path(__file__).parents[2] / "cases"
KNOWN: dict[str, dict[str, Any]] = yaml.safe_load(
    (CASES / "alerts.yaml").read_text(encoding="utf-8")
)
EVERYTHING = get_args(Condition)
LONG_S = 3600


def rules_of(text: str) -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(text)["groups"] for rule in group["rules"]]


def expected_of(name: str) -> dict[str, Any]:
    case = KNOWN[name]
    return {
        "exp_labels": {"severity": alert_rules()[name].severity, **case["labels"]},
        "exp_annotations": {"summary": case["summary"], "runbook": f"gcluster explain {name}"},
    }


def promtool_tests(name: str, folder: Path) -> Path:
    """Write the cases of an alert as promtool reads them."""
    case, expected = KNOWN[name], expected_of(name)
    tests = [
        {
            "name": "fires and ends",
            "series": case["fires"],
            "alerts": {case["at"]: [expected], case["ends"]: []},
        },
        *(
            {"name": why, "series": series, "alerts": {case["at"]: [expected]}}
            for why, series in case.get("fires_too", {}).items()
        ),
        *(
            {"name": why, "series": series, "alerts": {case["at"]: []}}
            for why, series in case["quiet"].items()
        ),
    ]
    return written(folder, [(name, test) for test in tests])


def scraped(series: dict[str, str], instance: str | None) -> dict[str, str]:
    """Return the series with that of the node's exporter, where they don't say how it does."""
    says = any(key.startswith("up{") and f'"{instance}"' in key for key in series)
    return series if instance is None or says else {**series, up_of(instance): "1x6000"}


def up_of(instance: str) -> str:
    return f'up{{job="node",instance="{instance}"}}'


def written(folder: Path, tests: list[tuple[str, dict[str, Any]]]) -> Path:
    """Write tests of alerts as promtool reads them, next to the rules."""
    (folder / "rules.yml").write_text(rule_file(EVERYTHING), encoding="utf-8")
    document = {
        "rule_files": ["rules.yml"],
        "evaluation_interval": "15s",
        "tests": [
            {
                "name": test["name"],
                "interval": "15s",
                "input_series": [
                    {"series": s, "values": v}
                    for s, v in scraped(
                        test["series"], KNOWN[name]["labels"].get("instance")
                    ).items()
                ],
                "alert_rule_test": [
                    {"eval_time": at, "alertname": name, "exp_alerts": alerts}
                    for at, alerts in test["alerts"].items()
                ],
            }
            for name, test in tests
        ],
    }
    path = folder / "test.yml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path


def until(values: str, number: int) -> str:
    """Return the first samples of a series as promtool has them, and that it has ended then."""
    samples: list[str] = []
    for word in values.split():
        found = re.fullmatch(r"(stale|_|[-0-9.e]+?)([+-][0-9.]+)?(?:x([0-9]+))?", word)
        assert found is not None, word
        first, step, times = found[1], float(found[2] or 0), found[3]
        if first in {"_", "stale"}:
            samples += [first] * int(times or 1)
        else:
            samples += [f"{float(first) + i * step:.15g}" for i in range(int(times or 0) + 1)]
    return " ".join([*samples[:number], "stale"])


@pytest.mark.monitoring
def test_a_node_that_is_removed_leaves_no_alert_behind(tmp_path: Path) -> None:
    """Neither one that fired, nor one that fires then; other nodes stay."""
    others = {
        'gcluster_slurm_node_drained{node="other"}': "0x7000",
        'kube_node_spec_unschedulable{node="other"}': "0x7000",
    }
    tests = []
    for name, case in KNOWN.items():
        if "instance" not in case["labels"]:
            continue
        seconds = round(Duration.parse(case["at"]).value)
        if seconds > LONG_S:  # a day of samples; what they say is of one moment
            continue
        series = scraped(case["fires"], case["labels"]["instance"])
        gone = {key: until(values, seconds // 15 + 1) for key, values in series.items()}
        alerts = {case["at"]: [expected_of(name)], f"{seconds + 30}s": [], f"{seconds + 300}s": []}
        tests.append((name, {"name": name, "series": gone | others, "alerts": alerts}))
    assert len(tests) > 30
    promtool = shutil.which("promtool")
    assert promtool is not None, "make test-alerts brings promtool"

    done = subprocess.run(
        [promtool, "test", "rules", str(written(tmp_path, tests))],
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.monitoring
@pytest.mark.parametrize("name", sorted(alert_rules()))
def test_an_alert_fires_and_ends_and_not_where_all_is_well(name: str, tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    assert promtool is not None, "make test-alerts brings promtool"
    test = promtool_tests(name, tmp_path)

    done = subprocess.run(
        [promtool, "test", "rules", str(test)], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_has_cases_and_some_in_which_it_is_quiet() -> None:
    assert KNOWN.keys() == alert_rules().keys()
    assert [name for name, case in KNOWN.items() if not case["quiet"]] == []


def test_rules_use_what_is_exported_and_nothing_is_listed_in_vain() -> None:
    listed = {metric for metrics in exported_metrics().values() for metric in metrics}
    requested = {name: metrics_of(rule.expression) for name, rule in alert_rules().items()}

    assert {name: unknown for name, used in requested.items() if (unknown := used - listed)} == {}
    assert listed == set().union(*requested.values())


def test_words_in_strings_and_functions_are_no_metrics() -> None:
    assert metrics_of('node_a{x="node_b"} and rate(slurm_c[5m])') == {"node_a", "slurm_c"}


@pytest.mark.parametrize("version", ["1.5.0", "1.9.0"])
def test_node_exporter_exported_the_expected_metrics(version: str) -> None:
    recorded = (CASES / f"metrics/node-{version}.txt").read_text(encoding="utf-8").splitlines()
    # 1.5.0 was recorded where neither systemd nor a file of figures was.
    absent = {"node_systemd_unit_state", "node_textfile_mtime_seconds"}

    assert set(exported_metrics()["node"]) - set(recorded) <= (
        absent if version == "1.5.0" else set()
    )


def test_the_exporter_of_gpus_switches_on_what_rules_use(root: Path) -> None:
    text = (root / "roles/dcgm_exporter/files/counters.csv").read_text(encoding="utf-8")
    rows = [line.split(",") for line in text.splitlines() if not line.startswith("#")]

    assert set(exported_metrics()["dcgm"]) <= {row[0] for row in rows if row[1].strip() != "label"}
    assert {row[1].strip() for row in rows} <= {"gauge", "counter", "label"}


def test_crashes_of_add_ons_are_in_the_namespaces_that_the_catalog_has() -> None:
    expression = alert_rules()["KubeAddonCrashing"].expression
    [listed] = re.findall(r'namespace=~"\((.*)\)"', expression)
    named = {addon.namespace for addon in load_catalog().addons.values()}

    assert set(listed.split("|")) == named | {SYSTEM_NAMESPACE, "calico-system"}


def test_a_node_s_alerts_are_quiet_while_it_is_out_of_service_under_either_scheduler() -> None:
    for scheduler, cause in (("slurm", "NodeOutOfService"), ("kubernetes", "KubeNodeOutOfService")):
        listed = inhibitions(scheduler)
        named = set(re.findall(r"[A-Z][A-Za-z]+", json.dumps(listed)))

        assert listed[0]["source_matchers"] == [f'alertname=~"{cause}"']
        assert named <= alert_rules().keys(), scheduler


def test_xids_are_those_of_which_the_node_s_own_check_drains(root: Path) -> None:
    file = root / "roles/node_health/files/node_health/gpu/xids.json"
    drains = json.loads(file.read_text(encoding="utf-8"))["drains"]

    assert f'"({"|".join(drains)})"' in alert_rules()["GpuXid"].expression


def test_rules_that_need_what_a_cluster_lacks_are_left_out() -> None:
    names = {rule["alert"] for rule in rules_of(rule_file(()))}

    assert "DiskFull" in names
    assert names.isdisjoint({"NodeDown", "InfinibandDown", "ClockSkew", "SlurmDatabaseDown"})
    assert names.isdisjoint({"KubeNodeDown", "HostDown", "AllReduceOld"})
    assert len(rules_of(rule_file(EVERYTHING))) == len(alert_rules())


def test_what_must_be_known_in_90_s_is_evaluated_each_5_s_and_what_reads_hours_of_gpus_is_not() -> (
    None
):
    groups = {
        group["name"]: (group["interval"], {rule["alert"] for rule in group["rules"]})
        for group in rule_groups(EVERYTHING)
    }

    assert {name: every for name, (every, _) in groups.items()} == {
        "gcluster": "5s",
        "gcluster-minute": "60s",
    }
    assert groups["gcluster"][1] >= {"NodeDown", "SlurmNodeDown", "DiskFull", "GpuXid", "LinkDown"}
    assert groups["gcluster-minute"][1] >= {"GpuRowsRemapped", "GpuNvlinkErrors", "GpusWasted"}
    of_gpus = re.compile(r"(DCGM|gpu)_\w+\[\d+[hd]\]")
    assert not [name for name in groups["gcluster"][1] if of_gpus.search(expression_of(name))]


def test_no_alert_reads_another_one_so_groups_can_be_evaluated_side_by_side() -> None:
    assert not [name for name in alert_rules() if "ALERTS" in expression_of(name)]


def expression_of(name: str) -> str:
    return alert_rules()[name].expression


def test_every_alert_names_its_page() -> None:
    for rule in rules_of(rule_file(EVERYTHING)):
        assert rule["annotations"]["runbook"] == f"gcluster explain {rule['alert']}"


def test_the_page_of_alerts_is_that_of_the_table(root: Path) -> None:
    written = (root / "docs/alerts.md").read_text(encoding="utf-8")

    assert written == alerts_page(), "python -m gcluster.inventory.alerts > docs/alerts.md"
