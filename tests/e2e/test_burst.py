"""What goes wrong between a burst agent and nodes that are rented (make prove-burst).

Nodes are containers, Slurm is real; what goes wrong is injected into the local provider
(`stacks/local/faults.py`). The tests run in order and share one cluster: a long job fills its home.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from .bursting import Bursting, filled

pytestmark = [pytest.mark.local, pytest.mark.burst]

UNDER_WAY_S = 15
"""Seconds after a request by which its call is at the provider, which is slow for longer than
that."""


@pytest.fixture(scope="module")
def bursting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bursting]:
    """Give the cluster, up, its home filled, an agent at work; take it down whatever happens."""
    with filled(tmp_path_factory.mktemp("burst")) as bursting:
        yield bursting


@pytest.fixture(scope="module")
def faulty(bursting: Bursting) -> dict[str, str]:
    """Send the jobs that meet a fault, before all others: one of them is waited for long."""
    return {pool: bursting.send("true", f"--partition={pool}") for pool in ("deaf", "none", "dear")}


def test_a_pool_without_capacity_gives_nothing_and_the_job_is_reported(
    bursting: Bursting, faulty: dict[str, str]
) -> None:
    bursting.until(lambda: bool(bursting.events("gave-up", "full001")), within_s=60)

    assert "no capacity" in bursting.events("refused", "full001")[0]["reason"]
    assert "its nodes don't come" in bursting.job(faulty["none"], "AdminComment")
    assert bursting.rented("full001") == []


def test_nothing_is_bought_at_a_price_above_the_ceiling(
    bursting: Bursting, faulty: dict[str, str]
) -> None:
    bursting.until(lambda: bool(bursting.events("refused", "dear001")), within_s=60)

    assert bursting.events("requested", "dear001") == []
    assert "it adds $9.00" in bursting.job(faulty["dear"], "AdminComment")


def test_an_agent_that_is_killed_in_each_state_makes_one_machine_and_gives_it_back(
    bursting: Bursting,
) -> None:
    requested, gone = (
        len(bursting.events("requested", "spill")),
        len(bursting.events("gone", "spill")),
    )
    made, joined = (
        len(bursting.events("made", "spill")),
        len(bursting.events("joined", "spill")),
    )
    leaving = len(bursting.events("leaving", "spill"))
    bursting.inject(before_s=4, after_s=4)
    job = bursting.send("sleep 5", "--partition=spill", "--time=5")

    bursting.kill_when(lambda: len(bursting.events("requested", "spill")) > requested, within_s=60)
    node = bursting.events("requested", "spill")[-1]["nodes"]
    bursting.kill_when(lambda: bool(bursting.rented(node)), within_s=60)
    machine = bursting.rented(node)
    bursting.kill_when(lambda: len(bursting.events("made", "spill")) > made, within_s=60)
    bursting.kill_when(lambda: len(bursting.events("joined", "spill")) > joined, within_s=300)
    bursting.until(lambda: bursting.state(job) == "COMPLETED", within_s=120)
    assert bursting.rented(node) == machine
    bursting.kill_when(lambda: len(bursting.events("leaving", "spill")) > leaving, within_s=120)
    bursting.kill_when(lambda: not bursting.rented(node), within_s=60)
    bursting.until(lambda: len(bursting.events("gone", "spill")) > gone, within_s=60)

    bursting.inject()
    assert len(bursting.events("requested", "spill")) == requested + 1
    assert bursting.job(job, "Restarts").startswith("0")


def test_a_job_that_may_not_leave_has_its_reason_shown(bursting: Bursting) -> None:
    job = bursting.send("true", "--exclusive", "--time=5", "--comment=spill=no")

    answer = bursting.live.json("burst", "explain", str(bursting.live.spec), job)

    against = [r["word"] for r in answer["decision"]["reasons"] if not r["holds"]]
    assert "leave" in against
    bursting.until(lambda: "stays (" in bursting.job(job, "AdminComment"), within_s=60)
    bursting.on_head(f"scancel {job}")


def test_a_node_that_boots_and_never_joins_is_given_back(
    bursting: Bursting, faulty: dict[str, str]
) -> None:
    bursting.until(lambda: bool(bursting.events("gone", "mute001")), within_s=360)

    assert bursting.events("made", "mute001")
    assert bursting.events("joined", "mute001") == []
    assert bursting.rented("mute001") == []
    assert bursting.state(faulty["deaf"]) == "PENDING"
    bursting.on_head(f"scancel {' '.join(faulty.values())}")


def test_a_provider_that_is_slow_holds_up_its_own_nodes_alone(bursting: Bursting) -> None:
    requested, made = (
        len(bursting.events("requested", "spill")),
        len(bursting.events("made", "spill")),
    )
    bursting.inject(before_s=60)
    late = bursting.send("true", "--partition=spill", "--exclusive", "--time=5")
    bursting.until(lambda: len(bursting.events("requested", "spill")) > requested, within_s=60)
    time.sleep(UNDER_WAY_S)
    bursting.inject()
    soon = bursting.send("true", "--partition=spill", "--exclusive", "--time=5")

    bursting.until(lambda: len(bursting.events("made", "spill")) == made + 2, within_s=180)

    first, second = (each["nodes"] for each in bursting.events("requested", "spill")[-2:])
    assert [each["nodes"] for each in bursting.events("made", "spill")[-2:]] == [second, first]
    bursting.until(
        lambda: {bursting.state(soon), bursting.state(late)} == {"COMPLETED"}, within_s=300
    )


def test_a_node_that_is_cut_off_during_a_job_is_given_back(bursting: Bursting) -> None:
    bursting.until(lambda: not bursting.rented(), within_s=120)
    job = bursting.send("sleep 600", "--partition=spill", "--time=15")
    bursting.until(lambda: bursting.state(job) == "RUNNING", within_s=300)
    node = bursting.on_head(f"squeue --noheader --jobs={job} --format=%N").strip()

    def given_back_for_a_reason() -> bool:
        last = [each for each in bursting.events("gone", "spill") if each["nodes"] == node][-1:]
        return bool(last and last[0].get("reason"))

    bursting.cut_off(node)
    try:
        bursting.until(given_back_for_a_reason, within_s=300)
    finally:
        bursting.on_head(f"scancel {job}")


def test_nothing_is_left_and_the_ledger_is_closed(
    bursting: Bursting, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bursting.close(monkeypatch, capsys)
