"""Jobs that spill from one local site to another, each on a network of its own (make prove-burst).

Nodes are containers, Slurm is real; what goes wrong is injected into the local provider
(`stacks/local/faults.py`). The tests run in order and share one cluster: a long job fills its home.
"""

from __future__ import annotations

import json
import re
import signal
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from gcluster.schemas.hostlist import expand

from .bursting import Bursting
from .conftest import LiveCluster

pytestmark = [pytest.mark.local, pytest.mark.burst]

ALLREDUCE = (
    "from mpi4py import MPI; c = MPI.COMM_WORLD; "
    "assert c.size == 2 and c.allreduce(c.rank + 1) == 3"
)


@pytest.fixture(scope="module")
def bursting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bursting]:
    """Give the cluster, up, its home filled, an agent at work; take it down whatever happens."""
    live = LiveCluster(tmp_path_factory.mktemp("burst"))
    bursting = Bursting(live)
    try:
        live.json("up", str(live.spec), "--yes")
        bursting.send("sleep 3600", "--exclusive", "--nodes=2", "--time=59")
        bursting.start()
        yield bursting
    finally:
        bursting.stop()
        live.gcluster("down", str(live.spec), "--yes", expect=None)


@pytest.fixture(scope="module")
def faulty(bursting: Bursting) -> dict[str, str]:
    """Send the jobs that meet a fault, before all others: one of them is waited for long."""
    return {pool: bursting.send("true", f"--partition={pool}") for pool in ("deaf", "none", "dear")}


@pytest.mark.usefixtures("faulty")
def test_a_job_spills_runs_its_allreduce_on_rented_nodes_and_all_is_given_back(
    bursting: Bursting, capsys: pytest.CaptureFixture[str]
) -> None:
    wrapped = f'srun --mpi=pmix python3 -c "{ALLREDUCE}"'
    job = bursting.send(wrapped, "--nodes=2", "--ntasks-per-node=1", "--time=10", "--exclusive")

    bursting.until(lambda: bursting.state(job) == "COMPLETED", within_s=420)
    print_latency(bursting, job, capsys)
    bursting.until(lambda: len(_nodes(bursting.said("gone", "spill"))) == 2, within_s=120)

    assert bursting.said("moved")[0]["job"] == job
    assert bursting.said("asked", "spill")[0]["nodes"] == "spill[001-002]"
    assert bursting.job(job, "Partition").startswith("spill")
    assert bursting.rented("spill001") + bursting.rented("spill002") == []


def test_a_pool_without_capacity_gives_nothing_and_the_job_is_told(
    bursting: Bursting, faulty: dict[str, str]
) -> None:
    bursting.until(lambda: bool(bursting.said("gave-up", "full001")), within_s=60)

    assert "no capacity" in bursting.said("refused", "full001")[0]["reason"]
    assert "its nodes don't come" in bursting.job(faulty["none"], "AdminComment")
    assert bursting.rented("full001") == []


def test_nothing_is_bought_at_a_price_above_the_ceiling(
    bursting: Bursting, faulty: dict[str, str]
) -> None:
    bursting.until(lambda: bool(bursting.said("refused", "dear001")), within_s=60)

    assert bursting.said("asked", "dear001") == []
    assert "it adds $9.00" in bursting.job(faulty["dear"], "AdminComment")


def test_an_agent_that_is_killed_in_each_state_makes_one_machine_and_gives_it_back(
    bursting: Bursting,
) -> None:
    asked, gone = len(bursting.said("asked", "spill")), len(bursting.said("gone", "spill"))
    made, joined = len(bursting.said("made", "spill")), len(bursting.said("joined", "spill"))
    leaving = len(bursting.said("leaving", "spill"))
    bursting.inject(before_s=4, after_s=4)
    job = bursting.send("sleep 5", "--partition=spill", "--time=5")

    bursting.kill_when(lambda: len(bursting.said("asked", "spill")) > asked, within_s=60)
    node = bursting.said("asked", "spill")[-1]["nodes"]
    bursting.kill_when(lambda: bool(bursting.rented(node)), within_s=60)
    machine = bursting.rented(node)
    bursting.kill_when(lambda: len(bursting.said("made", "spill")) > made, within_s=60)
    bursting.kill_when(lambda: len(bursting.said("joined", "spill")) > joined, within_s=300)
    bursting.until(lambda: bursting.state(job) == "COMPLETED", within_s=120)
    assert bursting.rented(node) == machine
    bursting.kill_when(lambda: len(bursting.said("leaving", "spill")) > leaving, within_s=120)
    bursting.kill_when(lambda: not bursting.rented(node), within_s=60)
    bursting.until(lambda: len(bursting.said("gone", "spill")) > gone, within_s=60)

    bursting.inject()
    assert len(bursting.said("asked", "spill")) == asked + 1
    assert bursting.job(job, "Restarts").startswith("0")


