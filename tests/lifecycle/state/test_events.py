"""The log: numbered without gaps by all writers; fenced by epochs; readable whatever is in it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec
import pytest

from gcluster.lifecycle.cluster.outcome import Exit, LifecycleError
from gcluster.lifecycle.state import (
    AlreadyExists,
    DamageAccepted,
    EventLog,
    RunStarted,
    SpecApplied,
    StageDone,
    StateStore,
    Unreadable,
    acquire,
    unlock,
)
from gcluster.lifecycle.state.bucket import Bucket
from gcluster.lifecycle.state.store import digest

NOON = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)
DONE = StageDone(stage="nodes", ok=True)


def test_an_event_reports_when_who_in_which_run_and_what(store: StateStore) -> None:
    log = EventLog(store, clock=lambda: NOON, actor="ada@lab")
    log.bind(run="r1", epochs={})
    written = log.append(RunStarted(command="up", spec_hash="abc", argv_safe=("up", "x.yaml")))
    (read,) = EventLog(store).read()
    assert read == written
    assert (read.seq, read.time, read.actor, read.run) == (1, NOON, "ada@lab", "r1")
    assert read.kind == "RunStarted"


def test_the_stored_time_is_rfc_3339_in_utc(store: StateStore) -> None:
    EventLog(store, clock=lambda: NOON).append(DONE)
    stored = msgspec.json.decode(store.get("events/000000000001.json") or b"")
    assert stored["time"] == "2026-01-02T12:00:00Z"


def test_read_gives_what_others_wrote_since(store: StateStore) -> None:
    mine, theirs = EventLog(store), EventLog(store)
    mine.append(DONE)
    theirs.append(SpecApplied(spec_hash="x"))
    assert [event.kind for event in mine.read(since=1)] == ["SpecApplied"]
    assert mine.read(since=2) == ()


def test_two_writers_in_turn_leave_no_gap_and_lose_nothing(store: StateStore) -> None:
    logs = [EventLog(store) for _ in range(3)]
    for number in range(30):
        logs[number % 3].append(StageDone(stage=str(number), ok=True))
    events = EventLog(store).read()
    assert [event.seq for event in events] == list(range(1, 31))
    assert [e.body.stage for e in events if isinstance(e.body, StageDone)] == [
        str(number) for number in range(30)
    ]


def test_processes_that_race_lose_no_event(
    url: str, start_actor: Callable[..., subprocess.Popen[str]]
) -> None:
    actors = [start_actor("append", url, "25") for _ in range(6)]
    assert [actor.wait() for actor in actors] == [0] * 6
    events = EventLog(StateStore.open(url)).read()
    assert [event.seq for event in events] == list(range(1, 151))
    by_writer: dict[str, list[int]] = {}
    for event in events:
        assert isinstance(event.body, StageDone)
        by_writer.setdefault(event.body.stage, []).append(int(event.body.summary))
    assert list(by_writer.values()) == [list(range(25))] * 6


def test_many_events_are_read_in_order(store: StateStore) -> None:
    log = EventLog(store)
    for _ in range(100):
        log.append(DONE)
    assert [event.seq for event in EventLog(store).read()] == list(range(1, 101))


def test_an_unknown_kind_is_kept_and_others_continue(store: StateStore) -> None:
    log = EventLog(store)
    log.append(DONE)
    known = store.get("events/000000000001.json") or b""
    newer = known.replace(b'"seq":1', b'"seq":2').replace(b"StageDone", b"NodeDrained")
    previous = digest("events/000000000001.json", known).encode()
    newer = newer.replace(b'"previous":""', b'"previous":"%s"' % previous)
    store.put_new("events/000000000002.json", newer)
    assert log.append(DONE).seq == 3
    unknown = log.read()[1]
    assert unknown.kind == "NodeDrained"
    assert isinstance(unknown.body, Unreadable)


@pytest.mark.parametrize("torn", [b"", b'{"seq":1,"ti', b"\xff", b"null", b'{"seq": 1}'])
def test_a_torn_event_ends_reading_and_writing_and_is_named(bucket: Bucket, torn: bytes) -> None:
    log = EventLog(StateStore(bucket, url="test"))
    log.append(DONE)
    log.append(DONE)
    bucket.replace("events/000000000001.json", torn)
    fresh = EventLog(StateStore(bucket, url="test", target="demo"))
    for act in (fresh.read, lambda: fresh.append(DONE)):
        with pytest.raises(LifecycleError, match=r"events/000000000001\.json is damaged") as caught:
            act()
        assert "gcluster state repair demo" in caught.value.diagnostics[0].hint


def test_damage_that_was_accepted_blocks_nothing_and_its_number_is_not_used_again(
    bucket: Bucket,
) -> None:
    log = EventLog(StateStore(bucket, url="test"), tolerates_damage=True)
    log.append(DONE)
    log.append(DONE)
    bucket.replace("events/000000000002.json", b"")
    repairing = EventLog(StateStore(bucket, url="test"), tolerates_damage=True)
    assert repairing.append(DamageAccepted(events=repairing.damage())).seq == 3
    events = EventLog(StateStore(bucket, url="test")).read()
    assert [event.seq for event in events] == [1, 2, 3]
    assert isinstance(events[1].body, Unreadable)


def test_a_known_kind_with_strange_data_is_unreadable(store: StateStore) -> None:
    EventLog(store).append(DONE)
    data = store.get("events/000000000001.json") or b""
    store.put("events/000000000001.json", data.replace(b'"ok":true', b'"ok":7'))
    (event,) = EventLog(store).read()
    assert isinstance(event.body, Unreadable)
    assert event.kind == "StageDone"


def test_a_removed_event_is_named(store: StateStore) -> None:
    log = EventLog(store)
    for _ in range(3):
        log.append(DONE)
    store.delete("events/000000000002.json")
    with pytest.raises(
        LifecycleError, match=r"events/000000000002\.json is damaged: it is missing"
    ):
        EventLog(store).read()


def test_a_strange_object_among_the_events_is_passed_over(store: StateStore) -> None:
    store.put_new("events/README", b"hello")
    store.put_new("events/7.json", b"hello")
    assert EventLog(store).read() == ()


def test_a_writer_who_lost_the_lock_is_stopped(store: StateStore) -> None:
    log = EventLog(store)
    with acquire(store, ["site"], reason="up") as lock:
        log.append(DONE, epochs=lock.epochs)
        unlock(store, "site", lock.epochs["site"])
        with pytest.raises(LifecycleError) as caught:
            log.append(DONE, epochs=lock.epochs)
    assert caught.value.exit_code is Exit.LOCKED
    assert len(log.read()) == 1


def test_a_writer_who_finds_a_newer_epoch_in_the_log_is_stopped(store: StateStore) -> None:
    mine, theirs = EventLog(store), EventLog(store)
    mine.append(DONE, epochs={"site": 1})
    theirs.append(DONE, epochs={"site": 2})
    with pytest.raises(LifecycleError):
        mine.append(DONE, epochs={"site": 1})
    assert len(theirs.read()) == 2


def test_an_epoch_of_one_site_does_not_fence_another(store: StateStore) -> None:
    log = EventLog(store)
    log.append(DONE, epochs={"a": 5})
    assert log.append(DONE, epochs={"b": 1}).seq == 2


class _LosesAnswers:
    """A bucket in front of another that writes, then says that it was there: a repeated request."""

    def __init__(self, inner: Bucket) -> None:
        self._inner = inner
        self.get = inner.get
        self.list = inner.list
        self.delete = inner.delete
        self.replace = inner.replace

    def create(self, key: str, data: bytes) -> None:
        self._inner.create(key, data)
        raise AlreadyExists(key)


def test_an_append_whose_answer_got_lost_is_not_written_twice(bucket: Bucket) -> None:
    log = EventLog(StateStore(_LosesAnswers(bucket), url="test"))
    log.append(DONE)
    log.append(DONE)
    assert [event.seq for event in log.read()] == [1, 2]


def test_a_lock_whose_answer_got_lost_is_held(bucket: Bucket) -> None:
    store = StateStore(_LosesAnswers(bucket), url="test")
    with acquire(store, ["site"], reason="up") as lock:
        assert lock.epochs == {"site": 1}
