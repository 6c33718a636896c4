"""Sites, scheduler and bandwidth: what they said, and what of it is drift."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from gcluster.lifecycle.state import Event, SmokeFinished, SpecApplied
from gcluster.lifecycle.state.event_types import Known
from gcluster.lifecycle.status.drift.observe import bandwidth_drift
from gcluster.lifecycle.status.drift.scheduler import SlurmDrift

NODES = {"gpu001": ["slurm.join"], "gpu002": ["slurm.join"]}
SOUND = """\
node|gpu001|idle|Unknown|Unknown|none
node|gpu002|allocated|Unknown|Unknown|none
partition|train|up
"""


def _events(*bodies: Known) -> list[Event]:
    time = datetime(2026, 11, 22, 10, tzinfo=UTC)
    return [
        Event(seq=n, time=time, actor="ada@desk", run="", epochs={}, body=body)
        for n, body in enumerate(bodies, start=1)
    ]


def test_nodes_that_take_jobs_and_partitions_that_are_up_have_not_drifted() -> None:
    found = SlurmDrift("demo").judge({"head": SOUND}, NODES)
    assert (found.drifts, found.problem) == ((), "")


@pytest.mark.parametrize(
    ("row", "who", "fixable", "hint"),
    [
        ("drained|root|1763805600|link 3", "root", False, "gcluster resume demo gpu001"),
        ("drained|root|1763805600|gcluster-health: xid", "root", False,
         "gcluster repair demo gpu001"),
        ("drained|root|1763805600|gcluster up: run", "root", False, "gcluster up goes on with it"),
        ("down*|slurm|1763805600|Not responding", "slurm", True, ""),
    ],
)  # fmt: skip
def test_a_node_out_of_service_is_reported_with_who_and_when(
    row: str, who: str, fixable: bool, hint: str
) -> None:
    answer = SOUND.replace("gpu001|idle|Unknown|Unknown|none", f"gpu001|{row}")
    (drift,) = SlurmDrift("demo").judge({"head": answer}, NODES).drifts
    assert (drift.who, drift.when, drift.fixable) == (who, "2025-11-22T10:00:00Z", fixable)
    assert drift.hint == hint
    assert drift.steps == (("slurm.join",) if fixable else ())


def test_a_node_that_the_scheduler_lost_is_reported() -> None:
    answer = SOUND.replace("node|gpu002|allocated|Unknown|Unknown|none\n", "")
    (drift,) = SlurmDrift("demo").judge({"head": answer}, NODES).drifts
    assert (drift.where, drift.now) == ("gpu002", "the scheduler does not know it")


def test_a_partition_that_is_down_is_reported() -> None:
    answer = SOUND.replace("train|up", "train|down")
    (drift,) = SlurmDrift("demo").judge({"head": answer}, NODES).drifts
    assert (drift.kind, drift.name, drift.now) == ("partition", "train", "down")


def test_of_two_controllers_the_one_that_answers_is_enough() -> None:
    found = SlurmDrift("demo").judge({"head1": "", "head2": SOUND}, NODES)
    assert (found.drifts, found.problem) == ((), "")


def test_a_silent_scheduler_is_not_known_to_be_well() -> None:
    assert SlurmDrift("demo").judge({"head": ""}, NODES).problem


LIVE = (SmokeFinished(verdict="pass", busbw=400.0), SpecApplied(spec_hash="a"))


@pytest.mark.parametrize(
    ("later", "now"),
    [
        ((), None),
        ((SmokeFinished(verdict="pass", busbw=365.0),), None),
        ((SmokeFinished(verdict="pass", busbw=349.5),), "349.5 GB/s"),
        ((SmokeFinished(verdict="fail", busbw=395.0),), "395 GB/s, fail"),
        ((SmokeFinished(verdict="fail"),), "not measured, fail"),
        ((SmokeFinished(verdict="fail", busbw=1.0), SmokeFinished(verdict="pass", busbw=401.0)),
         None),
        ((SmokeFinished(verdict="pass", busbw=300.0), SpecApplied(spec_hash="b")), None),
    ],
)  # fmt: skip
def test_the_newest_bandwidth_is_held_against_what_the_cluster_went_live_with(
    later: tuple[Known, ...], now: str | None
) -> None:
    found = bandwidth_drift("demo", _events(*LIVE, *later))
    assert [drift.now for drift in found] == ([] if now is None else [now])
    assert all(drift.was == "400 GB/s" and drift.who == "ada@desk" for drift in found)


def test_a_cluster_that_was_never_certified_has_no_bandwidth_to_lose() -> None:
    assert bandwidth_drift("demo", _events(SmokeFinished(verdict="fail"))) == ()


def test_the_bandwidth_of_simulated_gpus_is_no_drift_but_a_failure_is() -> None:
    slow = SmokeFinished(verdict="pass", busbw=0.2, simulated=True)
    assert bandwidth_drift("demo", _events(*LIVE, slow)) == ()
    failed = SmokeFinished(verdict="fail", busbw=0.2, simulated=True)
    assert len(bandwidth_drift("demo", _events(*LIVE, failed))) == 1