def test_a_job_that_may_not_leave_is_told_why(bursting: Bursting) -> None:
    job = bursting.send("true", "--exclusive", "--time=5", "--comment=spill=no")

    told = bursting.live.json("burst", "explain", str(bursting.live.spec), job)

    against = [r["word"] for r in told["decision"]["reasons"] if not r["holds"]]
    assert "leave" in against
    bursting.until(lambda: "stays (" in bursting.job(job, "AdminComment"), within_s=60)
    bursting.on_head(f"scancel {job}")


def test_a_node_that_boots_and_never_joins_is_given_back(
    bursting: Bursting, faulty: dict[str, str]
) -> None:
    bursting.until(lambda: bool(bursting.said("gone", "mute001")), within_s=360)

    assert bursting.said("made", "mute001")
    assert bursting.said("joined", "mute001") == []
    assert bursting.rented("mute001") == []
    assert bursting.state(faulty["deaf"]) == "PENDING"
    bursting.on_head(f"scancel {' '.join(faulty.values())}")


def test_a_provider_that_is_slow_holds_up_its_own_nodes_alone(bursting: Bursting) -> None:
    asked, made = len(bursting.said("asked", "spill")), len(bursting.said("made", "spill"))
    bursting.inject(before_s=60)
    late = bursting.send("true", "--partition=spill", "--exclusive", "--time=5")
    bursting.until(lambda: len(bursting.said("asked", "spill")) > asked, within_s=60)
    bursting.inject()
    soon = bursting.send("true", "--partition=spill", "--exclusive", "--time=5")

    bursting.until(lambda: len(bursting.said("made", "spill")) == made + 2, within_s=180)

    first, second = (each["nodes"] for each in bursting.said("asked", "spill")[-2:])
    assert [each["nodes"] for each in bursting.said("made", "spill")[-2:]] == [second, first]
    bursting.until(
        lambda: {bursting.state(soon), bursting.state(late)} == {"COMPLETED"}, within_s=300
    )


def test_a_route_that_is_cut_during_a_job_ends_in_nodes_given_back(bursting: Bursting) -> None:
    gone = len(bursting.said("gone", "spill"))
    bursting.until(lambda: not bursting.rented(), within_s=120)
    job = bursting.send("sleep 600", "--partition=spill", "--time=15")
    bursting.until(lambda: bursting.state(job) == "RUNNING", within_s=300)
    node = bursting.on_head(f"squeue --noheader --jobs={job} --format=%N").strip()
    address = bursting.on_head(f"scontrol --oneliner show node {node}").split("NodeAddr=")[1]
    network = address.split()[0].rsplit(".", 1)[0]

    bursting.on_head(f"ip route add blackhole {network}.0/24")
    try:
        bursting.until(lambda: len(bursting.said("gone", "spill")) > gone, within_s=300)
    finally:
        bursting.on_head(f"ip route del blackhole {network}.0/24; scancel {job}")
    assert bursting.said("gone", "spill")[-1]["reason"]


def test_nothing_is_left_and_the_book_is_closed(
    bursting: Bursting, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bursting.until(lambda: not bursting.rented(), within_s=120)
    bursting.stop(signal.SIGTERM)
    told = bursting.tally(monkeypatch)

    bursting.live.gcluster("down", str(bursting.live.spec), "--yes")

    with capsys.disabled():
        counted = ", ".join(f"{count} {word}" for word, count in told.items())
        sys.stdout.write(f"\n{counted}; {len(bursting.rented())} containers by label\n")
    assert told["intents"] == told["results"]
    assert told["created"] == told["deletions"]
    assert not any(bursting.live.left_behind().values())


def print_latency(bursting: Bursting, job: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Print where the time from the request to the running job went, in seconds."""
    words = "now responding|Allocate JobId"
    journal = bursting.on_head(
        f"journalctl --unit slurmctld --output json --no-pager | grep -E '{words}'"
    )
    lines = [json.loads(line) for line in journal.splitlines()]
    at = {line["MESSAGE"]: int(line["__REALTIME_TIMESTAMP"]) / 1e6 for line in lines}
    sent = next(when for what, when in at.items() if f"JobId={job} " in what)
    answered = max(when for what, when in at.items() if re.search("spill00[12] now", what))
    asked, made = (_when(bursting.said(what, "spill")[0]["time"]) for what in ("asked", "made"))
    begins = bursting.job(job, "StartTime").split()[0]
    began = bursting.on_head(f"date --date={begins} +%s")
    parts = {
        "request": asked - sent, "boot": made - asked, "converge and register": answered - made,
        "until Slurm starts it": float(began) - answered, "all": float(began) - sent,
    }  # fmt: skip
    told = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in parts.items())
    with capsys.disabled():
        sys.stdout.write(f"\n{told}\n")


def _nodes(events: list[dict[str, Any]]) -> set[str]:
    return {node for event in events for node in expand(event["nodes"])}


def _when(time: str) -> float:
    return datetime.fromisoformat(time).astimezone(UTC).timestamp()
