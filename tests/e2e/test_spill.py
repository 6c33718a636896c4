"""A job that spills from one local site to another, each with its own network.

Nodes are containers, Slurm is real. The tests run in order and share one cluster: a long job fills
its home.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from gcluster.schemas.derived.hostlist import expand

from .bursting import NONE, Bursting, filled

pytestmark = [pytest.mark.local, pytest.mark.burst, pytest.mark.core]

SAY_WHEN = "scontrol update JobId=$SLURM_JOB_ID Comment=$(date +%s.%N)"
"""The job's first words: when it began on its node, by a clock that all containers share."""
ALLREDUCE = (
    "from mpi4py import MPI; c = MPI.COMM_WORLD; "
    "assert c.size == 2 and c.allreduce(c.rank + 1) == 3"
)


@pytest.fixture(scope="module")
def bursting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bursting]:
    """Give the cluster, up, its home filled, an agent at work; take it down whatever happens."""
    with filled(tmp_path_factory.mktemp("spill"), NONE) as bursting:
        yield bursting


def test_a_job_spills_runs_its_allreduce_on_rented_nodes_and_all_is_given_back(
    bursting: Bursting, capsys: pytest.CaptureFixture[str]
) -> None:
    wrapped = f'{SAY_WHEN}; srun --mpi=pmix python3 -c "{ALLREDUCE}"'
    job = bursting.send(wrapped, "--nodes=2", "--ntasks-per-node=1", "--time=10", "--exclusive")

    bursting.until(lambda: bursting.state(job) == "COMPLETED", within_s=420)
    print_latency(bursting, job, capsys)
    bursting.until(lambda: len(_nodes(bursting.events("gone", "spill"))) == 2, within_s=120)

    assert bursting.events("moved")[0]["job"] == job
    assert bursting.events("requested", "spill")[0]["nodes"] == "spill[001-002]"
    assert bursting.job(job, "Partition").startswith("spill")
    assert bursting.rented("spill001") + bursting.rented("spill002") == []


def test_nothing_is_left_and_the_ledger_is_closed(
    bursting: Bursting, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bursting.close(monkeypatch, capsys)


def print_latency(bursting: Bursting, job: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Print where the time from the request to the running job went, in seconds."""
    words = "now responding|Allocate JobId|Started JobId"  # the main scheduler's, backfill's
    journal = bursting.on_head(
        f"journalctl --unit slurmctld --output json --no-pager | grep -E '{words}'"
    )
    lines = [json.loads(line) for line in journal.splitlines()]
    at = {line["MESSAGE"]: int(line["__REALTIME_TIMESTAMP"]) / 1e6 for line in lines}
    sent = next(when for what, when in at.items() if f"JobId={job} " in what)
    answered = max(when for what, when in at.items() if re.search("spill00[12] now", what))
    requested, made = (
        _when(bursting.events(what, "spill")[0]["time"]) for what in ("requested", "made")
    )
    began = float(bursting.job(job, "Comment"))
    parts = {
        "request": requested - sent, "boot": made - requested,
        "converge and register": answered - made,
        "until it runs on its node": began - answered, "all": began - sent,
    }  # fmt: skip
    answer = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in parts.items())
    with capsys.disabled():
        sys.stdout.write(f"\n{answer}\n")


def _nodes(events: list[dict[str, Any]]) -> set[str]:
    return {node for event in events for node in expand(event["nodes"])}


def _when(time: str) -> float:
    return datetime.fromisoformat(time).astimezone(UTC).timestamp()
