"""Links to dashboards lead to those that `gcluster compile` writes for a Grafana."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml

from gcluster.inventory.alerts import rule_file
from gcluster.inventory.dashboards import boards, dashboard_link
from gcluster.inventory.dashboards.grafana import grafana_files

from .test_boards import compiled

GRAFANA = "https://grafana.example.edu/gpu/"


def test_a_link_names_the_uid_and_the_variable_of_its_dashboard() -> None:
    files = grafana_files(compiled("lab"))
    written = {
        document["uid"]: {each["name"] for each in document["templating"].get("list", ())}
        for path, text in files.items()
        if path.endswith(".json")
        for document in [json.loads(text)]
    }

    for name, board in boards().items():
        link = urlsplit(dashboard_link(GRAFANA, "lab", name, "x&y" if board.variable else ""))
        uid = link.path.removeprefix("/gpu/d/")
        if uid in written:
            assert {f"var-{each}" for each in written[uid]} == parse_qs(link.query).keys()
        assert parse_qs(link.query) == ({f"var-{name}": ["x&y"]} if board.variable else {})
    assert {"lab-job", "lab-node", "lab-cluster", "lab-money"} <= written.keys()


@pytest.mark.monitoring
def test_an_alert_links_to_the_dashboard_of_its_node_or_of_the_cluster(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    assert promtool is not None, "make test-alerts brings promtool"
    dashboards = "https://grafana.example.edu/d/lab"
    rules = rule_file(("figures",), dashboards=dashboards)
    (tmp_path / "rules.yml").write_text(rules, encoding="utf-8")

    def alert(name: str, labels: dict[str, str], summary: str, link: str) -> dict[str, object]:
        annotations = {
            "summary": summary,
            "runbook": f"gcluster explain {name}",
            "dashboard": f"{dashboards}-{link}",
        }
        return {
            "eval_time": "2m",
            "alertname": name,
            "exp_alerts": [{"exp_labels": labels, "exp_annotations": annotations}],
        }

    test = {
        "rule_files": ["rules.yml"],
        "tests": [
            {
                "interval": "15s",
                "input_series": [
                    {"series": "gcluster_allreduce_passed", "values": "0x20"},
                    {"series": 'node_md_disks{state="failed",instance="n1"}', "values": "1x20"},
                ],
                "alert_rule_test": [
                    alert(
                        "AllReduceFailed",
                        {"severity": "warning"},
                        "the cluster's last AllReduce failed",
                        "cluster",
                    ),
                    alert(
                        "RaidDegraded",
                        {"severity": "warning", "instance": "n1", "state": "failed"},
                        "n1: 1 disks of  have failed",
                        "node?var-node=n1",
                    ),
                ],
            }
        ],
    }
    path = tmp_path / "test.yml"
    path.write_text(yaml.safe_dump(test), encoding="utf-8")

    done = subprocess.run(
        [promtool, "test", "rules", str(path)], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr
