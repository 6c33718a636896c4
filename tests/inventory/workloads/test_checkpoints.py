"""How often a workload saves: from what was measured, else the spec, else an assumption."""

from __future__ import annotations

import math

import pytest

from gcluster.inventory.workloads.checkpoints import WriteSpeed, interval
from gcluster.inventory.workloads.place import place_of
from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.load import load_text

SPEC = """
apiVersion: gcluster/v1
name: demo
sites: {hall: {provider: local}}
pools:
  head: {site: hall, role: controller}
  gpu: {site: hall, machine: sim.h100x8, count: 8}
storage:
  scratch: {type: nfs, mount: /scratch, server: head}
scheduler: {type: slurm}
workloads:
  llm:
    {framework: torchrun, nodes: 4, script: train.py, checkpoint: {to: scratch, size: 100 GB}}
"""
SPEED = WriteSpeed(nodes=4, alone=1e9, together=2e9, time="2026-11-29T00:00:00Z")


def test_the_measured_write_time_decides_before_an_assumption() -> None:
    loaded = load_text(SPEC)
    assert loaded.spec is not None
    assert [(each.code, each.severity.value) for each in loaded.diagnostics] == [
        ("GC1209", "warning")
    ]
    workload = loaded.spec.workloads["llm"]
    assert workload.checkpoint is not None
    place = place_of(loaded.spec, load_catalog(), workload)
    assumed = interval(loaded.spec, workload.checkpoint, place)
    assert (assumed.seconds, assumed.reason[0].split(":")[0]) == (1800, "assumed")
    found = interval(loaded.spec, workload.checkpoint, place, {"scratch": SPEED})
    # Young 1974 by hand: 100 GB at 2 GB/s; 32 GPUs at 419 interruptions of 16,384 in 54 days.
    failures_s = 54 * 86_400 * 16_384 / 419 / 32
    young = math.sqrt(2 * 50 * failures_s)
    assert found.seconds == pytest.approx(young, rel=0.02)
    assert "2 GB/s (measured on 4 nodes, 2026-11-29T00:00:00Z) take 50 s" in found.reason[0]


def test_more_nodes_than_were_measured_write_more_only_up_to_the_nominal_figure() -> None:
    assert SPEED.of(1, None) == 1e9
    assert SPEED.of(4, None) == 2e9
    assert SPEED.of(400, None) == 2e9
    assert SPEED.of(400, 50e9) == 50e9
    assert SPEED.of(8, 50e9) == 4e9
    assert SPEED.of(8, 1e9) == 2e9
