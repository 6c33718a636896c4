"""Real nodes, `up` and `down` killed at any write and any call: the laws of the model hold.

Ten kills; `make chaos` does two hundred. Every machine is on record at any time, none is there
twice, an `up` that is not killed completes, and a `down` leaves nothing.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from gcluster.lifecycle.cluster.cluster import Cluster, open_cluster

from .conftest import LiveCluster

pytestmark = pytest.mark.local

KILLS = int(os.environ.get("GCLUSTER_KILLS", "10"))
SEED = int(os.environ.get("GCLUSTER_SEED", "0"))
NEVER = 100_000
_LATEST = {"up": 70, "down": 40}
"""Moments that a run of two nodes has, about: later ones kill nothing, and the run ends well."""
_WORKER = Path(__file__).with_name("chaos_worker.py")
_ROOT = _WORKER.parents[2]


def _run(live: LiveCluster, verb: str, number: int) -> int:
    done = subprocess.run(
        [sys.executable, str(_WORKER), verb, str(live.spec), str(number)],
        env={**live.environment, "PYTHONPATH": os.pathsep.join([str(_ROOT), *sys.path])},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode


def _machines(live: LiveCluster) -> dict[str, str]:
    """Return node -> id, for the cluster's containers as the engine lists them."""
    done = subprocess.run(
        ["podman", "ps", "--all", "--format", "json", "--no-trunc",
         "--filter", f"label=gcluster.cluster={live.name}"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    found = json.loads(done.stdout or "[]")
    names = [container["Labels"]["gcluster.node"] for container in found]
    assert max(Counter(names).values(), default=1) == 1, f"made twice: {names}"
    return {c["Labels"]["gcluster.node"]: c["Id"] for c in found}


def _on_record(cluster: Cluster) -> tuple[dict[str, str], set[str]]:
    """Return node -> id as the ledger has it, and the nodes of open intents."""
    existing = {e.key: e.provider_id for e in cluster.ledger.existing() if e.kind == "node"}
    return (
        {key.removeprefix("node/"): identifier for key, identifier in existing.items()},
        {i.resource_key.removeprefix("node/") for i in cluster.ledger.open_intents()},
    )


def _no_orphan(live: LiveCluster) -> None:
    known, meant = _on_record(open_cluster(str(live.spec)))
    for node, identifier in _machines(live).items():
        assert known.get(node) == identifier or node in meant, f"{node} is on no record"


def _all_is_right(live: LiveCluster, nodes: int) -> None:
    there = _machines(live)
    known, meant = _on_record(open_cluster(str(live.spec)))
    assert sorted(there) == sorted(["head", *(f"gpu{n:03d}" for n in range(1, nodes + 1))])
    assert (known, meant) == (there, set())


def test_however_often_it_is_killed_nothing_is_orphaned_or_made_twice(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    live = LiveCluster(tmp_path)
    draw = random.Random(SEED)  # noqa: S311  # a random run, not a key
    tally: Counter[str] = Counter()
    try:
        while tally["killed"] < KILLS:
            nodes = draw.choice([1, 2])
            live.write_spec(nodes=nodes)
            verb = draw.choices(["up", "down"], [3, 1])[0]
            code = _run(live, verb, draw.randint(1, _LATEST[verb]))
            tally[verb] += 1
            tally["killed"] += code == -9
            _no_orphan(live)
            if code == 0 and verb == "up":
                _all_is_right(live, nodes)
            if code == 0 and verb == "down":
                assert _machines(live) == {}
            if draw.random() < 0.2:  # now and then it is left to end
                assert _run(live, "up", NEVER) == 0
                _all_is_right(live, nodes)
                tally["went on to the end"] += 1
        assert _run(live, "up", NEVER) == 0
        _all_is_right(live, nodes)
    finally:
        code = _run(live, "down", NEVER)
    assert code == 0
    assert not any(live.left_behind().values()), live.left_behind()
    events = open_cluster(str(live.spec)).events
    assert events.damage() == {}
    with capfd.disabled():
        print(f"\nseed {SEED}: {dict(tally)}, {events.last} events")  # noqa: T201  # for `make chaos`
