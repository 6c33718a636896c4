"""When a cluster's time is up, from its spec, its history and its use."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcluster.lifecycle.down.expiry.due import ending, lifetime
from gcluster.lifecycle.down.expiry.jobs import Jobs, read_jobs
from gcluster.lifecycle.state import (
    Event,
    ExpiryAnnounced,
    ExpiryWithdrawn,
    RunFinished,
    RunStarted,
)
from gcluster.lifecycle.state.event_types import Body
from gcluster.schemas.spec import Budget
from gcluster.schemas.spec.units import decode_quantity

BEGAN = datetime(2026, 11, 1, tzinfo=UTC)


def budget(**fields: str) -> Budget:
    return msgspec.convert(fields, Budget, dec_hook=decode_quantity)


def after(**time: float) -> datetime:
    return BEGAN + timedelta(**time)


def test_nothing_ends_a_cluster_without_an_expiry_in_its_spec() -> None:
    assert ending(None, BEGAN, Jobs(), after(days=900)) is None
    assert ending(Budget(), BEGAN, Jobs(), after(days=900)) is None


def test_an_expiry_is_reported_a_day_before() -> None:
    mine = budget(expires="30d")
    assert ending(mine, BEGAN, Jobs(), after(days=28, hours=23)) is None
    end = ending(mine, BEGAN, Jobs(), after(days=29))
    assert end is not None
    assert (end.kind, end.due) == ("expires", after(days=30))


def test_a_day_begins_at_midnight_utc() -> None:
    end = ending(budget(expires_on="2026-12-01"), BEGAN, Jobs(), after(days=60))
    assert end is not None
    assert end.due == datetime(2026, 12, 1, tzinfo=UTC)


def test_idleness_counts_from_the_last_job_and_never_from_before_the_cluster() -> None:
    mine = budget(idle_shutdown="8h")
    now = after(hours=20)
    assert ending(mine, BEGAN, Jobs(idle_s=7 * 3600), now) is None
    end = ending(mine, BEGAN, Jobs(idle_s=7.75 * 3600), now)
    assert end is not None
    assert (end.kind, end.due) == ("idle", after(hours=20.25))
    young = ending(mine, BEGAN, Jobs(idle_s=99 * 3600), after(hours=1))
    assert young is None


def test_unknown_is_not_idle() -> None:
    mine = budget(idle_shutdown="1h")
    assert ending(mine, BEGAN, Jobs(problem="no answer"), after(days=9)) is None
    assert ending(mine, BEGAN, Jobs(running=1), after(days=9)) is None


def test_what_comes_first_ends_it() -> None:
    mine = budget(expires="2d", idle_shutdown="1h")
    end = ending(mine, BEGAN, Jobs(idle_s=3600), after(days=1.9))
    assert end is not None
    assert end.kind == "idle"


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.integers(0, 10**7))
def test_an_end_is_never_announced_after_its_notice_began(
    expires: int, notice: int, now_s: int
) -> None:
    mine = budget(expires=f"{expires}s", notice=f"{notice}s")
    now = after(seconds=now_s)
    end = ending(mine, BEGAN, Jobs(), now)
    assert (end is not None) == (now_s >= expires - notice)


def _events(*bodies: tuple[str, Body]) -> list[Event]:
    return [
        Event(seq=n, time=after(hours=n), actor="a", run=run, epochs={}, body=body)
        for n, (run, body) in enumerate(bodies, 1)
    ]


ANNOUNCED = ExpiryAnnounced(kind="expires", due=1.0, earliest=2.0, why="w")
UP, DOWN = (RunStarted(command=c, spec_hash="h") for c in ("up", "down"))
OK = RunFinished(outcome="ok", exit_code=0)


def test_a_life_begins_with_the_first_up_and_ends_with_a_whole_down() -> None:
    assert lifetime([]) is None
    again = lifetime(_events(("1", UP), ("1", OK), ("2", UP)))
    assert again is not None
    assert again.began == after(hours=1)
    assert lifetime(_events(("1", UP), ("2", DOWN), ("2", OK))) is None
    left = lifetime(_events(("1", UP), ("2", DOWN), ("2", RunFinished(outcome="l", exit_code=5))))
    assert left is not None
    new = lifetime(_events(("1", UP), ("2", DOWN), ("2", OK), ("3", UP)))
    assert new is not None
    assert new.began == after(hours=4)


def test_what_was_announced_holds_until_it_is_withdrawn_or_the_life_ends() -> None:
    answer = lifetime(_events(("1", UP), ("", ANNOUNCED)))
    assert answer is not None
    assert answer.announced == ANNOUNCED
    free = lifetime(_events(("1", UP), ("", ANNOUNCED), ("", ExpiryWithdrawn(why=""))))
    assert free is not None
    assert free.announced is None
    new = lifetime(_events(("1", UP), ("", ANNOUNCED), ("2", DOWN), ("2", OK), ("3", UP)))
    assert new is not None
    assert new.announced is None


NODES = (
    "NodeName=n1 State=IDLE LastBusyTime=1000 ResumeAfterTime=None\n"
    "NodeName=n2 State=IDLE LastBusyTime=1400 ResumeAfterTime=None\n"
)


def test_the_busiest_node_has_since_when_a_cluster_is_idle() -> None:
    assert read_jobs(f"---\n2000\n{NODES}") == Jobs(idle_s=600)


def test_jobs_that_wait_keep_a_cluster_from_being_idle_and_not_from_expiring() -> None:
    jobs = read_jobs(f"PENDING\nPENDING\n---\n2000\n{NODES}")
    assert (jobs, jobs.why_not) == (Jobs(waiting=2), "")


def test_jobs_that_hold_nodes_keep_it() -> None:
    jobs = read_jobs(f"RUNNING\nSUSPENDED\nCOMPLETING\nPENDING\n---\n2000\n{NODES}")
    assert (jobs.running, jobs.waiting, jobs.why_not) == (3, 1, "3 jobs run")


@pytest.mark.parametrize("text", ["", "RUNNING\n", "---\n", "---\nnever\n", "RUNNING\n---"])
def test_an_answer_that_was_cut_short_keeps_it(text: str) -> None:
    assert read_jobs(text).why_not.startswith("its scheduler can't be queried")


def test_a_node_that_never_was_busy_leaves_idleness_unknown() -> None:
    text = f"---\n2000\n{NODES}NodeName=n3 State=IDLE LastBusyTime=None\n"
    assert read_jobs(text).idle_s is None
