"""`gcluster size train --from-cluster`: a cluster's certificate instead of the catalog."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from gcluster.cli.size import measured as module
from gcluster.cli.size.measured import of_certificate
from gcluster.lifecycle.cluster.outcome import LifecycleError

Run = Callable[..., Any]
POOLS: dict[str, str | None] = {"gpu": "p5.48xlarge", "old": "dgx-a100", "head": None}


def _certificate(**changes: Any) -> dict[str, Any]:
    """Return what the gate writes, cut down to what is read (lifecycle/smoke/certificate.py)."""

    def run(nodes: str, busbw: float) -> dict[str, Any]:
        rows = [(1024, 0.1), (8 << 30, busbw)]
        curve = [{"size_bytes": size, "busbw_gb_per_s": each} for size, each in rows]
        return {"nodes": nodes, "curve": curve}

    return {
        "cluster": "lab",
        "time": "2026-11-20T10:00:00Z",
        "gpus": "as the machines have them",
        "verdict": {"verdict": "pass"},
        "runs": [run("gpu[001-004]", 362.5), run("gpu001", 471.0), run("old-001", 230.0)],
        **changes,
    }


def test_the_largest_run_of_the_machine_counts() -> None:
    found = of_certificate(_certificate(), POOLS, ["p5.48xlarge", "dgx-a100"])
    assert (found.machine, found.between, found.inside) == ("p5.48xlarge", 362.5e9, 471e9)
    old = of_certificate(_certificate(), POOLS, ["dgx-a100"])
    assert (old.between, old.inside) == (None, 230e9)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"gpus": "simulated"}, "simulated"),
        ({"verdict": {"verdict": "fail"}}, "didn't pass"),
        ({"runs": []}, "has no p5.48xlarge"),
    ],
)
def test_a_certificate_without_the_machine_is_refused(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(LifecycleError, match=why):
        of_certificate(_certificate(**changes), POOLS, ["p5.48xlarge"])


def test_the_answer_names_the_cluster_and_what_was_measured(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    pools = {name: SimpleNamespace(machine=machine) for name, machine in POOLS.items()}
    cluster = SimpleNamespace(spec=SimpleNamespace(pools=pools))
    monkeypatch.setattr(module, "open_cluster", lambda *_, **__: cluster)
    monkeypatch.setattr(module, "last_certificate", lambda _: _certificate())
    words = ("size", "train", "--model", "llama-3-70b", "--machine", "p5.48xlarge", "--nodes", "16")
    done = run(*words, "--from-cluster", "lab")
    assert done.exit_code == 0, done.stderr
    text = " ".join(done.stdout.split())
    assert "the gate of lab measured on 2026-11-20T10:00:00Z: 362.5 GB/s between nodes" in text
    text = " ".join(run(*words, "--from-cluster", "lab", "--explain").stdout.split())
    assert "certificate of lab" in text
    assert "AllReduce busbw" in text
    found = json.loads(run(*words, "--from-cluster", "lab", "--format", "json").stdout)
    assert found["workload"]["measured"]["between"] == 362.5e9
    monkeypatch.setattr(module, "last_certificate", lambda _: None)
    done = run(*words, "--from-cluster", "lab")
    assert done.exit_code == 1
    assert "lab has no certificate yet" in done.stderr
