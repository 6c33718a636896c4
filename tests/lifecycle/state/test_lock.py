"""The lock: one holder at a time whatever happens to holders, and no held lock is stolen."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from gcluster.lifecycle.cluster.outcome import Exit, LifecycleError
from gcluster.lifecycle.state import (
    LockRecord,
    StateStore,
    acquire,
    is_held,
    lock_state,
    unlock,
)
from gcluster.lifecycle.state.bucket import Bucket
from gcluster.lifecycle.state.connect import connect
from gcluster.lifecycle.state.lock import Heartbeat, Seen, age, last_seen
from gcluster.lifecycle.state.store import with_hash, without_hash


def test_a_lock_is_taken_for_the_body_and_released_after_it(store: StateStore) -> None:
    with acquire(store, ["site"], reason="up") as lock:
        assert lock.epochs == {"site": 1}
        assert is_held(store, "site", 1)
    assert not is_held(store, "site", 1)
    assert store.list("lock") == ["lock/site/000001", "lock/site/000001.released"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, ValueError])
def test_a_lock_is_released_however_the_body_ends(
    store: StateStore, error: type[BaseException]
) -> None:
    with pytest.raises(error), acquire(store, ["site"], reason="up"):
        raise error
    assert not lock_state(store, "site").held


def test_each_taking_has_the_next_epoch(store: StateStore) -> None:
    for epoch in range(1, 4):
        with acquire(store, ["site"], reason="up") as lock:
            assert lock.epochs == {"site": epoch}


def test_a_held_lock_reports_who_where_since_when_why_and_what_to_do(store: StateStore) -> None:
    store.identify("demo")
    with (
        acquire(store, ["site"], reason="up"),
        pytest.raises(LifecycleError) as caught,
        acquire(store, ["site"], reason="down"),
    ):
        raise AssertionError
    assert caught.value.exit_code is Exit.LOCKED
    (found,) = caught.value.diagnostics
    record = msgspec.json.decode(store.get("lock/site/000001") or b"", type=LockRecord)
    for part in ("site", record.owner.who, str(record.owner.pid), f"{record.taken:%H:%M:%S}", "up"):
        assert part in found.summary
    assert "gcluster unlock demo --lock site/1" in found.hint


def test_several_sites_are_taken_all_or_none(store: StateStore) -> None:
    with (
        acquire(store, ["b"], reason="up"),
        pytest.raises(LifecycleError),
        acquire(store, ["c", "b", "a"], reason="up"),
    ):
        raise AssertionError
    assert not lock_state(store, "a").held
    assert not lock_state(store, "c").held
    with acquire(store, ["c", "b", "a"], reason="up") as lock:
        assert list(lock.epochs) == ["a", "b", "c"]


class _Overtaken:
    """A bucket in which another machine takes a site just before we would: the rarest moment."""

    def __init__(self, inner: Bucket, site: str) -> None:
        self._inner = inner
        self._key = f"lock/{site}/000001"
        self.get = inner.get
        self.list = inner.list
        self.delete = inner.delete
        self.replace = inner.replace

    def create(self, key: str, data: bytes) -> None:
        if key == self._key:
            record = msgspec.json.decode(without_hash(key, data), type=LockRecord)
            self._inner.create(key, with_hash(key, msgspec.json.encode(_elsewhere(record))))
        self._inner.create(key, data)


def _elsewhere(record: LockRecord) -> LockRecord:
    owner = msgspec.structs.replace(record.owner, machine="another", who="eve@elsewhere")
    return msgspec.structs.replace(record, owner=owner, token="another")  # noqa: S106 - no password


def test_who_is_overtaken_at_the_last_site_gives_back_the_others(bucket: Bucket) -> None:
    store = StateStore(_Overtaken(bucket, "b"), url="test")
    with (
        pytest.raises(LifecycleError, match="eve@elsewhere"),
        acquire(store, ["a", "b"], reason="up"),
    ):
        raise AssertionError
    assert store.list("lock") == [
        "lock/a/000001",
        "lock/a/000001.released",
        "lock/b/000001",
    ]


def test_a_lock_of_another_machine_is_never_taken_over(store: StateStore) -> None:
    _leave_lock_of_another_machine(store)
    with (
        pytest.raises(LifecycleError) as caught,
        acquire(store, ["site"], reason="up"),
    ):
        raise AssertionError
    assert caught.value.exit_code is Exit.LOCKED
    assert is_held(store, "site", 1)


def test_unlock_ends_the_lock_of_another_machine_and_fences_it_off(store: StateStore) -> None:
    _leave_lock_of_another_machine(store)
    assert unlock(store, "site", 1).owner.who == "eve@elsewhere"
    with acquire(store, ["site"], reason="up") as lock:
        assert lock.epochs == {"site": 3}


def test_unlock_refuses_an_epoch_that_is_not_the_one_held(store: StateStore) -> None:
    _leave_lock_of_another_machine(store)
    with pytest.raises(LifecycleError, match="epoch 1 is held"):
        unlock(store, "site", 2)
    unlock(store, "site", 1)
    with pytest.raises(LifecycleError, match="not held"):
        unlock(store, "site", 1)


def test_a_pid_of_another_pid_namespace_is_not_judged(store: StateStore) -> None:
    with acquire(store, ["site"], reason="up"):
        record = msgspec.json.decode(store.get("lock/site/000001") or b"", type=LockRecord)
    owner = msgspec.structs.replace(record.owner, namespace="1", pid=2**22 + 1)
    foreign = msgspec.structs.replace(record, owner=owner)
    store.put_new("lock/site/000002", msgspec.json.encode(foreign))
    assert is_held(store, "site", 2)


def test_a_lock_from_before_a_reboot_is_released_with_a_note(store: StateStore) -> None:
    with acquire(store, ["site"], reason="up"):
        record = msgspec.json.decode(store.get("lock/site/000001") or b"", type=LockRecord)
    before = msgspec.structs.replace(record.owner, boot="the boot before")
    store.put_new(
        "lock/site/000002", msgspec.json.encode(msgspec.structs.replace(record, owner=before))
    )
    with acquire(store, ["site"], reason="up") as lock:
        assert lock.epochs == {"site": 3}
        assert "site/2" in lock.notes[0].summary


def test_a_pid_that_another_process_has_now_does_not_keep_the_lock(store: StateStore) -> None:
    with acquire(store, ["site"], reason="up"):
        record = msgspec.json.decode(store.get("lock/site/000001") or b"", type=LockRecord)
    earlier = msgspec.structs.replace(record.owner, started="1")
    store.put_new(
        "lock/site/000002", msgspec.json.encode(msgspec.structs.replace(record, owner=earlier))
    )
    assert not is_held(store, "site", 2)


@pytest.mark.parametrize("damage", [b"", b"{}", b"\xff"])
def test_a_damaged_lock_fails_closed_and_is_named_with_what_frees_it(
    bucket: Bucket, damage: bytes
) -> None:
    store = StateStore(bucket, url="test", target="demo")
    with acquire(store, ["site"], reason="up"):
        bucket.replace("lock/site/000001", damage)
        with (
            pytest.raises(LifecycleError, match="lock/site/000001 is damaged") as caught,
            acquire(store, ["site"], reason="up"),
        ):
            raise AssertionError
        assert caught.value.exit_code is Exit.LOCKED
        assert "gcluster unlock demo --lock site/1" in caught.value.diagnostics[0].hint
        assert unlock(store, "site", 1) is None
    with acquire(store, ["site"], reason="up") as lock:
        assert lock.epochs == {"site": 3}


def test_the_lock_of_a_killed_process_goes_to_the_next_with_a_note(
    url: str, start_actor: Callable[..., subprocess.Popen[str]]
) -> None:
    holder = start_actor("hold", url)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "ready\n"
    store = StateStore.open(url)
    with pytest.raises(LifecycleError), acquire(store, ["site"], reason="up"):
        raise AssertionError
    holder.kill()  # and not waited for: a zombie holds nothing, too
    _until(lambda: not is_held(store, "site", 1))
    with acquire(store, ["site"], reason="up") as lock:
        assert lock.epochs == {"site": 2}
        assert f"process {holder.pid}" in lock.notes[0].summary
    assert b"owner is gone" in (store.get("lock/site/000001.released") or b"")


def test_a_lock_can_be_taken_wherever_its_holder_was_killed(
    url: str, start_actor: Callable[..., subprocess.Popen[str]]
) -> None:
    store = StateStore.open(url)
    for moment in range(4):
        actor = start_actor("churn", url)
        assert actor.stdout is not None
        assert actor.stdout.readline() == "ready\n"
        time.sleep(0.003 * moment)  # each kill hits another place of the loop
        actor.kill()
        actor.wait()
        with acquire(store, ["site"], reason="up"):
            pass


def test_twenty_processes_never_hold_it_at_once_and_lose_no_turn(
    url: str, tmp_path: Path, start_actor: Callable[..., subprocess.Popen[str]]
) -> None:
    counter = tmp_path / "counter"
    counter.write_text("0")
    actors = [start_actor("race", url, "3", str(counter)) for _ in range(20)]
    assert [actor.stdout.readline() for actor in actors if actor.stdout] == ["ready\n"] * 20
    (tmp_path / "counter.go").touch()
    assert [actor.wait() for actor in actors] == [0] * 20
    assert counter.read_text() == "60"
    keys = connect(url).list("lock/site")
    epochs = [key for key in keys if not key.endswith(".released")]
    assert epochs == [f"lock/site/{epoch:06d}" for epoch in range(1, len(epochs) + 1)]
    assert len(epochs) == 60
    assert len(keys) == 120


def _leave_lock_of_another_machine(store: StateStore) -> None:
    with acquire(store, ["model"], reason="up"):
        record = msgspec.json.decode(store.get("lock/model/000001") or b"", type=LockRecord)
    store.put_new("lock/site/000001", msgspec.json.encode(_elsewhere(record)))


def _until(holds: Callable[[], bool]) -> None:
    for _ in range(1000):
        if holds():
            return
        time.sleep(0.01)
    raise AssertionError


_KEY = "lock/site/000001"


class _Counted(StateStore):
    """A store that signals the second heartbeat."""

    def put(self, key: str, data: bytes) -> None:
        super().put(key, data)
        self.times = getattr(self, "times", 0) + 1
        if self.times == 2:
            self.twice.set()

    twice: threading.Event


def test_a_holder_gives_signs_until_it_ends(url: str) -> None:
    store = _Counted.open(url)
    assert isinstance(store, _Counted)
    store.twice = threading.Event()
    beat = Heartbeat(store, lambda: datetime(2026, 11, 1, tzinfo=UTC), every_s=0.001)
    assert last_seen(store, _KEY) is None
    beat.begin([_KEY])
    assert store.twice.wait(60)
    beat.end()
    times = store.times
    assert last_seen(store, _KEY) == datetime(2026, 11, 1, tzinfo=UTC)
    assert store.times == times


def test_a_store_that_fails_ends_no_run(store: StateStore, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = threading.Event()

    def fail(*_: object) -> None:
        tried.set()
        raise LifecycleError

    monkeypatch.setattr(store, "put", fail)
    beat = Heartbeat(store, lambda: datetime.now(UTC), every_s=0.001)
    beat.begin([_KEY])
    assert tried.wait(60)
    beat.end()


@pytest.mark.parametrize(
    ("silence", "message"),
    [
        (timedelta(seconds=30), "wait for it to end"),
        (timedelta(hours=3, minutes=10), "it gives no sign of life"),
    ],
)
def test_the_refusal_reports_when_the_holder_was_last_seen(
    store: StateStore, silence: timedelta, message: str
) -> None:
    with acquire(store, ["site"], reason="up"):
        seen = datetime.now(UTC) - silence
        store.put(f"{_KEY}.seen", msgspec.json.encode(Seen(seen)))
        with pytest.raises(LifecycleError) as caught, acquire(store, ["site"], reason="down"):
            raise AssertionError
    (found,) = caught.value.diagnostics
    assert f"last seen {age(silence)} ago" in found.detail
    assert found.hint.startswith(message)


def test_a_damaged_sign_is_no_sign(store: StateStore) -> None:
    store.put(f"{_KEY}.seen", b"{")
    assert last_seen(store, _KEY) is None


@pytest.mark.parametrize(
    ("time", "text"),
    [
        (timedelta(seconds=-5), "0 s"),
        (timedelta(seconds=12), "12 s"),
        (timedelta(minutes=7, seconds=3), "7 min"),
        (timedelta(hours=3, minutes=5), "3 h 5 min"),
        (timedelta(days=2, hours=1), "2 days"),
    ],
)
def test_ages_are_reported_in_two_units_at_most(time: timedelta, text: str) -> None:
    assert age(time) == text
