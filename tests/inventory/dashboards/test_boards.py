"""Dashboards use what is exported, each query has data, and Grafana's JSON is that of the table."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.inventory.dashboards import watched as live
from tests.roles.programs import load_program

from gcluster.inventory.compile import CompiledCluster
from gcluster.inventory.dashboards import (
    boards,
    boards_for,
    findings,
    placeholders,
)
from gcluster.inventory.dashboards.boards import DATA
from gcluster.inventory.dashboards.grafana import grafana_files
from gcluster.inventory.waste import recording_rules
from gcluster.schemas.load import load_text

sys.path.insert(0, str(Path(__file__).parents[1] / "compile"))
import golden

sys.path.pop(0)

_METRIC = re.compile(
    r"\b(?:up|ALERTS|(?:node|slurm|gcluster|ipmi)[_:][A-Za-z0-9_:]+|DCGM_\w+)\b(?!\()"
)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
QUERIES = {
    f"{board.name}: {panel.title}: {legend}": query
    for board in boards().values()
    for panel in board.panels
    for legend, query in panel.queries.items()
}
_SPEC = """\
apiVersion: gcluster/v1
name: NAME
sites: {here: {provider: local}}
pools:
  head: {site: here, role: controller}
  gpu: {site: here, machine: sim.h100x8, count: 2}
scheduler: {type: slurm}
"""


def compiled(name: str = "lab", monitoring: str = "{prometheus: true}") -> CompiledCluster:
    loaded = load_text(_SPEC.replace("NAME", name) + f"monitoring: {monitoring}\n")
    assert loaded.spec is not None, loaded.diagnostics
    found: CompiledCluster = golden.compiled(loaded.spec)
    return found


def names_in(text: str) -> set[str]:
    """Return the names of the samples of a page of metrics."""
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    return {re.split(r"[{ ]", line)[0] for line in lines}


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[live.Prometheus]:
    with live.watched(tmp_path_factory.mktemp("watched")) as running:
        yield running


def filled(query: str) -> str:
    """Return a query of what is watched: its pool, node and job in their places."""
    variables = {"pool": live.POOL, "node": live.NODE, "job": live.JOB}
    for placeholder in placeholders(query):
        query = query.replace(f"${placeholder}", variables[placeholder])
    return query


@pytest.mark.monitoring
def test_every_query_of_every_panel_has_data(prometheus: live.Prometheus) -> None:
    empty = []
    for name, query in QUERIES.items():
        if not prometheus.values(filled(query)):
            empty.append(name)

    assert empty == []


@pytest.mark.monitoring
def test_every_label_of_a_legend_is_one_of_its_series(prometheus: live.Prometheus) -> None:
    missing = []
    for name, query in QUERIES.items():
        labels = set(re.findall(r"\{\{(\w+)\}\}", name))
        series = [each["metric"] for each in prometheus.values(filled(query))]
        if not any(labels <= each.keys() for each in series):
            missing.append(name)

    # Where no job waits there is no reason: `or vector(0)` has no label.
    assert missing == []


def test_every_metric_has_an_exporter_behind_it(root: Path) -> None:
    known = {"up", "ALERTS"} | {rule.record for rule in recording_rules()}
    known |= set((live.METRICS / "node-1.9.0.txt").read_text(encoding="utf-8").splitlines())
    known |= names_in((live.METRICS / "hardware-1.9.0.txt").read_text(encoding="utf-8"))
    known |= names_in(live.slurm_pages())
    known |= names_in(live.power_page()) | names_in(live.lustre_page())
    known |= {"gcluster_slurm_node_down", "gcluster_slurm_node_unclaimed"}  # nodes in such a state
    counters = (root / "roles/dcgm_exporter/files/counters.csv").read_text(encoding="utf-8")
    known |= {line.partition(",")[0] for line in counters.splitlines()}
    queries = QUERIES | {f.name: f.query for f in (*findings().slow, *findings().next)}
    used = {name: set(_METRIC.findall(_STRING.sub('""', q))) for name, q in queries.items()}

    assert {name: metrics for name, metrics in used.items() if not metrics} == {}
    assert {name: unknown for name, metrics in used.items() if (unknown := metrics - known)} == {}


def test_grafana_s_json_is_that_of_the_table(root: Path) -> None:
    made = load_program(root / ".ci/dashboards.py", "ci_dashboards")
    written = {path.stem: path.read_text(encoding="utf-8") for path in DATA.glob("grafana/*.json")}

    assert written == {name: made.dashboard_json(board) for name, board in boards().items()}, (
        "python .ci/dashboards.py"
    )


def test_queries_name_the_variable_of_their_board_and_no_other() -> None:
    for board in boards().values():
        named = {
            p for panel in board.panels for q in panel.queries.values() for p in placeholders(q)
        }

        assert named == ({board.variable} if board.variable else set()), board.name


def test_a_cluster_has_the_panels_that_its_exporters_can_fill() -> None:
    plain = {p.title for board in boards_for(("slurm",)) for p in board.panels}

    assert "Nodes" in plain
    assert "Dollars an hour that no job holds" in plain
    assert plain.isdisjoint({"Dollars an hour", "InfiniBand in, by node"})
    assert "job" not in {board.name for board in boards_for(("slurm",))}


def test_two_clusters_of_one_grafana_have_nothing_in_common() -> None:
    first, second = grafana_files(compiled("lab")), grafana_files(compiled("hall"))
    uids = [
        {json.loads(text)["uid"] for name, text in files.items() if name.endswith(".json")}
        for files in (first, second)
    ]

    assert first.keys().isdisjoint(second.keys())
    assert uids[0].isdisjoint(uids[1])
    assert b"gcluster-lab" not in b"".join(second.values())
    assert not any(b"gcluster-source" in text for text in first.values())


def test_the_provisioned_source_is_the_cluster_s_and_has_no_password_in_it() -> None:
    files = grafana_files(compiled("lab"))
    [source] = yaml.safe_load(files["provisioning/datasources/gcluster-lab.yaml"])["datasources"]
    [provider] = yaml.safe_load(files["provisioning/dashboards/gcluster-lab.yaml"])["providers"]
    used = set(_sources(json.loads(files["gcluster-lab/cluster.json"])))

    assert used == {source["uid"]}
    assert source["secureJsonData"] == {
        "basicAuthPassword": "$__file{/etc/grafana/gcluster-lab/password}",
        "tlsCACert": "$__file{/etc/grafana/gcluster-lab/ca.pem}",
    }
    assert provider["options"]["path"] == "/etc/grafana/gcluster-lab"


def _sources(value: Any) -> Iterator[str]:
    """Yield the uid of every data source that a dashboard names."""
    if isinstance(value, dict):
        if isinstance(value.get("datasource"), dict):
            yield value["datasource"]["uid"]
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _sources(each)


def test_a_cluster_without_metrics_has_no_dashboards() -> None:
    assert grafana_files(compiled(monitoring="{}")) == {}
