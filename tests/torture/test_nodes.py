"""Faults are injected into a real local cluster one by one; each time a second `up` heals it.

Ten faults of the table by a seed (GCLUSTER_SEED), or GCLUSTER_FAULTS of them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from ..e2e.conftest import LiveCluster
from .cluster import TortureCluster
from .invariants import INVARIANTS, Step
from .node_faults import NODE_FAULTS, NodeFault
from .process import Ended

pytestmark = [pytest.mark.local, pytest.mark.torture]

SEED = int(os.environ.get("GCLUSTER_SEED", "0"))
MANY = int(os.environ.get("GCLUSTER_FAULTS", "10"))
_OF_WORDS = {"no traceback", "a known end", "every message names what to do next"}


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveCluster]:
    """A cluster of three nodes that is taken down whatever happens."""
    cluster = LiveCluster(tmp_path_factory.mktemp("torture"))
    cluster.write_spec(nodes=2)
    cluster.gcluster("up", str(cluster.spec), "--yes")
    yield cluster
    cluster.gcluster("down", str(cluster.spec), "--yes", expect=None)


def _held(live: LiveCluster, folder: Path, *words: str) -> Ended:
    """Run a command, held to the invariants of what it says; return how it ended."""
    done = live.gcluster(*words, "--format", "json", expect=None)
    try:
        document = json.loads(done.stdout)
    except ValueError:
        document = {}
    ended = Ended(
        words=words,
        code=done.returncode,
        out=done.stdout,
        err=done.stderr,
        pid=0,
        diagnostics=tuple(document.get("diagnostics", ())),
    )
    folder.mkdir(exist_ok=True)
    step = Step(ended, TortureCluster(folder / os.urandom(4).hex()), False, True, False)
    broken = {i.name: how for i in INVARIANTS if i.name in _OF_WORDS and (how := i.broken(step))}
    assert broken == {}, f"{words}: {broken}"
    return ended


def _nodes(live: LiveCluster) -> set[str]:
    label = f"label=gcluster.cluster={live.name}"
    shown = ["--format", '{{index .Labels "gcluster.node"}}']
    done = subprocess.run(
        ["podman", "ps", "--filter", label, *shown], capture_output=True, text=True, check=True
    )
    names = done.stdout.split()
    assert len(names) == len(set(names)), f"there twice: {names}"
    return set(names)


def _runs_jobs(live: LiveCluster) -> bool:
    output = live.gcluster(
        "ssh", str(live.spec), "head", "--", "srun -N2 --immediate=60 hostname", expect=None
    )
    return {"gpu001", "gpu002"} <= set(output.stdout.split())


@pytest.mark.parametrize(
    "fault",
    Random(SEED).sample(NODE_FAULTS, min(MANY, len(NODE_FAULTS))),  # noqa: S311  # no key
    ids=lambda fault: fault.name.replace(" ", "-"),
)
def test_whatever_befalls_nodes_a_second_up_ends_healthy(
    live: LiveCluster, fault: NodeFault, tmp_path: Path
) -> None:
    fault.do(live, fault.node)
    try:
        status = _held(live, tmp_path / "held", "status", str(live.spec))
        if fault.is_felt:
            assert status.code != 0, f"{fault.name}, and status calls it well"
        _held(live, tmp_path / "held", "up", str(live.spec), "--yes")
    finally:
        fault.take_back(live, fault.node)
    for _ in range(3):
        if _held(live, tmp_path / "held", "up", str(live.spec), "--yes").code == 0:
            break
    assert _held(live, tmp_path / "held", "status", str(live.spec)).code == 0
    assert _nodes(live) == {"head", "gpu001", "gpu002"}
    assert _runs_jobs(live)


def test_a_cluster_whose_state_is_lost_is_found_again_by_its_labels(
    live: LiveCluster, tmp_path: Path
) -> None:
    shutil.rmtree(live.spec.parent / ".gcluster")
    shutil.rmtree(live.data / "gcluster" / "clusters")  # this machine has no record either
    refused = _held(live, tmp_path / "held", "down", str(live.spec), "--yes")
    assert (refused.code, refused.diagnostics[0]["code"]) == (5, "GC1165")
    assert "node gpu002" in refused.diagnostics[0]["detail"]
    repaired = live.json("state", "repair", str(live.spec), "--yes")
    assert set(repaired["adopted"]) >= {"here: node/head", "here: node/gpu001", "here: node/gpu002"}
    assert _nodes(live) == {"head", "gpu001", "gpu002"}
    gone = live.json("down", str(live.spec), "--yes")
    assert gone["removed"]["node"] == 3
    assert _nodes(live) == set()
