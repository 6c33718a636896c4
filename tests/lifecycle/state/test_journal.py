"""The journal: what each run did and how it ended, from the events and the locks."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

from gcluster.lifecycle.state import (
    EventLog,
    Journal,
    RunFinished,
    RunStarted,
    SpecApplied,
    StageDone,
    StateStore,
    acquire,
)
from gcluster.lifecycle.state.store import digest

UP = RunStarted(command="up", spec_hash="abc")


@pytest.fixture
def log(store: StateStore) -> EventLog:
    return EventLog(store)


def test_a_new_state_has_an_empty_journal(log: EventLog) -> None:
    journal = Journal(log)
    assert journal.runs() == ()
    assert journal.applied_spec() is None
    assert journal.interrupted() is None


def test_a_run_is_running_while_its_lock_is_held_and_interrupted_afterwards(log: EventLog) -> None:
    journal = Journal(log)
    with acquire(log.store, ["a", "b"], reason="up") as lock:
        log.bind(run="r1", epochs=lock.epochs)
        log.append(UP)
        assert journal.runs()[0].state == "running"
        assert journal.interrupted() is None
    assert journal.runs()[0].state == "interrupted"
    found = journal.interrupted()
    assert found is not None
    assert found.id == "r1"


def test_a_run_whose_process_was_killed_is_interrupted_before_anyone_takes_the_lock(
    url: str, start_actor: Callable[..., subprocess.Popen[str]]
) -> None:
    holder = start_actor("hold", url)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "ready\n"
    log = EventLog(StateStore.open(url))
    log.bind(run="r1", epochs={"site": 1})
    log.append(UP)
    assert Journal(log).runs()[0].state == "running"
    holder.kill()
    holder.wait()
    assert Journal(log).runs()[0].state == "interrupted"


def test_a_finished_run_reports_how_and_when_and_which_stages_it_had(log: EventLog) -> None:
    log.bind(run="r1", epochs={})
    log.append(UP)
    stage = StageDone(stage="nodes", ok=True, summary="5/5 up")
    log.append(stage)
    end = log.append(RunFinished(outcome="ok", exit_code=0))
    (run,) = Journal(log).runs()
    assert (run.state, run.outcome, run.exit_code) == ("finished", "ok", 0)
    assert (run.command, run.spec_hash, run.stages, run.ended) == ("up", "abc", (stage,), end.time)


def test_events_of_two_runs_at_the_same_time_are_kept_apart(store: StateStore) -> None:
    east, west = EventLog(store), EventLog(store)
    east.bind(run="east", epochs={})
    west.bind(run="west", epochs={})
    east.append(UP)
    west.append(UP)
    west.append(RunFinished(outcome="failed", exit_code=1))
    east.append(RunFinished(outcome="ok", exit_code=0))
    assert {run.id: run.exit_code for run in Journal(east).runs()} == {"east": 0, "west": 1}


def test_the_last_applied_spec_counts(log: EventLog) -> None:
    journal = Journal(log)
    for number in range(2):
        log.append(SpecApplied(spec_hash=f"spec{number}"))
        assert journal.applied_spec() == f"spec{number}"


def test_an_event_written_after_the_lock_was_lost_counts_for_nothing(store: StateStore) -> None:
    log = EventLog(store)
    log.append(SpecApplied(spec_hash="new"), epochs={"site": 2})
    first = store.get("events/000000000001.json") or b""
    previous = digest("events/000000000001.json", first).encode()
    stale = first.replace(b'"seq":1', b'"seq":2')
    stale = stale.replace(b'"previous":""', b'"previous":"%s"' % previous)
    stale = stale.replace(b'"site":2', b'"site":1').replace(b'"new"', b'"old"')
    store.put_new("events/000000000002.json", stale)
    assert Journal(log).applied_spec() == "new"
