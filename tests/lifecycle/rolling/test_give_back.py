"""At its end `up` resumes what was not drained on purpose, and leaves what a person drained."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from tests.lifecycle.controller import HEAD, DownShell

from gcluster.inventory.hosts import ClusterInventory
from gcluster.lifecycle.operations.rolling import change
from gcluster.lifecycle.scheduler.base import MARK
from gcluster.schemas.load import load_text

from .scheduler import SchedulerDouble
from .test_leave import SPEC


def test_nodes_come_back_that_a_killed_run_or_a_killed_slurmctld_took_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = {
        "gpu001": f"{MARK}run 7",
        "gpu002": "Duplicate jobid",
        "gpu003": "link 3 is off",
        "gpu004": "Duplicate jobid",
    }
    scheduler = SchedulerDouble(dict.fromkeys(out, 0.0), drained=out)
    monkeypatch.setattr(change, "scheduler_of", lambda *_: scheduler)
    monkeypatch.setattr(change, "has_joined", lambda _: True)
    nodes = [msgspec.structs.replace(HEAD, name=name, pool="gpu", role="compute") for name in out]
    spec = load_text(SPEC, file="spec.yaml").spec
    assert spec is not None
    inventory = ClusterInventory(cluster="demo", hosts=(HEAD, *nodes))
    rolling = change.RollingChange(spec, inventory, DownShell(tmp_path), lambda _: None, why="test")
    rolling.give_back({}, unfit={"gpu004"})
    assert scheduler.reasons == {"gpu003": "link 3 is off", "gpu004": "Duplicate jobid"}
    assert rolling.out_of_service({}) == scheduler.reasons
