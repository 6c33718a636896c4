"""What is written of nodes and pods has kube-state-metrics' names, and stays without an answer."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from .programs import load_program

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "roles/prometheus/files/libexec/kubernetes-metrics.py"
KNOWN: dict[str, list[str]] = yaml.safe_load(
    (ROOT / "tests/cases/metrics/kube-state-metrics-2.20.yaml").read_text(encoding="utf-8")
)
NODES: list[dict[str, Any]] = [
    {
        "metadata": {"name": "gpu001"},
        "spec": {"unschedulable": True},
        "status": {
            "conditions": [{"type": "Ready", "status": "Unknown"}],
            "addresses": [
                {"type": "Hostname", "address": "gpu001"},
                {"type": "InternalIP", "address": "10.0.0.2"},
            ],
        },
    },
    {"metadata": {"name": "gpu002"}, "spec": {}, "status": {}},
]
PODS: list[dict[str, Any]] = [
    {
        "metadata": {
            "name": "train-0",
            "namespace": "physics",
            "labels": {"gcluster.local/user": 'a"} 1\n', "app": "x"},
            "ownerReferences": [{"kind": "Job", "name": "train", "controller": True}],
        },
        "status": {
            "startTime": "2026-11-29T10:00:00Z",
            "containerStatuses": [{"name": "main", "restartCount": 3}],
        },
    },
    {"metadata": {"name": "lone", "namespace": "physics"}, "status": {"phase": "Pending"}},
]


@pytest.fixture(scope="module")
def program() -> ModuleType:
    return load_program(PROGRAM, "kubernetes_metrics")


@pytest.fixture
def page(program: ModuleType) -> str:
    text: str = program.page([*program.of_nodes(NODES), *program.of_pods(PODS)])
    return text


def test_all_names_and_labels_are_those_of_kube_state_metrics(page: str) -> None:
    seen: dict[str, set[str]] = {}
    for name, labels in re.findall(r"^([a-z_]+)\{(.*)\} ", page, re.MULTILINE):
        seen.setdefault(name, set()).update(re.findall(r'([a-z_]+)="', labels))

    assert seen.keys() == KNOWN.keys()
    unknown = {
        name: labels - set(KNOWN[name]) - {"label_gcluster_local_user"}
        for name, labels in seen.items()
    }
    assert not any(unknown.values()), unknown


def test_silent_and_cordoned_nodes_and_owners_and_users_of_pods_are_there(page: str) -> None:
    user = r'"a\"} 1\n"'
    ready = 'kube_node_status_condition{node="gpu001",condition="Ready",status='
    for line in (
        f'{ready}"true"}} 0',
        f'{ready}"unknown"}} 1',
        'kube_node_info{node="gpu001",internal_ip="10.0.0.2"} 1',
        'kube_node_info{node="gpu002",internal_ip=""} 1',
        'kube_node_spec_unschedulable{node="gpu001"} 1',
        'kube_node_spec_unschedulable{node="gpu002"} 0',
        'kube_pod_owner{namespace="physics",pod="train-0",owner_kind="Job",owner_name="train"} 1',
        'kube_pod_owner{namespace="physics",pod="lone",owner_kind="",owner_name=""} 1',
        'kube_pod_start_time{namespace="physics",pod="train-0"} 1795946400',
        f'kube_pod_labels{{namespace="physics",pod="train-0",label_gcluster_local_user={user}}} 1',
    ):
        assert line in page.splitlines()


def test_prometheus_reads_the_page(page: str) -> None:
    types = re.findall(r"^# TYPE (\S+) (\S+)$", page, re.MULTILINE)
    assert dict(types)["kube_pod_container_status_restarts_total"] == "counter"
    assert [name for name, _ in types] == list(dict.fromkeys(name for name, _ in types))
    assert all(" " in line for line in page.splitlines())


def test_the_last_answer_stays_where_the_api_server_gives_none(tmp_path: Path) -> None:
    """Its age is what an alert goes by."""
    kubectl = tmp_path / "kubectl"

    def run(answer: str) -> int:
        kubectl.write_text(f"#!/bin/sh\n{answer}\n")
        kubectl.chmod(0o755)
        environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "GCLUSTER_TEXTFILES": str(tmp_path)}
        command = [sys.executable, str(PROGRAM)]
        return subprocess.run(command, env=environment, capture_output=True, check=False).returncode

    for kind, items in (("nodes", NODES), ("pods", PODS)):
        (tmp_path / kind).write_text(json.dumps({"items": items}))
    assert run(f'case "$*" in *nodes) cat {tmp_path}/nodes;; *) cat {tmp_path}/pods;; esac') == 0
    written = (tmp_path / "gcluster-kubernetes.prom").read_text()
    assert "kube_pod_start_time" in written
    for silent in ("exit 1", "echo '{}'", "echo garbage"):
        assert run(silent) == 1
        assert (tmp_path / "gcluster-kubernetes.prom").read_text() == written
