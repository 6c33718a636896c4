"""A sign of life beside a lock: who finds it held can tell a run from its ghost."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from gcluster.lifecycle.outcome import LifecycleError
from gcluster.lifecycle.state import StateStore, acquire
from gcluster.lifecycle.state.heartbeat import Heartbeat, Seen, last_seen
from gcluster.lifecycle.state.lock import age

_KEY = "lock/site/000001"


class _Counted(StateStore):
    """A store that tells when a second sign was given."""

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
    ("silence", "said"),
    [
        (timedelta(seconds=30), "wait for it to end"),
        (timedelta(hours=3, minutes=10), "it gives no sign of life"),
    ],
)
def test_the_refusal_says_when_the_holder_was_last_seen(
    store: StateStore, silence: timedelta, said: str
) -> None:
    with acquire(store, ["site"], reason="up"):
        seen = datetime.now(UTC) - silence
        store.put(f"{_KEY}.seen", msgspec.json.encode(Seen(seen)))
        with pytest.raises(LifecycleError) as caught, acquire(store, ["site"], reason="down"):
            raise AssertionError
    (found,) = caught.value.diagnostics
    assert f"last seen {age(silence)} ago" in found.detail
    assert found.hint.startswith(said)


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
def test_ages_are_told_in_two_units_at_most(time: timedelta, text: str) -> None:
    assert age(time) == text
