"""Nodes that come and go are scraped while Slurm or Kubernetes says that they are there."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from .programs import load_program

ROOT = Path(__file__).parents[2]
POOLS = [
    {"pool": "gpu", "site": "aws", "nodes": ["gpu001", "gpu002"], "ports": {"node": 1, "gpu": 2}},
    {"pool": "cpu", "site": "aws", "nodes": ["cpu001"], "ports": {"node": 1}},
]


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    found = load_program(ROOT / "roles/prometheus/files/libexec/elastic-targets.py", "elastic")
    monkeypatch.setattr(found, "FOLDER", tmp_path)
    monkeypatch.setattr(found, "reached", lambda _: True)
    (tmp_path / "targets").mkdir()
    (tmp_path / "elastic.json").write_text(json.dumps({"port": 9090, "pools": POOLS}))
    return found


def run(
    program: ModuleType, patch: pytest.MonkeyPatch, running: dict[str, str], *, up: int = 1
) -> dict[str, list[Any]]:
    """Run it on what Prometheus answers; return the targets of each file."""
    samples = [
        {"metric": {"__name__": "gcluster_slurm_up", "instance": "head"}, "value": [0, str(up)]},
        *(
            {
                "metric": {"__name__": "gcluster_slurm_node_address", "node": n, "address": a},
                "value": [0, "1"],
            }
            for n, a in running.items()
        ),
    ]
    return written(program, patch, samples)


def written(
    program: ModuleType, patch: pytest.MonkeyPatch, samples: list[dict[str, Any]]
) -> dict[str, list[Any]]:
    patch.setattr(program, "queried", lambda *_: samples)
    assert program.main() == 0
    return {
        path.name: [(one["targets"], one["labels"]["instance"]) for one in json.loads(text)]
        for path in sorted((program.FOLDER / "targets").iterdir())
        if (text := path.read_text())
    }


def test_who_runs_is_scraped_and_who_has_gone_is_not(
    program: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = run(
        program, monkeypatch, {"gpu002": "10.0.0.2", "cpu001": "fd00::1", "other": "1.1.1.1"}
    )
    assert both == {
        "elastic-gpus.json": [(["10.0.0.2:2"], "gpu002")],
        "elastic-kubelets.json": [],
        "elastic-nodes.json": [(["10.0.0.2:1"], "gpu002"), (["[fd00::1]:1"], "cpu001")],
    }

    assert not any(run(program, monkeypatch, {}).values())


def test_who_has_just_come_is_scraped_once_its_exporter_is_reached_and_stays_then(
    program: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "reached", lambda target: target.endswith(":2"))
    early = run(program, monkeypatch, {"gpu001": "10.0.0.1"})
    assert (early["elastic-nodes.json"], len(early["elastic-gpus.json"])) == ([], 1)
    monkeypatch.setattr(program, "reached", lambda _: True)
    assert run(program, monkeypatch, {"gpu001": "10.0.0.1"})["elastic-nodes.json"]
    monkeypatch.setattr(program, "reached", lambda _: False)
    assert run(program, monkeypatch, {"gpu001": "10.0.0.1"})["elastic-nodes.json"]


def test_an_exporter_is_reached_where_something_listens() -> None:
    program = load_program(ROOT / "roles/prometheus/files/libexec/elastic-targets.py", "reach")
    with socket.create_server(("127.0.0.1", 0)) as server:
        target = f"127.0.0.1:{server.getsockname()[1]}"
        assert program.reached(target)
    assert not program.reached(target)


def test_where_no_slurmctld_answers_the_list_stays(
    program: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = run(program, monkeypatch, {"gpu001": "10.0.0.1"})

    assert run(program, monkeypatch, {}, up=0) == before
    monkeypatch.setattr(program, "queried", lambda *_: [])
    assert program.main() == 0
    assert "10.0.0.1:1" in (program.FOLDER / "targets/elastic-nodes.json").read_text()


def test_who_is_a_node_of_kubernetes_is_scraped_and_without_an_answer_the_list_stays(
    program: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    pools = [{**POOLS[0], "ports": {"node": 1, "gpu": 2, "kubelet": 3}}]
    (program.FOLDER / "elastic.json").write_text(json.dumps({"port": 9090, "pools": pools}))

    def answered(nodes: dict[str, str]) -> dict[str, list[Any]]:
        samples = [
            {
                "metric": {"__name__": "kube_node_info", "node": node, "internal_ip": address},
                "value": [0, "1"],
            }
            for node, address in nodes.items()
        ]
        return written(program, monkeypatch, samples)

    there = {"head": "10.0.0.1", "gpu001": "10.0.0.2", "gpu002": ""}  # one has no address yet
    both = answered(there)
    assert both == {
        "elastic-gpus.json": [(["10.0.0.2:2"], "gpu001")],
        "elastic-kubelets.json": [(["10.0.0.2:3"], "gpu001")],
        "elastic-nodes.json": [(["10.0.0.2:1"], "gpu001")],
    }
    assert answered({}) == both
    assert not any(answered({"head": "10.0.0.1"}).values())
