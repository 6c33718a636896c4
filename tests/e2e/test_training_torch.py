"""PyTorch on real local nodes: a transformer survives lost nodes and lost workers.

The program is that of examples/first-model, PyTorch is Debian's (gloo, on processors), in a folder
that all nodes mount. Each curve of losses is held to that of a run that nothing disturbed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .conftest import until
from .training_site import Lab, measured, opened, podman

pytestmark = [pytest.mark.local, pytest.mark.training]

NODES, STEPS = 4, 300
SLICE_S = 0.2
OTHER_SIZE = 1e-6
"""Losses of another number of processes, which add in another order, differ by this at most."""
ENVIRONMENT = "/scratch/envs/torch"
CASES: dict[str, dict[str, Any]] = {
    "steady": {},
    "lost": {"pause": SLICE_S},
    "elastic": {"framework": "torchrun-elastic", "min_nodes": NODES - 1, "pause": SLICE_S},
}


def _workload(case: dict[str, Any]) -> dict[str, Any]:
    return {
        **{key: case[key] for key in ("min_nodes",) if key in case},
        "framework": case.get("framework", "torchrun"),
        "nodes": NODES,
        "venv": ENVIRONMENT,
        "chdir": "/scratch",
        "script": "transformer.py",
        "account": "lab",
        "time": "1h",
        "variables": {"STEPS": str(STEPS), "PAUSE": str(case.get("pause", 0))},
        "checkpoint": {"to": "scratch", "every": "3s", "notice": "30s"},
    }


@pytest.fixture(scope="module")
def lab(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, root: Path
) -> Iterator[Lab]:
    """A controller and four nodes, with PyTorch on their storage."""
    workloads = {name: _workload(case) for name, case in CASES.items()}
    example = root / "examples" / "first-model"
    files = [example / "transformer.py", example / "torch-env.sh"]
    with opened(request, tmp_path_factory.mktemp("torch"), NODES, workloads, files) as lab:
        began = time.monotonic()
        lab.on("gpu001", f"bash /scratch/torch-env.sh {ENVIRONMENT} 2>&1")
        measured(f"PyTorch in a folder of the nodes after {time.monotonic() - began:.0f} s")
        yield lab


@pytest.fixture(scope="module")
def undisturbed(lab: Lab) -> dict[int, str]:
    """The curve of the run that nothing happens to."""
    began = time.monotonic()
    curve = _finished(lab, "steady", lab.submit("steady"))
    measured(f"undisturbed: {STEPS} steps in {time.monotonic() - began:.0f} s")
    return curve


def _finished(lab: Lab, case: str, job: str, *, within: float = 0.0) -> dict[int, str]:
    """Return the losses of a job that ran to its end."""
    assert lab.ends(job) == "COMPLETED", lab.log(case, job)[-4000:]
    curve = lab.losses(case, job, within=within)
    assert sorted(curve) == list(range(1, STEPS + 1))
    return curve


def _distance(one: dict[int, str], other: dict[int, str]) -> float:
    return max(abs(float(one[step]) - float(other[step])) for step in one)


def test_a_transformer_learns_on_four_nodes(lab: Lab, undisturbed: dict[int, str]) -> None:
    first, last = float(undisturbed[1]), float(undisturbed[STEPS])
    assert last < 0.75 * first
    (log,) = lab.scratch.glob("steady-*.log")
    assert f"saved /scratch/checkpoints/steady/step-{STEPS}" in log.read_text(encoding="utf-8")
    measured(f"loss {first:.3f} at first, {last:.3f} at step {STEPS}")


def test_a_training_that_lost_a_node_has_the_same_losses(
    lab: Lab, undisturbed: dict[int, str]
) -> None:
    """All four nodes are used: the job waits in line until the lost one is back."""
    job = lab.submit("lost")
    lab.reaches("lost", job, 40)
    victim = lab.nodes(job)[1]
    lost_at, began = lab.last("lost", job), time.monotonic()
    podman("kill", lab.container(victim))
    until(lambda: "gcluster: queued again" in lab.log("lost", job), 240)
    podman("start", lab.container(victim))
    took = lab.resumed("lost", job, 1) - began
    assert _finished(lab, "lost", job) == undisturbed
    measured(f"lost a node at step {lost_at}, next step after {took:.0f} s, same losses")


def test_an_elastic_training_loses_a_worker_then_a_node_and_takes_it_back(
    lab: Lab, undisturbed: dict[int, str]
) -> None:
    # An elastic job starts on the nodes that are there.
    free = f"squeue -h; sinfo -h -t idle -o %D | grep -v '^{NODES}$'"
    until(lambda: not lab.on("head", free, expect=None), 180)
    job = lab.submit("elastic")
    lab.reaches("elastic", job, 20)
    victim = lab.nodes(job)[1]
    began = time.monotonic()
    lab.on(victim, "pkill -KILL -f '^[^ ]*python3 -u transformer.py'")
    until(lambda: "workers started again, from /" in lab.log("elastic", job), 240)
    restarted = time.monotonic() - began
    assert "attempt 0 ended" not in lab.log("elastic", job)

    step = lab.last("elastic", job)
    until(lambda: lab.last("elastic", job) >= step + 20, 240)
    began = time.monotonic()
    podman("kill", lab.container(victim))
    shrunk = lab.resumed("elastic", job, 1) - began
    assert f"on {NODES - 1} of {NODES} nodes" in lab.log("elastic", job)
    until(lambda: victim not in lab.nodes(job), 120)
    podman("start", lab.container(victim))
    began = time.monotonic()
    grown = lab.resumed("elastic", job, 2) - began
    assert len(lab.nodes(job)) == NODES
    far = _distance(_finished(lab, "elastic", job, within=OTHER_SIZE), undisturbed)
    assert far <= OTHER_SIZE
    measured(
        f"elastic: workers again after {restarted:.0f} s, on {NODES - 1} nodes after "
        f"{shrunk:.0f} s, on {NODES} again after {grown:.0f} s; losses within {far:.1e}"
    )
